//! Hints as C has them: one word, two bits a side, and one for a cold source.

use std::ffi::c_uint;

use ntcopy::{Hint, Hints};

use crate::boundary::Errno;

/// The source stays in use.
pub const NTCOPY_SRC_TEMPORAL: c_uint = 0x1;
/// The source is not looked at again soon.
pub const NTCOPY_SRC_NONTEMPORAL: c_uint = 0x2;
/// The destination is looked at soon.
pub const NTCOPY_DST_TEMPORAL: c_uint = 0x4;
/// The destination is not looked at soon.
pub const NTCOPY_DST_NONTEMPORAL: c_uint = 0x8;

/// The source is in no cache.
pub const NTCOPY_SRC_COLD: c_uint = 0x10;

/// The hints that a word stands for. A bit that means nothing, or both bits of a side, can't be
/// meant.
#[inline]
pub(crate) fn decode(hints: c_uint) -> Result<Hints, Errno> {
    // Two bits side by side, of which the lower is a side's first.
    let both_of_a_side = hints & (hints >> 1) & 0b0101;
    if hints >> 5 != 0 || both_of_a_side != 0 {
        return Err(Errno::INVALID);
    }
    let both = Hints::new(side(hints & 3), side(hints >> 2 & 3));
    Ok(if hints & NTCOPY_SRC_COLD == 0 { both } else { both.from_cold() })
}

#[inline]
fn side(bits: c_uint) -> Hint {
    match bits {
        NTCOPY_SRC_TEMPORAL => Hint::Temporal,
        NTCOPY_SRC_NONTEMPORAL => Hint::Nontemporal,
        _ => Hint::Auto,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_a_pair_of_hints_or_an_error() {
        let sides = [(0, Some(Hint::Auto)), (1, Some(Hint::Temporal))];
        let sides = [&sides[..], &[(2, Some(Hint::Nontemporal)), (3, None)]].concat();
        for (source_bits, source) in &sides {
            for (destination_bits, destination) in &sides {
                let expected = source
                    .zip(*destination)
                    .map(|(source, destination)| Hints::new(source, destination))
                    .ok_or(Errno::INVALID);
                let word = source_bits | destination_bits << 2;
                assert_eq!(decode(word), expected);
                assert_eq!(decode(word | NTCOPY_SRC_COLD), expected.map(Hints::from_cold));
            }
        }
        for bit in 5..c_uint::BITS {
            assert_eq!(decode(1 << bit), Err(Errno::INVALID), "bit {bit}");
        }
    }
}
