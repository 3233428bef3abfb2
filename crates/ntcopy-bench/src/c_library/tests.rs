use super::*;
use ntcopy::cpu::{Cache, CacheKind};

/// What Debian 12's glibc 2.36 prints.
const PRINTED: &str = "\
glibc.cpu.x86_shared_cache_size: 0x12e00000 (min: 0x0, max: 0xffffffffffffffff)
glibc.cpu.x86_non_temporal_threshold: 0x7200000 (min: 0x4040, max: 0xfffffffffffffff)
glibc.cpu.x86_shstk:
glibc.malloc.tcache_count: 0x0 (min: 0x0, max: 0xffffffffffffffff)
glibc.rtld.nns: 4 (min: 1, max: 16)
";

#[test]
fn tunables_are_read_in_bytes() {
    assert_eq!(tunable_value(PRINTED, MEMCPY_TUNABLE), Some(114 << 20));
    assert_eq!(tunable_value(PRINTED, MEMSET_TUNABLE), None);
    assert_eq!(tunable_value(PRINTED, "glibc.cpu.x86_shstk"), None, "no value");
    assert_eq!(tunable_value(PRINTED, "glibc.rtld.nns"), Some(4), "decimal");
    assert_eq!(tunable_value(PRINTED, "glibc.cpu.x86_non_temporal"), None, "a prefix");
}

#[test]
fn the_environment_sets_whole_names_only() {
    let text = format!("glibc.rtld.nns=4:{MEMCPY_TUNABLE}=0x1000");
    assert!(sets_tunable(&text, MEMCPY_TUNABLE));
    assert!(!sets_tunable(&text, MEMSET_TUNABLE));
    assert!(!sets_tunable("", MEMCPY_TUNABLE));
    assert!(!sets_tunable(MEMCPY_TUNABLE, MEMCPY_TUNABLE), "no value");
}

#[test]
fn the_loader_is_found_in_a_process_map() {
    let maps = "\
55d0-55d1 r--p 0 fe:00 1 /usr/bin/true
7f00-7f01 r--p 0 fe:00 2 /usr/lib/x86_64-linux-gnu/libc.so.6
7f02-7f03 r--p 0 fe:00 3 /usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2
7ffe-7fff rw-p 0 00:00 0 [stack]
";
    let expected = "/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2";
    assert_eq!(loader_in(maps).as_deref(), Some(Path::new(expected)));
    assert_eq!(loader_in("7ffe-7fff rw-p 0 00:00 0 [stack]\n"), None);
}

#[test]
fn this_libc_answers() {
    let libc = Libc::detect();
    if libc.name == "glibc" {
        assert!(libc.version.split('.').all(|part| part.parse::<u32>().is_ok()), "{libc:?}");
    }
    if let Some(bytes) = libc.memcpy_nt_threshold_bytes {
        // The tunable's own lower bound in glibc.
        assert!(bytes >= 0x4040, "{libc:?}");
    }
}

fn cpu(l3: u64, legacy: u64) -> Cpu {
    let mut cpu = Cpu::detect();
    cpu.vendor = "AuthenticAMD".into();
    cpu.hypervisor = None;
    cpu.caches = vec![Cache {
        level: 3,
        kind: CacheKind::Unified,
        size_bytes: l3,
        ways: 16,
        line_bytes: 64,
        sets: 32768,
        shared_by_cpus: Some(16),
        inclusive: Some(false),
    }];
    cpu.sysfs_caches.clear();
    cpu.legacy_l3_bytes = Some(legacy);
    cpu
}

fn glibc(threshold: u64, l3: u64) -> Libc {
    Libc {
        name: "glibc".into(),
        version: "2.36".into(),
        memcpy_nt_threshold_bytes: Some(threshold),
        memset_nt_threshold_bytes: None,
        source: "a test",
        memcpy_threshold_chosen: false,
        l3_believed_bytes: Some(l3),
    }
}

const MIB: u64 = 1 << 20;

#[test]
fn the_whole_sockets_cache_is_a_warning_with_its_cause_and_its_cure() {
    let warning = glibc(288 * MIB, 384 * MIB).warning(&cpu(32 * MIB, 384 * MIB)).unwrap();
    assert_eq!(
        warning.what,
        "glibc 2.36: it believes in 384.0 MiB of level-3 cache, and its memcpy goes \
         non-temporal only from 288.0 MiB on, beyond the whole cache (legacy CPUID leaf \
         0x80000006: the whole socket); CPUID's modern leaf says that one CPU sees 32.0 MiB"
    );
    let expected = "GLIBC_TUNABLES=glibc.cpu.x86_non_temporal_threshold=25165824";
    assert_eq!(warning.fix.as_deref(), Some(expected));
}

#[test]
fn a_fitting_belief_is_no_warning() {
    assert_eq!(glibc(24 * MIB, 32 * MIB).warning(&cpu(32 * MIB, 32 * MIB)), None);
    assert_eq!(glibc(114 * MIB, 300 * MIB).warning(&cpu(300 * MIB, 300 * MIB)), None);
    assert_eq!(glibc(32 * MIB, 32 * MIB).warning(&cpu(32 * MIB, 32 * MIB)), None);
}

#[test]
fn a_threshold_far_below_the_cache_is_a_warning_without_the_sockets_cause() {
    let warning = glibc(MIB, 32 * MIB).warning(&cpu(32 * MIB, 32 * MIB)).unwrap();
    assert!(warning.what.contains("from 1.0 MiB on, far below"), "{}", warning.what);
    assert!(!warning.what.contains("legacy"), "{}", warning.what);
}

#[test]
fn a_chosen_threshold_and_another_libc_are_not_judged() {
    let wrong = glibc(288 * MIB, 384 * MIB);
    let cpu = cpu(32 * MIB, 384 * MIB);
    let chosen = Libc { memcpy_threshold_chosen: true, ..wrong.clone() };
    assert_eq!(chosen.warning(&cpu), None);
    assert_eq!(Libc { name: "musl".into(), ..wrong }.warning(&cpu), None);
}

#[test]
fn a_low_threshold_is_named_where_no_level_three_is_known() {
    let mut hidden = cpu(32 * MIB, 0);
    hidden.caches.clear();
    let warning = glibc(384 << 10, 0).warning(&hidden).unwrap();
    let expected = "glibc 2.36: its memcpy goes non-temporal from 384 KiB on, and CPUID tells of no \
                    level-3 cache";
    assert!(warning.what.starts_with(expected), "{}", warning.what);
    assert_eq!(warning.fix, None, "nobody knows the number");
    assert_eq!(glibc(24 * MIB, 0).warning(&hidden), None);
    let chosen = Libc { memcpy_threshold_chosen: true, ..glibc(384 << 10, 0) };
    assert_eq!(chosen.warning(&hidden), None);
}

#[test]
fn a_cache_that_is_doubted_judges_nothing() {
    let mut guest = cpu(480 * MIB, 480 * MIB);
    guest.hypervisor = Some("KVMKVMKVM".into());
    assert_eq!(glibc(24 * MIB, 32 * MIB).warning(&guest), None);
    guest.hypervisor = None;
    assert!(glibc(24 * MIB, 32 * MIB).warning(&guest).is_some());
}
