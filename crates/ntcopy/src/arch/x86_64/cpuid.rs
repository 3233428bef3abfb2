//! CPUID: what the CPU has and the operating system lets programs use, and its caches. All that the
//! library knows of either comes from here, with the standard library and without.

use core::sync::atomic::{AtomicU32, Ordering};

use raw_cpuid::{CpuIdReader, CpuIdReaderNative, CpuIdResult};

use crate::arch::{ASSUMED_L2_BYTES, Facts, Vendor};

/// Where CPUID announces a feature.
struct Bit {
    name: &'static str,
    leaf: u32,
    register: fn(CpuIdResult) -> u32,
    bit: u32,
    /// What of XCR0 the operating system must have set: the registers that it saves.
    saved: u32,
}

const fn bit(name: &'static str, leaf: u32, register: fn(CpuIdResult) -> u32, bit: u32) -> Bit {
    Bit { name, leaf, register, bit, saved: 0 }
}

/// XMM and YMM.
const AVX_STATE: u32 = 0x6;
/// And K and ZMM.
const AVX512_STATE: u32 = 0xe6;

// Intel's manual, volume 2, CPUID; AMD's manual, volume 3, appendix E.
const BITS: [Bit; 15] = [
    bit("sse2", 1, |r| r.edx, 26),
    bit("sse4.1", 1, |r| r.ecx, 19),
    Bit { saved: AVX_STATE, ..bit("avx", 1, |r| r.ecx, 28) },
    Bit { saved: AVX_STATE, ..bit("avx2", 7, |r| r.ebx, 5) },
    Bit { saved: AVX512_STATE, ..bit("avx512f", 7, |r| r.ebx, 16) },
    bit("erms", 7, |r| r.ebx, 9),
    bit("clflushopt", 7, |r| r.ebx, 23),
    bit("clwb", 7, |r| r.ebx, 24),
    Bit { saved: AVX512_STATE, ..bit("avx512_vbmi2", 7, |r| r.ecx, 6) },
    bit("cldemote", 7, |r| r.ecx, 25),
    bit("movdiri", 7, |r| r.ecx, 27),
    bit("movdir64b", 7, |r| r.ecx, 28),
    bit("fsrm", 7, |r| r.edx, 4),
    bit("prefetchw", 0x8000_0001, |r| r.ecx, 8),
    bit("clzero", 0x8000_0008, |r| r.ebx, 0),
];

/// The features of a CPU, a bit each, in the order of [`BITS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Features(u32);

impl Features {
    const KNOWN: u32 = 1 << 31;

    /// Those of the CPU that the calling thread runs on. CPUID is slow, in guests above all, where
    /// it leaves for the hypervisor: it is asked once.
    pub(crate) fn detect() -> Features {
        // Miri has no CPUID.
        if cfg!(miri) {
            return Features(Features::KNOWN | 1 << place("sse2"));
        }
        static FOUND: AtomicU32 = AtomicU32::new(0);
        let found = FOUND.load(Ordering::Relaxed);
        if found & Features::KNOWN != 0 {
            return Features(found);
        }
        // Two threads that come here at once find the same.
        let features = Features::read(&CpuIdReaderNative, saved_state);
        FOUND.store(features.0, Ordering::Relaxed);
        features
    }

    /// `saved_state` gives XCR0, and is asked where that can be read.
    #[cold]
    #[inline(never)]
    pub(crate) fn read<R: CpuIdReader>(reader: &R, saved_state: fn() -> u32) -> Features {
        let last_basic = reader.cpuid1(0).eax;
        let last_extended = reader.cpuid1(0x8000_0000).eax;
        let has_xgetbv = reader.cpuid1(1).ecx >> 27 & 1 == 1;
        let saved = if has_xgetbv { saved_state() } else { 0 };
        let has = |bit: &Bit| {
            // Beyond the last leaf an Intel CPU answers with the data of another one.
            let last = if bit.leaf < 0x8000_0000 { last_basic } else { last_extended };
            bit.leaf <= last
                && saved & bit.saved == bit.saved
                && (bit.register)(reader.cpuid2(bit.leaf, 0)) >> bit.bit & 1 == 1
        };
        let set = |bits: u32, (at, bit): (usize, &Bit)| bits | u32::from(has(bit)) << at;
        Features(BITS.iter().enumerate().fold(Features::KNOWN, set))
    }

    /// Whether there is a feature of this name.
    pub(crate) fn has(self, name: &str) -> bool {
        BITS.iter().position(|bit| bit.name == name).is_some_and(|at| self.0 >> at & 1 == 1)
    }
}

/// XCR0: the registers that the operating system saves. The caller knows that OSXSAVE is set.
fn saved_state() -> u32 {
    let low: u32;
    // SAFETY: the caller has looked at OSXSAVE, without which XGETBV is an invalid instruction;
    // with ECX 0 it reads XCR0, and touches no memory.
    unsafe {
        core::arch::asm!("xgetbv", in("ecx") 0, out("eax") low, out("edx") _,
            options(nomem, nostack, preserves_flags));
    }
    low
}

pub(super) fn sse2() -> bool {
    true
}

pub(super) fn rep() -> bool {
    true
}

/// A function that says whether the CPU has a feature, whose place is looked up by the compiler.
macro_rules! asks {
    ($($function:ident $name:literal),+ $(,)?) => {$(
        pub(super) fn $function() -> bool {
            const MASK: u32 = 1 << place($name);
            Features::detect().0 & MASK != 0
        }
    )+};
}

asks! {
    avx2 "avx2",
    avx512f "avx512f",
    clflushopt "clflushopt",
    movdir64b "movdir64b",
    clzero "clzero",
}

const fn place(name: &str) -> usize {
    let mut at = 0;
    while !is_same(BITS[at].name.as_bytes(), name.as_bytes()) {
        at += 1;
    }
    at
}

const fn is_same(a: &[u8], b: &[u8]) -> bool {
    let mut at = 0;
    while at < a.len() && at < b.len() && a[at] == b[at] {
        at += 1;
    }
    at == a.len() && at == b.len()
}

/// What the policy wants to know.
pub(crate) fn facts() -> Facts {
    if cfg!(miri) {
        return Facts::UNKNOWN;
    }
    read_facts(&CpuIdReaderNative, Features::detect())
}

pub(crate) fn read_facts<R: CpuIdReader>(reader: &R, features: Features) -> Facts {
    let mut facts = Facts {
        vendor: vendor(reader),
        family: family(reader.cpuid1(1).eax),
        is_guest: reader.cpuid1(1).ecx >> 31 & 1 == 1,
        has_erms: features.has("erms"),
        has_fsrm: features.has("fsrm"),
        has_avx2: features.has("avx2"),
        has_avx512: features.has("avx512f"),
        has_avx512_vbmi2: features.has("avx512_vbmi2"),
        has_movdir64b: features.has("movdir64b"),
        has_clzero: features.has("clzero"),
        has_clflushopt: features.has("clflushopt"),
        l2_bytes: legacy_l2_bytes(reader).unwrap_or(ASSUMED_L2_BYTES),
        ..Facts::UNKNOWN
    };
    for cache in caches(reader).filter(|cache| cache.kind != CODE) {
        match cache.level {
            1 => facts.l1d_bytes = cache.bytes(),
            2 => (facts.l2_bytes, facts.l2_shared_by_cpus) = (cache.bytes(), cache.shared_by_cpus),
            3 => (facts.l3_bytes, facts.l3_shared_by_cpus) = (cache.bytes(), cache.shared_by_cpus),
            _ => {}
        }
    }
    facts
}

/// What the older leaf says, which both vendors have: KiB in ECX.
fn legacy_l2_bytes<R: CpuIdReader>(reader: &R) -> Option<u64> {
    const LEAF: u32 = 0x8000_0006;
    if reader.cpuid1(0x8000_0000).eax < LEAF {
        return None;
    }
    let kib = u64::from(reader.cpuid1(LEAF).ecx >> 16);
    (kib > 0).then_some(kib << 10)
}

fn vendor<R: CpuIdReader>(reader: &R) -> Vendor {
    let leaf = reader.cpuid1(0);
    match (leaf.ebx, leaf.edx, leaf.ecx) {
        // "GenuineIntel", "AuthenticAMD", "HygonGenuine", four letters a register.
        (0x756e_6547, 0x4965_6e69, 0x6c65_746e) => Vendor::Intel,
        (0x6874_7541, 0x6974_6e65, 0x444d_4163) => Vendor::Amd,
        (0x6f67_7948, 0x6e65_476e, 0x656e_6975) => Vendor::Amd,
        _ => Vendor::Other,
    }
}

/// The family in leaf 1's EAX: where the field is full, an extended one is added.
fn family(eax: u32) -> u32 {
    let base = eax >> 8 & 0xf;
    if base == 0xf { base + (eax >> 20 & 0xff) } else { base }
}

/// [`CacheLeaf::kind`] of a cache of instructions; 1 is one of data, 3 holds both.
pub(crate) const CODE: u32 = 2;

/// A cache as the modern leaf describes it.
#[cfg_attr(not(feature = "std"), allow(dead_code, reason = "the policy needs less of it"))]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CacheLeaf {
    pub(crate) level: u32,
    pub(crate) kind: u32,
    pub(crate) ways: u32,
    pub(crate) partitions: u32,
    pub(crate) line_bytes: u32,
    pub(crate) sets: u32,
    pub(crate) shared_by_cpus: u32,
    pub(crate) is_inclusive: bool,
}

impl CacheLeaf {
    pub(crate) fn bytes(&self) -> u64 {
        let line_bytes = u64::from(self.ways) * u64::from(self.partitions);
        line_bytes * u64::from(self.line_bytes) * u64::from(self.sets)
    }
}

/// The modern leaf, which is right about what one CPU sees: Intel 4, AMD `0x8000_001D`; both have
/// the same layout. Nothing where the CPU has no such leaf.
pub(crate) fn caches<R: CpuIdReader>(reader: &R) -> impl Iterator<Item = CacheLeaf> + '_ {
    let leaf = if vendor(reader) == Vendor::Amd { 0x8000_001d } else { 4 };
    let is_there = reader.cpuid1(leaf & 0x8000_0000).eax >= leaf;
    // A CPU has four or five; the bound is against one that never says "no more".
    (0..if is_there { 16 } else { 0 }).map_while(move |index| {
        let found = reader.cpuid2(leaf, index);
        let kind = found.eax & 0x1f;
        (kind != 0).then_some(CacheLeaf {
            level: found.eax >> 5 & 0x7,
            kind,
            ways: (found.ebx >> 22 & 0x3ff) + 1,
            partitions: (found.ebx >> 12 & 0x3ff) + 1,
            line_bytes: (found.ebx & 0xfff) + 1,
            sets: found.ecx.saturating_add(1),
            shared_by_cpus: (found.eax >> 14 & 0xfff) + 1,
            is_inclusive: found.edx >> 1 & 1 == 1,
        })
    })
}

#[cfg(all(test, feature = "std"))]
mod tests {
    use super::*;

    #[test]
    fn the_standard_library_finds_the_same() {
        use std::arch::is_x86_feature_detected as detected;
        let features = Features::detect();
        for (name, theirs) in [
            ("sse2", detected!("sse2")),
            ("sse4.1", detected!("sse4.1")),
            ("avx", detected!("avx")),
            ("avx2", detected!("avx2")),
            ("avx512f", detected!("avx512f")),
        ] {
            assert_eq!(features.has(name), theirs, "{name}");
        }
        assert!(!features.has("no such feature"));
    }

    /// A CPU may have registers that the operating system doesn't save.
    #[test]
    fn wide_registers_need_an_operating_system_that_saves_them() {
        const CPU: CpuIdResult =
            CpuIdResult { eax: 7, ebx: u32::MAX, ecx: u32::MAX, edx: u32::MAX };
        let with = |saved_state| Features::read(&|_: u32, _: u32| CPU, saved_state);
        let names = ["sse2", "avx", "avx2", "avx512f"];
        let found = |saved_state| names.map(|name| with(saved_state).has(name));
        assert_eq!(found(|| 0xff), [true; 4]);
        assert_eq!(found(|| 0x7), [true, true, true, false]);
        assert_eq!(found(|| 0x3), [true, false, false, false]);
        let no_xgetbv = CpuIdResult { ecx: !(1 << 27), ..CPU };
        let features = Features::read(&|_: u32, _: u32| no_xgetbv, || panic!("not to be asked"));
        assert!(features.has("sse2") && !features.has("avx"));
    }
}
