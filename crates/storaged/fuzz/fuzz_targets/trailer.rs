//! The end of a file: refused, or exactly what would be written for what was read from it.

#![no_main]

use libfuzzer_sys::fuzz_target;
use storaged::store::format::{HASH_BYTES, decode, encode, trailer_bytes};

fuzz_target!(|input: &[u8]| {
    let Some((stored, file)) = input.split_first_chunk::<8>() else { return };
    let file_bytes = u64::from_le_bytes(*stored);
    let _ = trailer_bytes(file, file_bytes);
    // The seal is made right, so that what is below it is reached.
    let mut file = file.to_vec();
    if let Some(at) = file.len().checked_sub(HASH_BYTES) {
        let seal = storaged::store::format::seal(&file[..at]);
        file[at..].copy_from_slice(&seal);
    }
    if let Ok((meta, blocks)) = decode(&file, file_bytes) {
        assert_eq!(encode(&meta, &blocks), file);
    }
});
