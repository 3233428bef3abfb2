//! Any bytes as a client's of HTTP/3: frames, sections of fields, and the lines they become. The same check runs on the corpus
//! and on mutations of it as an ordinary test (`cargo test -p proxyd`).

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| proxyd::fuzzing::fields(bytes));
