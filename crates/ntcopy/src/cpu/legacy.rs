//! Intel's leaf 2: caches by one-byte descriptors, before leaf 4 existed.

/// Level-3 bytes by descriptor (Intel's manual, volume 2, table "Encoding of CPUID Leaf 2
/// Descriptors"). `0x49` means level 3 only on one Xeon of family 15, and is left out. A CPU that
/// answers `0xff` says "see leaf 4", and so has no entry here.
const L3_KIB: &[(u8, u64)] = &[
    (0x22, 512),
    (0x23, 1024),
    (0x25, 2048),
    (0x29, 4096),
    (0x46, 4096),
    (0x47, 8192),
    (0x4a, 6144),
    (0x4b, 8192),
    (0x4c, 12288),
    (0x4d, 16384),
    (0xd0, 512),
    (0xd1, 1024),
    (0xd2, 2048),
    (0xd6, 1024),
    (0xd7, 2048),
    (0xd8, 4096),
    (0xdc, 1536),
    (0xdd, 3072),
    (0xde, 6144),
    (0xe2, 2048),
    (0xe3, 4096),
    (0xe4, 8192),
    (0xea, 12288),
    (0xeb, 18432),
    (0xec, 24576),
];

/// The level-3 cache that a descriptor of leaf 2 stands for, in bytes.
pub(super) fn l3_bytes_of_descriptor(descriptor: u8) -> Option<u64> {
    L3_KIB.iter().find(|(number, _)| *number == descriptor).map(|(_, kib)| kib << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_of_level_three_have_sizes_and_others_have_none() {
        assert_eq!(l3_bytes_of_descriptor(0xec), Some(24 << 20));
        assert_eq!(l3_bytes_of_descriptor(0xff), None);
        assert_eq!(l3_bytes_of_descriptor(0x2c), None, "a level-1 cache");
    }

    #[test]
    fn the_table_is_sorted_and_without_doubles() {
        assert!(L3_KIB.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }
}
