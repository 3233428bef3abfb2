use raw_cpuid::CpuIdResult;

use super::*;
use crate::arch::x86_64::cpuid::{Features, read_facts};
use crate::policy::Vendor;

/// Leaves of a CPU as (leaf, subleaf, eax, ebx, ecx, edx); all others are zero.
type Leaves = &'static [(u32, u32, [u32; 4])];

fn reader(leaves: Leaves) -> impl CpuIdReader {
    move |leaf: u32, subleaf: u32| {
        let found = leaves.iter().find(|(l, s, _)| (*l, *s) == (leaf, subleaf));
        let [eax, ebx, ecx, edx] = found.map_or([0; 4], |(_, _, registers)| *registers);
        CpuIdResult { eax, ebx, ecx, edx }
    }
}

const AMD: [u32; 3] = [0x6874_7541, 0x444d_4163, 0x6974_6e65]; // "AuthenticAMD" in ebx, ecx, edx

/// A Zen 5 guest: 32 MiB of level 3 for its complex, 384 MiB by the legacy leaf.
const ZEN5: Leaves = &[
    (0, 0, [0x10, AMD[0], AMD[1], AMD[2]]),
    (1, 0, [0x00b0_0f21, 0, 0x8000_0000, 0]),
    (7, 0, [1, 1 << 9 | 1 << 23 | 1 << 24, 1 << 27 | 1 << 28, 1 << 4]),
    (0x4000_0000, 0, [0x4000_0001, 0x4b4d_564b, 0x564b_4d56, 0x4d]),
    (0x8000_0000, 0, [0x8000_0021, AMD[0], AMD[1], AMD[2]]),
    (0x8000_0001, 0, [0, 0, 1 << 8 | 1 << 22, 0]),
    (0x8000_0006, 0, [0, 0, 1024 << 16 | 0x6140, 768 << 18 | 0x9140]),
    (0x8000_0008, 0, [0, 1, 0, 0]),
    (0x8000_001d, 0, [0x121, 11 << 22 | 63, 63, 0]),
    (0x8000_001d, 1, [0x122, 7 << 22 | 63, 63, 0]),
    (0x8000_001d, 2, [0x143, 15 << 22 | 63, 1023, 2]),
    (0x8000_001d, 3, [15 << 14 | 0x163, 15 << 22 | 63, 32767, 1]),
];

#[test]
fn zen5s_modern_and_legacy_leaves_differ_by_twelve() {
    let cpu = read(reader(ZEN5));
    assert_eq!(cpu.signature(), "AuthenticAMD-26-2-1");
    assert_eq!(cpu.hypervisor.as_deref(), Some("KVMKVMKVM"));
    let sizes: Vec<_> = cpu.caches.iter().map(|c| (c.level, c.kind.name(), c.size_bytes)).collect();
    assert_eq!(
        sizes,
        [
            (1, "data", 48 << 10),
            (1, "instruction", 32 << 10),
            (2, "unified", 1 << 20),
            (3, "unified", 32 << 20),
        ]
    );
    assert_eq!(cpu.caches[3].shared_by_cpus, Some(16));
    assert_eq!((cpu.caches[2].inclusive, cpu.caches[3].inclusive), (Some(true), Some(false)));
    assert_eq!(cpu.llc_bytes(), 32 << 20);
    assert_eq!(cpu.legacy_l3_bytes, Some(384 << 20));
}

#[test]
fn feature_bits_are_found_where_the_leaf_exists() {
    let found = Features::read(&reader(ZEN5), || 0);
    for name in ["erms", "clflushopt", "clwb", "movdiri", "movdir64b", "fsrm", "clzero"] {
        assert!(found.has(name), "{name}");
    }
    assert!(!found.has("cldemote"));
}

#[test]
fn the_policy_sees_the_same_caches() {
    let facts = read_facts(&reader(ZEN5), Features::read(&reader(ZEN5), || 0));
    assert_eq!((facts.vendor, facts.family, facts.is_guest), (Vendor::Amd, 0x1a, true));
    assert!(facts.has_clflushopt);
    assert_eq!((facts.l1d_bytes, facts.l2_bytes, facts.l3_bytes), (48 << 10, 1 << 20, 32 << 20));
    assert_eq!((facts.l2_shared_by_cpus, facts.l3_shared_by_cpus), (1, 16));
    assert!(facts.has_clzero && facts.has_movdir64b && !facts.has_avx512);
}

#[test]
fn a_level_2_that_the_modern_leaf_lacks_is_the_older_ones_or_assumed() {
    const HIDDEN: Leaves = &[
        (0, 0, [0x10, AMD[0], AMD[1], AMD[2]]),
        (0x8000_0000, 0, [0x8000_0008, AMD[0], AMD[1], AMD[2]]),
        (0x8000_0006, 0, [0, 0, 512 << 16 | 0x6140, 0]),
    ];
    let l2_bytes = |leaves| {
        let reader = reader(leaves);
        read_facts(&reader, Features::read(&reader, || 0)).l2_bytes
    };
    assert_eq!(l2_bytes(HIDDEN), 512 << 10);
    assert_eq!(l2_bytes(&HIDDEN[..2]), 1 << 20);
    assert_eq!(l2_bytes(ZEN5), 1 << 20, "the modern leaf's");
}

/// The same bits in leaf 7 of a CPU whose last basic leaf is 4 mean nothing.
const OLD: Leaves = &[
    (0, 0, [4, 0x756e_6547, 0x6c65_746e, 0x4965_6e69]),
    (1, 0, [0x0000_06f6, 0, 0, 0]),
    (7, 0, [0, u32::MAX, u32::MAX, u32::MAX]),
];

#[test]
fn an_old_intel_cpu_says_little() {
    let cpu = read(reader(OLD));
    assert_eq!(cpu.signature(), "GenuineIntel-6-15-6");
    assert_eq!(cpu.legacy_l3_bytes, None);
    assert_eq!((cpu.caches.len(), cpu.hypervisor), (0, None));
    let features = Features::read(&reader(OLD), || 0);
    assert!(["erms", "movdir64b", "fsrm"].iter().all(|name| !features.has(name)));
    let facts = read_facts(&reader(OLD), features);
    assert_eq!((facts.family, facts.l3_bytes), (6, 0));
}

/// An emulator, by its signature.
const EMULATED: Leaves = &[
    (0, 0, [1, AMD[0], AMD[1], AMD[2]]),
    (1, 0, [0, 0, 0x8000_0000, 0]),
    (0x4000_0000, 0, [0x4000_0001, 0x5447_4354, 0x4354_4743, 0x4743_5447]),
];

#[test]
fn an_emulator_says_its_name() {
    assert_eq!(read(reader(EMULATED)).hypervisor.as_deref(), Some("TCGTCGTCGTCG"));
}
