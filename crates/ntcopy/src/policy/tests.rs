//! The tables: hint x size x policy to path, and CPUID to policy.

#![cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "the tables are x86-64's"))]

use super::*;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// An Intel server's guest: a level 3 of the whole socket, and two CPUs.
const INTEL_GUEST: Facts = Facts {
    vendor: Vendor::Intel,
    family: 6,
    is_guest: true,
    has_erms: true,
    has_fsrm: true,
    has_avx2: true,
    has_avx512: true,
    has_avx512_vbmi2: true,
    has_movdir64b: true,
    has_clzero: false,
    has_clflushopt: true,
    l1d_bytes: 48 * KIB,
    l2_bytes: 2 * MIB,
    l2_shared_by_cpus: 1,
    l3_bytes: 300 * MIB,
    l3_shared_by_cpus: 2,
};

/// A desktop of one complex, of a kind that was not measured for flushing.
const AMD: Facts = Facts {
    vendor: Vendor::Amd,
    family: 0x1a,
    is_guest: false,
    has_movdir64b: false,
    has_clzero: true,
    l2_bytes: MIB,
    l3_bytes: 32 * MIB,
    l3_shared_by_cpus: 16,
    ..INTEL_GUEST
};

const ZEN4: Facts = Facts { family: 0x19, ..AMD };

/// Nothing newer than AVX2.
const OLD_INTEL: Facts = Facts {
    vendor: Vendor::Intel,
    is_guest: false,
    has_erms: true,
    has_avx2: true,
    l2_bytes: 256 * KIB,
    l3_bytes: 8 * MIB,
    l3_shared_by_cpus: 8,
    ..Facts::UNKNOWN
};

const A: Hint = Hint::Auto;
const T: Hint = Hint::Temporal;
const N: Hint = Hint::Nontemporal;

/// One row: the hints of source and destination, the length of the call, that of the whole, and
/// the path by its text.
type Row = (Hint, Hint, u64, u64, &'static str);

#[cfg(target_arch = "x86_64")]
fn check(facts: &Facts, rows: &[Row]) {
    check_each(facts, rows, |hints| hints);
}

#[cfg(target_arch = "x86_64")]
fn check_cold(facts: &Facts, rows: &[Row]) {
    check_each(facts, rows, Hints::from_cold);
}

#[cfg(target_arch = "x86_64")]
fn check_each(facts: &Facts, rows: &[Row], change: fn(Hints) -> Hints) {
    let policy = Policy::for_facts(facts);
    for (source, destination, len, total, expected) in rows {
        let hints = change(Hints::new(*source, *destination));
        let path = policy.choose_copy(*len as usize, *total, hints);
        assert_eq!(
            path.to_string(),
            *expected,
            "{} to {}, {len} bytes of {total}",
            source.name(),
            destination.name()
        );
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
#[cfg_attr(miri, ignore = "Miri runs no instructions of the policy's")]
fn copies_of_an_intel_guest() {
    check(
        &INTEL_GUEST,
        &[
            (A, A, 4 * KIB, 4 * KIB, "libc"),
            (A, A, 64 * KIB, 64 * KIB, "libc"),
            (A, A, 64 * MIB - 1, 64 * MIB - 1, "libc"),
            (A, A, 64 * MIB, 64 * MIB, "avx512-nt+t0+4x64"),
            // The whole decides, not the call.
            (A, A, 64 * KIB, 1024 * MIB, "avx512-nt+t0+4x64"),
            (A, A, 32 * KIB, 1024 * MIB, "avx512-nt+t0"),
            // …but what is too small to stream is.
            (A, A, 255, 1024 * MIB, "libc"),
            (A, A, 256, 1024 * MIB, "avx512-nt+t0"),
            (N, N, 255, 255, "libc"),
            // The caller knows better, both ways.
            (A, N, 4 * KIB, 4 * KIB, "avx512-nt+t0"),
            (A, T, 4 * KIB, 1024 * MIB, "libc"),
            (T, A, 1024 * MIB, 1024 * MIB, "avx512-nt+t0+4x64"),
            // The C library may stream by itself from some size on; a temporal copy mustn't.
            (A, T, MIB + 1, MIB + 1, "rep-movsb"),
            (T, T, 1024 * MIB, 1024 * MIB, "rep-movsb"),
            // The source.
            (N, N, 4 * KIB, 4 * KIB, "avx512-nt+t0"),
            (N, N, 16 * KIB - 1, 16 * KIB - 1, "avx512-nt+t0"),
            (N, N, 16 * KIB, 16 * KIB, "avx512-nt+t0+4x64"),
            (N, A, 4 * KIB, 4 * KIB, "avx2+nta"),
            (N, A, 4 * KIB, 1024 * MIB, "avx512-nt+t0"),
            (N, T, 4 * KIB, 1024 * MIB, "avx2+nta"),
            (N, T, 64 * KIB, 1024 * MIB, "avx2+nta+4x64"),
            (T, N, 4 * KIB, 4 * KIB, "avx512-nt+t0"),
        ],
    );
}

/// Own stores win out of memory, and lose out of a cache: for sources that are known to be cold.
#[cfg(target_arch = "x86_64")]
#[test]
#[cfg_attr(miri, ignore = "Miri runs no instructions of the policy's")]
fn copies_of_a_cold_source_of_an_intel_guest() {
    check_cold(
        &INTEL_GUEST,
        &[
            (A, A, 64 * KIB - 1, 64 * KIB - 1, "libc"),
            (A, A, 64 * KIB, 64 * KIB, "avx512+t0+4x64"),
            (A, T, 512 * KIB, 512 * KIB, "avx512+t0+4x64"),
            (A, A, MIB, MIB, "avx512+t0+4x64"),
            (A, A, MIB + 1, MIB + 1, "libc"),
            (A, T, MIB + 1, MIB + 1, "rep-movsb"),
            (A, N, 16 * KIB, 16 * KIB, "avx512-nt+t0+4x64"),
            (A, A, 64 * MIB - 1, 64 * MIB - 1, "libc"),
        ],
    );
    check_cold(&AMD, &[(A, A, 64 * KIB, 64 * KIB, "libc"), (A, N, KIB, KIB, "avx2-nt")]);
}

#[cfg(target_arch = "x86_64")]
#[test]
#[cfg_attr(miri, ignore = "Miri runs no instructions of the policy's")]
fn copies_of_an_amd_complex() {
    check(
        &AMD,
        &[
            (A, A, MIB, MIB, "libc"),
            (A, A, 64 * MIB - 1, 64 * MIB - 1, "libc"),
            (A, A, 64 * MIB, 64 * MIB, "avx2-nt"),
            (N, N, 24 * MIB, 24 * MIB, "avx2-nt+nta"),
            (A, T, 256 * MIB, 256 * MIB, "avx2"),
            (N, T, MIB, MIB, "avx2+nta"),
        ],
    );
}

#[cfg(target_arch = "x86_64")]
#[test]
fn rep_movsb_is_for_cpus_that_have_a_fast_one() {
    for facts in [AMD, ZEN4, Facts { has_erms: false, ..INTEL_GUEST }] {
        let policy = Policy::for_facts(&facts);
        for len in (8..31).map(|shift| 1 << shift) {
            for (source, destination) in [(A, A), (A, T), (T, T), (N, T), (N, N)] {
                let hints = Hints::new(source, destination);
                for hints in [hints, hints.from_cold()] {
                    let path = policy.choose_copy(len, len as u64, hints);
                    assert_ne!(path.method, Method::RepMovsb, "{len} {hints:?} {facts:?}");
                }
            }
        }
    }
    let ancient = Facts { has_erms: false, ..OLD_INTEL };
    let fill = Policy::for_facts(&ancient).choose_fill(1 << 30, 1 << 30, 0, T);
    assert_eq!(fill.to_string(), "rep-stosq");
}

#[cfg(target_arch = "x86_64")]
#[test]
fn registers_of_64_bytes_are_for_ice_lake_and_later() {
    let skylake = Facts { has_avx512_vbmi2: false, has_movdir64b: false, ..INTEL_GUEST };
    let policy = Policy::for_facts(&skylake);
    let methods = [policy.copy_method, policy.fill_method, policy.zero_method];
    assert_eq!(methods, [Method::Avx2Nt; 3]);
    assert_eq!(policy.temporal_method, Method::Libc);
}

#[cfg(target_arch = "x86_64")]
#[test]
fn no_cpu_goes_past_the_caches_by_itself_below_a_mebibyte() {
    for facts in [
        Facts { l3_bytes: 0, ..INTEL_GUEST },
        Facts { l3_bytes: 4096, l2_bytes: 4096, ..OLD_INTEL },
        Facts { l3_bytes: 1, l2_bytes: 0, ..AMD },
    ] {
        let policy = Policy::for_facts(&facts);
        assert!(policy.copy_nontemporal_from_bytes >= MIB, "{facts:?}");
        assert!(policy.fill_nontemporal_from_bytes >= MIB, "{facts:?}");
    }
}

#[test]
fn a_cache_that_no_such_cpu_has_is_doubted() {
    assert!(INTEL_GUEST.is_l3_doubtful(), "300 MiB for two CPUs");
    let shown = Facts { l3_shared_by_cpus: 128, ..INTEL_GUEST };
    assert!(!shown.is_l3_doubtful(), "300 MiB for a guest of a whole socket");
    assert!(!Facts { is_guest: false, ..INTEL_GUEST }.is_l3_doubtful());
    assert!(!Facts { is_guest: true, l3_shared_by_cpus: 2, ..AMD }.is_l3_doubtful());
    assert!(Facts { is_guest: true, l3_bytes: 384 * MIB, ..AMD }.is_l3_doubtful());
    let believed = Facts { l3_bytes: 40 * MIB, l3_shared_by_cpus: 8, ..INTEL_GUEST };
    assert_eq!(Policy::for_facts(&believed).copy_nontemporal_from_bytes, 80 * MIB);
}

#[cfg(target_arch = "x86_64")]
#[test]
#[cfg_attr(miri, ignore = "Miri runs no instructions of the policy's")]
fn a_zen_4_flushes_the_source_of_large_copies_that_have_the_hint() {
    check(
        &ZEN4,
        &[
            (N, N, 256 * KIB, 256 * KIB, "avx2-nt+flush"),
            (N, N, 4 * KIB, 256 * KIB, "avx2-nt+flush"),
            (N, N, 256 * KIB - 1, 256 * KIB - 1, "avx2-nt+nta"),
            (N, A, 64 * MIB, 64 * MIB, "avx2-nt+flush"),
            (A, N, 24 * MIB, 24 * MIB, "avx2-nt"),
            (T, N, 24 * MIB, 24 * MIB, "avx2-nt+t0"),
            (N, T, 24 * MIB, 24 * MIB, "avx2+nta"),
        ],
    );
    for facts in [
        AMD,
        INTEL_GUEST,
        Facts { has_clflushopt: false, ..ZEN4 },
        Facts { has_avx512: false, ..ZEN4 },
        Facts { vendor: Vendor::Other, ..ZEN4 },
    ] {
        assert_eq!(Policy::for_facts(&facts).flush_source_from_bytes, NEVER, "{facts:?}");
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
#[cfg_attr(miri, ignore = "Miri runs no instructions of the policy's")]
fn copies_of_an_old_cpu() {
    check(
        &OLD_INTEL,
        &[
            (A, A, 16 * MIB - 1, 16 * MIB - 1, "libc"),
            (A, A, 16 * MIB, 16 * MIB, "avx2-nt+t0+4x64"),
        ],
    );
    let ancient = Facts { has_avx2: false, has_erms: false, ..OLD_INTEL };
    check(
        &ancient,
        &[(A, N, KIB, KIB, "sse2-nt+t0"), (N, A, KIB, KIB, "sse2+nta"), (A, A, KIB, KIB, "libc")],
    );
}

#[cfg(target_arch = "x86_64")]
#[test]
fn fills() {
    let intel = Policy::for_facts(&INTEL_GUEST);
    let amd = Policy::for_facts(&AMD);
    for (policy, hint, len, total, value, expected) in [
        (intel, A, 64 * MIB - 1, 64 * MIB - 1, 0, "libc"),
        (intel, A, 64 * MIB, 64 * MIB, 0, "avx512-nt"),
        (intel, A, 64 * KIB, 64 * MIB, 7, "avx512-nt"),
        (intel, A, 255, 64 * MIB, 7, "libc"),
        (intel, N, 256, 256, 0, "avx512-nt"),
        (intel, T, 256 * KIB, 1024 * MIB, 0, "libc"),
        (intel, T, 1024 * MIB, 1024 * MIB, 0, "rep-stosb"),
        (amd, A, 64 * MIB - 1, 64 * MIB - 1, 0, "libc"),
        (amd, A, 64 * MIB, 64 * MIB, 0, "avx512-nt"),
        (amd, A, 64 * MIB, 64 * MIB, 1, "avx512-nt"),
        (amd, N, KIB, KIB, 0, "avx512-nt"),
    ] {
        let path = policy.choose_fill(len as usize, total, value, hint);
        assert_eq!(path.to_string(), expected, "{} {len} of {total}, {value}", hint.name());
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
#[cfg_attr(miri, ignore = "Miri runs no instructions of the policy's")]
fn a_cpu_that_says_nothing_gets_a_threshold_all_the_same() {
    let policy = Policy::for_facts(&Facts::UNKNOWN);
    assert_eq!(policy.copy_nontemporal_from_bytes, 64 * MIB);
    assert_eq!(policy.copy_method, Method::Sse2Nt);
    assert_eq!(policy.unavailable(), None, "every x86-64 CPU has SSE2");
}

#[test]
fn the_policy_of_the_c_library_is_the_c_library() {
    for source in Hint::ALL {
        for destination in Hint::ALL {
            let hints = Hints::new(source, destination);
            assert_eq!(Policy::LIBC.choose_copy(1 << 30, 1 << 40, hints), Path::LIBC);
            assert_eq!(Policy::LIBC.choose_fill(1 << 30, 1 << 40, 0, source), Path::LIBC);
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "Miri runs no instructions of the policy's")]
fn this_cpu_can_do_what_its_own_policy_asks_for() {
    assert_eq!(Policy::for_cpu().unavailable(), None);
}

#[cfg(target_arch = "x86_64")]
#[test]
fn what_cannot_be_done_is_named() {
    let fills_with_clzero = Policy { fill_method: Method::Clzero, ..Policy::for_cpu() };
    assert_eq!(fills_with_clzero.unavailable(), Some(("fill_method", Method::Clzero)));
    let copies_with_stosb = Policy { copy_method: Method::RepStosb, ..Policy::for_cpu() };
    assert_eq!(copies_with_stosb.unavailable(), Some(("copy_method", Method::RepStosb)));
}

#[cfg(target_arch = "x86_64")]
#[test]
#[cfg_attr(miri, ignore = "Miri runs no instructions of the policy's")]
fn a_policy_that_never_takes_turns_does_not_for_a_cold_source_either() {
    let policy = Policy { turns_from_bytes: NEVER, ..Policy::for_facts(&INTEL_GUEST) };
    for source in Hint::ALL {
        let path = policy.choose_copy(1 << 30, 1 << 30, Hints::new(source, N));
        assert_eq!(path.to_string(), "avx512-nt+t0");
    }
}

/// The short cut around the policy must not change what it would say.
#[test]
fn the_short_cut_agrees_with_the_policy() {
    let early_rep = Policy { rep_movsb_from_bytes: 300, ..Policy::for_facts(&AMD) };
    for policy in [
        Policy::LIBC,
        Policy::for_facts(&INTEL_GUEST),
        Policy::for_facts(&AMD),
        Policy { rep_movsb_below_bytes: 0, ..early_rep },
        early_rep,
        Policy { rep_stosb_from_bytes: 4096, ..Policy::for_facts(&INTEL_GUEST) },
    ] {
        let (copies, fills) = (policy.plain_copies_below_bytes(), policy.plain_fills_below_bytes());
        for total in [1, 299, 300, 4096, 4097, copies - 1, fills - 1] {
            for len in [1, 256, total / 2, total] {
                let len = len.min(total) as usize;
                for (source, destination) in [(A, A), (A, T), (T, A), (T, T)] {
                    let path = policy.choose_copy(len, total, Hints::new(source, destination));
                    assert!(total >= copies || path == Path::LIBC, "{len} of {total}: {path}");
                    let path = policy.choose_fill(len, total, 0, destination);
                    assert!(total >= fills || path == Path::LIBC, "{len} of {total}: {path}");
                }
            }
        }
        assert!(policy.rep_movsb_below_bytes == 0 || copies <= policy.rep_movsb_from_bytes);
    }
}
