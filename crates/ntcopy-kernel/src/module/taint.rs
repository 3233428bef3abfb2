//! `/proc/sys/kernel/tainted` in words: the bits that a module sets, or that matter to one who
//! reads a report of this kernel. From Documentation/admin-guide/tainted-kernels.rst.

use serde::Serialize;

/// A bit of the kernel's taint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Taint {
    /// The letter that the kernel prints in its reports.
    pub letter: char,
    /// What it means.
    pub meaning: &'static str,
}

/// The bits in words, by their number.
const BITS: &[(u32, char, &str)] = &[
    (0, 'P', "a proprietary module was loaded"),
    (1, 'F', "a module was loaded by force"),
    (3, 'R', "a module was unloaded by force"),
    (7, 'D', "the kernel has died before: an oops or a BUG"),
    (9, 'W', "the kernel has warned of a fault"),
    (10, 'C', "a driver from staging was loaded"),
    (12, 'O', "a module that is no part of the kernel's source was loaded"),
    (13, 'E', "an unsigned module was loaded, on a kernel that has signatures"),
    (14, 'L', "a CPU was stuck"),
    (15, 'K', "the kernel was patched live"),
];

impl Taint {
    /// The words of a taint's bits.
    pub fn decode(value: u64) -> Vec<Taint> {
        let set = BITS.iter().filter(|(bit, ..)| value >> bit & 1 != 0);
        set.map(|&(_, letter, meaning)| Taint { letter, meaning }).collect()
    }

    /// The words of the letters that a module has in `/proc/modules` or `/sys/module`: "(OE)".
    pub fn of_letters(letters: &str) -> Vec<Taint> {
        let has = |letter: &char| letters.contains(*letter);
        let set = BITS.iter().filter(|(_, letter, _)| has(letter));
        set.map(|&(_, letter, meaning)| Taint { letter, meaning }).collect()
    }

    /// Bits that have no words here.
    pub fn rest(value: u64) -> u64 {
        BITS.iter().fold(value, |rest, (bit, ..)| rest & !(1 << bit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn letters(taints: &[Taint]) -> String {
        taints.iter().map(|taint| taint.letter).collect()
    }

    #[test]
    fn bits_become_the_letters_of_the_kernel_s_reports() {
        assert_eq!(letters(&Taint::decode(0)), "");
        assert_eq!(letters(&Taint::decode(12288)), "OE");
        assert_eq!(letters(&Taint::decode(1 << 9 | 1 << 12)), "WO");
        assert_eq!(letters(&Taint::of_letters("(OE)")), "OE");
        // TAINT_USER has no words here, and is not forgotten.
        assert_eq!(Taint::rest(1 << 6 | 1 << 12), 1 << 6);
    }

    #[test]
    fn every_bit_has_a_letter_of_its_own() {
        let mut all = letters(&Taint::decode(u64::MAX)).into_bytes();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), BITS.len());
    }
}
