//! What the variables may say.

use super::*;

fn read(pairs: &[(&str, &str)]) -> (Overrides, Option<String>) {
    let get = |name: &str| {
        pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| OsString::from(value))
    };
    let (overrides, bad) = Overrides::read(get);
    (overrides, bad.map(|bad| bad.to_string()))
}

#[test]
fn nothing_set_is_nothing_overridden() {
    assert_eq!(read(&[]), (Overrides::default(), None));
    let policy = Policy::for_cpu();
    assert_eq!(Overrides::default().apply(policy), policy);
}

#[test]
fn thresholds_are_bytes_with_or_without_a_unit() {
    for (text, bytes) in [
        ("0", 0),
        ("1048576", 1 << 20),
        ("512KiB", 512 << 10),
        ("24MiB", 24 << 20),
        ("1GiB", 1 << 30),
        ("never", NEVER),
    ] {
        let (overrides, bad) = read(&[(THRESHOLD_VARIABLE, text)]);
        assert_eq!((overrides.threshold_bytes, bad), (Some(bytes), None), "{text}");
        let policy = overrides.apply(Policy::for_cpu());
        assert_eq!(policy.copy_nontemporal_from_bytes, bytes);
        assert_eq!(policy.fill_nontemporal_from_bytes, bytes);
    }
}

#[test]
fn a_bad_threshold_is_named_with_its_value() {
    let texts = ["", "x", "-1", "+1", "1 MiB", "1MB", "MiB", "1.5MiB", "99999999999GiB", "1KiBx"];
    for text in texts {
        let (overrides, bad) = read(&[(THRESHOLD_VARIABLE, text)]);
        let bad = bad.unwrap_or_else(|| panic!("{text:?} was taken"));
        assert!(bad.contains(&format!("NTCOPY_THRESHOLD={text:?}: expected bytes")), "{bad}");
        assert_eq!(overrides, Overrides::default());
    }
}

#[test]
fn a_bad_instruction_set_is_named_with_those_there_are() {
    for text in ["", "mmx", "AVX2", "avx512-nt"] {
        let (_, bad) = read(&[(ISA_VARIABLE, text)]);
        let bad = bad.unwrap_or_else(|| panic!("{text:?} was taken"));
        assert!(bad.starts_with(&format!("NTCOPY_ISA={text:?}: no such")), "{bad}");
        assert!(bad.contains("libc"), "{bad}");
    }
    let missing = arch::FILL_BACKENDS.iter().filter(|backend| !backend.is_available());
    for backend in missing.filter(|backend| backend.isa != "libc") {
        let (_, bad) = read(&[(ISA_VARIABLE, backend.isa)]);
        assert!(bad.unwrap().contains("this CPU doesn't have it"), "{}", backend.isa);
    }
}

#[test]
fn a_good_variable_holds_beside_a_bad_one() {
    let (overrides, bad) = read(&[(ISA_VARIABLE, "mmx"), (THRESHOLD_VARIABLE, "1MiB")]);
    assert!(bad.unwrap().contains("NTCOPY_ISA"));
    assert_eq!(overrides.threshold_bytes, Some(1 << 20));
}

#[test]
fn an_instruction_set_is_used_wherever_it_can() {
    for backend in arch::COPY_BACKENDS.iter().filter(|backend| backend.is_available()) {
        let (overrides, bad) = read(&[(ISA_VARIABLE, backend.isa)]);
        assert_eq!((overrides.isa, bad), (Some(backend.isa), None));
        let policy = overrides.apply(Policy::for_cpu());
        assert_eq!(policy.unavailable(), None);
        if backend.method.is_nontemporal() {
            assert_eq!(policy.copy_method, backend.method);
        }
    }
    for backend in arch::FILL_BACKENDS.iter().filter(|backend| backend.is_available()) {
        let policy = read(&[(ISA_VARIABLE, backend.isa)]).0.apply(Policy::for_cpu());
        if backend.method.is_nontemporal() {
            assert_eq!(policy.zero_method, backend.method);
            assert_eq!(policy.fill_method == backend.method, !backend.zero_only);
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn no_wider_instruction_than_the_one_asked_for() {
    use crate::hint::{Hint, Hints};
    let policy = read(&[(ISA_VARIABLE, "sse2")]).0.apply(Policy::for_cpu());
    for source in Hint::ALL {
        for destination in Hint::ALL {
            for len in [256, 1 << 16, 1 << 30] {
                let path = policy.choose_copy(len, len as u64, Hints::new(source, destination));
                assert!(!path.name().starts_with("avx"), "{path}");
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn rep_and_libc_never_stream() {
    use crate::hint::Hints;
    use crate::path::Path;
    let rep = read(&[(ISA_VARIABLE, "rep")]).0.apply(Policy::for_cpu());
    assert_eq!(rep.choose_copy(4096, 1 << 40, Hints::AUTO), Path::of(Method::RepMovsb));
    let libc = read(&[(ISA_VARIABLE, "libc")]).0.apply(Policy::for_cpu());
    assert_eq!(libc.choose_copy(4096, 1 << 40, Hints::NONTEMPORAL), Path::LIBC);
}

#[test]
fn turns_are_taken_by_their_names() {
    for turns in Turns::ALL {
        let (overrides, bad) = read(&[(TURNS_VARIABLE, turns.name())]);
        assert_eq!((overrides.turns, bad), (Some(turns), None));
        let policy = overrides.apply(Policy::for_cpu());
        assert_eq!((policy.turns, policy.turns_from_bytes), (turns, turns.group_bytes()));
    }
    for text in ["", "4", "3x64", "4x64 ", "interleaved"] {
        let (overrides, bad) = read(&[(TURNS_VARIABLE, text)]);
        let bad = bad.unwrap_or_else(|| panic!("{text:?} was taken"));
        assert!(bad.contains("expected one of none, 4x64"), "{bad}");
        assert_eq!(overrides.turns, None);
    }
}
