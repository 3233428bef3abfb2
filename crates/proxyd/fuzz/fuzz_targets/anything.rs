//! Any bytes as a client's, a backend's, and a chunked body. The same check runs on the corpus and on
//! mutations of it as an ordinary test (`cargo test -p proxyd`).

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../tests/anything/mod.rs"]
mod anything;

fuzz_target!(|bytes: &[u8]| anything::anything(bytes));
