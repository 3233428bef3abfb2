//! Any bytes as a chunked body, cut anywhere. The same check runs on the corpus
//! and on mutations of it as an ordinary test (`cargo test -p proxyd`).

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| proxyd::fuzzing::chunked(bytes));
