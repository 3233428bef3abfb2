//! What is read, what is refused, and where it is looked for.

use super::*;
use crate::path::Prefetch;
use crate::policy::NEVER;

fn profile() -> Profile {
    Profile {
        date: "2026-11-21".into(),
        machine: ProfiledMachine::this(),
        policy: Policy::for_cpu(),
        measured: [("copy_cold_256mib_mib_per_s".to_owned(), 13_700)].into(),
    }
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

#[test]
fn what_is_written_is_read() {
    let folder = folder();
    let path = folder.path().join("new/folder/profile.toml");
    profile().write(&path).unwrap();
    assert_eq!(Profile::read(&path).unwrap(), profile());
    let beside = fs::read_dir(path.parent().unwrap()).unwrap().count();
    assert_eq!(beside, 1, "nothing is left beside it");
}

#[test]
fn what_stands_in_a_profile_is_what_paths_are_called() {
    let text = |value| toml::Value::as_str(&value).unwrap().to_owned();
    for method in Method::ALL {
        assert_eq!(text(toml::Value::try_from(method).unwrap()), method.name());
    }
    for prefetch in Prefetch::ALL {
        assert_eq!(text(toml::Value::try_from(prefetch).unwrap()), prefetch.name());
    }
}

#[test]
fn sizes_that_nothing_reaches_survive() {
    let never = Profile { policy: Policy::LIBC, ..profile() };
    let text = never.to_toml();
    assert!(text.contains("nontemporal_from_bytes = \"never\""), "{text}");
    let read = Profile::from_toml(&text).unwrap();
    assert_eq!(read.policy.copy_nontemporal_from_bytes, NEVER);
    assert_eq!(read, never);
}

#[test]
fn another_machines_profile_is_refused_with_what_differs() {
    let folder = folder();
    let path = folder.path().join("profile.toml");
    let mine = ProfiledMachine::this();
    for (machine, part) in [
        (
            ProfiledMachine { signature: "GenuineIntel-6-85-7".into(), ..mine.clone() },
            "GenuineIntel-6-85-7",
        ),
        (ProfiledMachine { l2_bytes: mine.l2_bytes + 1024, ..mine.clone() }, "of level 2"),
        (ProfiledMachine { l3_bytes: mine.l3_bytes + 1024, ..mine.clone() }, "of level 3"),
        (ProfiledMachine { is_guest: !mine.is_guest, ..mine.clone() }, "guest"),
    ] {
        Profile { machine, ..profile() }.write(&path).unwrap();
        let error = Profile::read(&path).unwrap_err();
        assert!(matches!(error, ProfileError::OtherMachine { .. }), "{error}");
        let text = error.to_string();
        assert!(text.contains(part) && text.contains("ntcopy footprint calibrate"), "{text}");
        assert!(text.contains(&path.display().to_string()), "{text}");
    }
    let renamed = ProfiledMachine { model_name: "another name of it".into(), ..mine };
    Profile { machine: renamed, ..profile() }.write(&path).unwrap();
    Profile::read(&path).expect("the name is for people");
}

#[test]
fn what_this_cpu_cannot_do_is_refused_by_name() {
    let folder = folder();
    let path = folder.path().join("profile.toml");
    let policy = Policy { copy_method: Method::RepStosq, ..Policy::for_cpu() };
    Profile { policy, ..profile() }.write(&path).unwrap();
    let text = Profile::read(&path).unwrap_err().to_string();
    assert!(text.contains("copy_method = \"rep-stosq\""), "{text}");
}

#[test]
fn stores_past_the_caches_for_what_is_to_stay_there_are_refused_by_name() {
    let folder = folder();
    let path = folder.path().join("profile.toml");
    let nt = Method::Sse2Nt;
    for (field, policy) in [
        ("temporal_method", Policy { temporal_method: nt, ..Policy::for_cpu() }),
        (
            "nontemporal_source_method",
            Policy { nontemporal_source_method: nt, ..Policy::for_cpu() },
        ),
        ("insisted_copy_method", Policy { insisted_copy_method: nt, ..Policy::for_cpu() }),
        ("insisted_fill_method", Policy { insisted_fill_method: nt, ..Policy::for_cpu() }),
    ] {
        Profile { policy, ..profile() }.write(&path).unwrap();
        let error = Profile::read(&path).unwrap_err();
        assert!(matches!(error, ProfileError::Nontemporal { .. }), "{error}");
        assert!(error.to_string().contains(&format!("{field} = \"sse2-nt\"")), "{error}");
    }
}

#[test]
fn what_is_no_profile_is_refused_with_the_place() {
    let policy = Policy { copy_prefetch: Prefetch::T0, ..Policy::for_cpu() };
    let good = Profile { policy, ..profile() }.to_toml();
    for (from, to, expected) in [
        ("format = 3", "format = 2", "format 2, and this library knows 3"),
        ("copy_prefetch = \"t0\"", "copy_prefetch = \"t9\"", "unknown variant `t9`"),
        ("turns = \"", "turns = \"x", "no such turns: \"x"),
        ("zero_method = \"", "zero_method = \"x", "unknown variant `x"),
        ("[policy]", "[lib]", "lib"),
        ("fill_nontemporal_from_bytes = ", "fill_nontemporal_from_bytes = -", "expected bytes"),
    ] {
        assert!(good.contains(from), "{from} in {good}");
        let error = Profile::from_toml(&good.replace(from, to)).unwrap_err();
        assert!(error.contains(expected), "{to}: {error}");
    }
    assert!(Profile::from_toml("").is_err());
}

#[test]
fn profiles_are_looked_for_where_it_says() {
    let candidates = |pairs: &[(&str, &str)]| {
        let get = |name: &str| {
            pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| OsString::from(value))
        };
        super::candidates(get).iter().map(|path| path.display().to_string()).collect::<Vec<_>>()
    };
    let home = ("HOME", "/home/a");
    assert_eq!(candidates(&[home]), ["/home/a/.config/ntcopy/profile.toml", SYSTEM_PATH]);
    let config = ("XDG_CONFIG_HOME", "/x");
    assert_eq!(candidates(&[home, config]), ["/x/ntcopy/profile.toml", SYSTEM_PATH]);
    let relative = ("XDG_CONFIG_HOME", "x");
    assert_eq!(candidates(&[home, relative])[0], "/home/a/.config/ntcopy/profile.toml");
    assert_eq!(candidates(&[]), [SYSTEM_PATH]);
    assert_eq!(candidates(&[home, (PROFILE_VARIABLE, "/p.toml")]), ["/p.toml"]);
    assert_eq!(candidates(&[home, (PROFILE_VARIABLE, "none")]), Vec::<String>::new());
}

#[test]
fn a_profile_that_was_named_must_exist_and_others_need_not() {
    let folder = folder();
    let here = folder.path().to_owned();
    let missing = here.join("missing.toml");
    let named = |name: &str| (name == PROFILE_VARIABLE).then(|| missing.clone().into_os_string());
    assert!(matches!(find(named), Err(ProfileError::Read { .. })));

    let config = |name: &str| (name == "XDG_CONFIG_HOME").then(|| here.clone().into_os_string());
    let own = user_path(config).unwrap();
    if !Path::new(SYSTEM_PATH).exists() {
        assert_eq!(find(config).unwrap(), None);
    }
    profile().write(&own).unwrap();
    assert_eq!(find(config).unwrap().unwrap(), Found { path: own, profile: profile() });
}

#[test]
fn what_has_no_end_is_refused_and_not_read() {
    let folder = folder();
    let fifo = folder.path().join("fifo");
    let status = std::process::Command::new("mkfifo").arg(&fifo).status().unwrap();
    assert!(status.success());
    for path in [fifo.as_path(), Path::new("/dev/zero")] {
        let error = Profile::read(path).unwrap_err();
        let ProfileError::Read { cause, .. } = error else { panic!("{error}") };
        assert_eq!(cause.to_string(), "it is not a regular file");
    }
    let huge = folder.path().join("huge");
    File::create(&huge).unwrap().set_len(1 << 40).unwrap();
    assert!(matches!(Profile::read(&huge), Err(ProfileError::Format { .. })));
}
