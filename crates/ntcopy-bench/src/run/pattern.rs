//! Bytes that say where they belong.
//!
//! Every byte depends on its position and on a seed, one for each socket, so
//! that bytes that are lost, doubled, moved or swapped between sockets show.

use std::io::{self, Write};

use super::WrongByte;

/// Bytes made at a time when comparing.
const CHUNK_BYTES: usize = 16 << 10;
const WORD_BYTES: u64 = 8;

/// Eight bytes of the pattern. A bijective mix (that of SplitMix64), so no two
/// positions of a seed have the same word.
fn word(seed: u64, index: u64) -> [u8; 8] {
    let mut mixed = index.wrapping_add(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed ^ (mixed >> 31)).to_le_bytes()
}

/// Fills `bytes` with the pattern of `seed` from position `start` on.
pub fn fill(seed: u64, start: u64, bytes: &mut [u8]) {
    let into_word = (start % WORD_BYTES) as usize;
    let mut index = start / WORD_BYTES;
    let mut rest = bytes;
    if into_word != 0 {
        let first = rest.len().min(8 - into_word);
        let (head, tail) = rest.split_at_mut(first);
        head.copy_from_slice(&word(seed, index)[into_word..into_word + first]);
        index += 1;
        rest = tail;
    }
    for chunk in rest.chunks_mut(8) {
        chunk.copy_from_slice(&word(seed, index)[..chunk.len()]);
        index += 1;
    }
}

/// Writes the first `bytes` of a seed's, which are made in the room that is given, again and again.
pub fn write(seed: u64, bytes: u64, room: &mut [u8], to: &mut impl Write) -> io::Result<()> {
    let mut at = 0;
    while at < bytes {
        let most = usize::try_from(bytes - at).unwrap_or(usize::MAX).min(room.len());
        let piece = &mut room[..most];
        fill(seed, at, piece);
        to.write_all(piece)?;
        at += piece.len() as u64;
    }
    Ok(())
}

/// The first byte of `bytes` that is not the pattern's: its index, and the right byte.
pub fn first_wrong(seed: u64, start: u64, bytes: &[u8]) -> Option<(usize, u8)> {
    let mut expected = [0; CHUNK_BYTES];
    for (number, chunk) in bytes.chunks(CHUNK_BYTES).enumerate() {
        let before = number * CHUNK_BYTES;
        let expected = &mut expected[..chunk.len()];
        fill(seed, start + before as u64, expected);
        if expected != chunk {
            let at = expected.iter().zip(chunk).position(|(right, got)| right != got)?;
            return Some((before + at, expected[at]));
        }
    }
    None
}

/// Compares bytes with the pattern of `seed` from position `start` on.
pub fn compare(seed: u64, start: u64, bytes: &[u8]) -> Result<(), WrongByte> {
    match first_wrong(seed, start, bytes) {
        None => Ok(()),
        Some((at, expected)) => {
            Err(WrongByte { socket: None, position: at as u64, expected, got: bytes[at] })
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_part_equals_that_part_of_the_whole(
            seed: u64, start in 0u64..100, from in 0usize..64, len in 0usize..200,
        ) {
            let mut whole = vec![0; from + len];
            fill(seed, start, &mut whole);
            let mut part = vec![0; len];
            fill(seed, start + from as u64, &mut part);
            prop_assert_eq!(&whole[from..], &part[..]);
        }

        #[test]
        fn a_changed_byte_is_found(
            seed: u64, start in 0u64..100, len in 1usize..40_000, at: prop::sample::Index, flip in 1u8..,
        ) {
            let mut bytes = vec![0; len];
            fill(seed, start, &mut bytes);
            prop_assert_eq!(first_wrong(seed, start, &bytes), None);
            let at = at.index(len);
            let right = bytes[at];
            bytes[at] ^= flip;
            prop_assert_eq!(first_wrong(seed, start, &bytes), Some((at, right)));
        }
    }

    #[test]
    fn another_seed_or_place_gives_other_bytes() {
        let mut bytes = [[0; 64]; 3];
        fill(1, 0, &mut bytes[0]);
        fill(2, 0, &mut bytes[1]);
        fill(1, 4096, &mut bytes[2]);
        assert_ne!(bytes[0], bytes[1]);
        assert_ne!(bytes[0], bytes[2]);
    }
}
