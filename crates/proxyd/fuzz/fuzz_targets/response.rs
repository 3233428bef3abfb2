//! Any bytes as a backend's: head, body, and what the client would get of them. The same check runs on the corpus
//! and on mutations of it as an ordinary test (`cargo test -p proxyd`).

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| proxyd::fuzzing::response(bytes));
