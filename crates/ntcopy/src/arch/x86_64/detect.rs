//! What the CPU has and the operating system lets programs use, without the standard library.

use core::sync::atomic::{AtomicU32, Ordering};

use raw_cpuid::native_cpuid::cpuid_count;

use crate::policy::{Facts, Vendor};

const KNOWN: u32 = 1 << 31;
const AVX2: u32 = 1;
const AVX512F: u32 = 1 << 1;
const ERMS: u32 = 1 << 2;
const FSRM: u32 = 1 << 3;
const MOVDIR64B: u32 = 1 << 4;
const CLZERO: u32 = 1 << 5;

/// CPUID is slow, in guests above all, where it leaves for the hypervisor: it is asked once.
static FEATURES: AtomicU32 = AtomicU32::new(0);

fn features() -> u32 {
    let mut bits = FEATURES.load(Ordering::Relaxed);
    if bits & KNOWN == 0 {
        // Two threads that come here at once find the same.
        bits = read() | KNOWN;
        FEATURES.store(bits, Ordering::Relaxed);
    }
    bits
}

/// Intel's manual, volume 2, CPUID; AMD's manual, volume 3, appendix E.
#[cold]
#[inline(never)]
fn read() -> u32 {
    let last_basic = cpuid_count(0, 0).eax;
    let last_extended = cpuid_count(0x8000_0000, 0).eax;
    let has = |register: u32, bit: u32, flag: u32| if register >> bit & 1 == 1 { flag } else { 0 };
    let mut bits = 0;
    if last_basic >= 7 {
        let (leaf1, leaf7) = (cpuid_count(1, 0), cpuid_count(7, 0));
        bits |= has(leaf7.ebx, 9, ERMS) | has(leaf7.edx, 4, FSRM);
        bits |= has(leaf7.ecx, 28, MOVDIR64B);
        // OSXSAVE and AVX, then what the system saves: XMM and YMM, then K and ZMM.
        if leaf1.ecx >> 27 & 1 == 1 && leaf1.ecx >> 28 & 1 == 1 {
            let saved = saved_state();
            if saved & 0x6 == 0x6 {
                bits |= has(leaf7.ebx, 5, AVX2);
            }
            if saved & 0xe6 == 0xe6 {
                bits |= has(leaf7.ebx, 16, AVX512F);
            }
        }
    }
    if last_extended >= 0x8000_0008 {
        bits |= has(cpuid_count(0x8000_0008, 0).ebx, 0, CLZERO);
    }
    bits
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

pub(super) fn avx2() -> bool {
    features() & AVX2 != 0
}

pub(super) fn avx512f() -> bool {
    features() & AVX512F != 0
}

pub(super) fn movdir64b() -> bool {
    features() & MOVDIR64B != 0
}

pub(super) fn clzero() -> bool {
    features() & CLZERO != 0
}

/// What the policy wants to know.
pub(crate) fn facts() -> Facts {
    let vendor = vendor();
    let bits = features();
    let mut facts = Facts {
        vendor,
        is_guest: cpuid_count(1, 0).ecx >> 31 & 1 == 1,
        has_erms: bits & ERMS != 0,
        has_fsrm: bits & FSRM != 0,
        has_avx2: bits & AVX2 != 0,
        has_avx512: bits & AVX512F != 0,
        has_movdir64b: bits & MOVDIR64B != 0,
        has_clzero: bits & CLZERO != 0,
        ..Facts::UNKNOWN
    };
    read_caches(&mut facts);
    facts
}

fn vendor() -> Vendor {
    let leaf = cpuid_count(0, 0);
    match (leaf.ebx, leaf.edx, leaf.ecx) {
        // "GenuineIntel", "AuthenticAMD", "HygonGenuine", four letters a register.
        (0x756e_6547, 0x4965_6e69, 0x6c65_746e) => Vendor::Intel,
        (0x6874_7541, 0x6974_6e65, 0x444d_4163) => Vendor::Amd,
        (0x6f67_7948, 0x6e65_476e, 0x656e_6975) => Vendor::Amd,
        _ => Vendor::Other,
    }
}

/// The modern leaf, which is right about what one CPU sees: Intel 4, AMD `0x8000_001D`.
fn read_caches(facts: &mut Facts) {
    let leaf = match facts.vendor {
        Vendor::Amd => 0x8000_001d,
        Vendor::Intel | Vendor::Other => 4,
    };
    let first = leaf & 0x8000_0000;
    if cpuid_count(first, 0).eax < leaf {
        return;
    }
    // A CPU has four or five; the bound is against one that never says "no more".
    for index in 0..16 {
        let found = cpuid_count(leaf, index);
        let kind = found.eax & 0x1f;
        if kind == 0 {
            return;
        }
        let level = found.eax >> 5 & 0x7;
        let part = |shift: u32, mask: u32| u64::from((found.ebx >> shift & mask) + 1);
        let bytes = part(22, 0x3ff) * part(12, 0x3ff) * part(0, 0xfff) * (u64::from(found.ecx) + 1);
        let shared_by = (found.eax >> 14 & 0xfff) + 1;
        // Kind 2 is an instruction cache.
        match (level, kind) {
            (_, 2) => {}
            (1, _) => facts.l1d_bytes = bytes,
            (2, _) => (facts.l2_bytes, facts.l2_shared_by_cpus) = (bytes, shared_by),
            (3, _) => (facts.l3_bytes, facts.l3_shared_by_cpus) = (bytes, shared_by),
            _ => {}
        }
    }
}

#[cfg(all(test, feature = "std"))]
mod tests {
    use super::*;
    use crate::cpu::Cpu;

    #[test]
    fn the_standard_library_finds_the_same() {
        use std::arch::is_x86_feature_detected as detected;
        assert_eq!(avx2(), detected!("avx2"));
        assert_eq!(avx512f(), detected!("avx512f"));
    }

    #[test]
    fn the_other_reader_of_cpuid_finds_the_same() {
        let (cpu, facts) = (Cpu::detect(), facts());
        for (name, here) in [
            ("erms", facts.has_erms),
            ("fsrm", facts.has_fsrm),
            ("movdir64b", facts.has_movdir64b),
            ("clzero", facts.has_clzero),
        ] {
            assert_eq!(here, cpu.has(name), "{name}");
        }
        assert_eq!(facts.l3_bytes, cpu.l3_bytes().unwrap_or(0));
        assert_eq!(facts.is_guest, cpu.hypervisor.is_some());
        match facts.vendor {
            Vendor::Intel => assert_eq!(cpu.vendor, "GenuineIntel"),
            Vendor::Amd => assert!(["AuthenticAMD", "HygonGenuine"].contains(&&*cpu.vendor)),
            Vendor::Other => assert!(!["GenuineIntel", "AuthenticAMD"].contains(&&*cpu.vendor)),
        }
    }
}
