//! What the environment of a process does to it, seen from outside: this test starts itself.

use std::path::Path;
use std::process::{Command, Output};

use ntcopy::profile::{Profile, ProfiledMachine, SYSTEM_PATH};
use ntcopy::{Hints, Method, Policy, Settings, copy, init};

/// Runs [`child`] in a process of its own.
fn run(what: &str, environment: &[(&str, &str)]) -> Output {
    command(what, environment).output().unwrap()
}

fn command(what: &str, environment: &[(&str, &str)]) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["child", "--exact", "--ignored", "--nocapture", "--test-threads=1"]);
    for name in ["NTCOPY_ISA", "NTCOPY_THRESHOLD", "NTCOPY_TURNS", "NTCOPY_PROFILE"] {
        command.env_remove(name);
    }
    command.env("NTCOPY_PROFILE", "none").env("CHILD_DOES", what);
    command.envs(environment.iter().copied());
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
#[ignore = "the process that the other tests start"]
fn child() {
    let (mut to, from) = (vec![0; 4096], vec![1; 4096]);
    match std::env::var("CHILD_DOES").as_deref() {
        Ok("init") => match init() {
            Ok(settings) => println!("settings: {settings:?}"),
            Err(error) => println!("error: {error}"),
        },
        Ok("count") => {
            let before = reads();
            let between = reads();
            copy(&mut to, &from, Hints::NONTEMPORAL_DESTINATION);
            println!("read: {:?}", (between - before, reads() - between));
        }
        Ok("copy") => {
            println!("path: {}", copy(&mut to, &from, Hints::NONTEMPORAL_DESTINATION));
            println!("auto: {}", copy(&mut to, &from, Hints::AUTO));
            println!("origin: {:?}", Settings::current().origin);
        }
        _ => println!("nothing to do"),
    }
}

/// The calls of read(2) and its kind of this process so far.
fn reads() -> u64 {
    let counts = std::fs::read_to_string("/proc/self/io").unwrap();
    let line = counts.lines().find_map(|line| line.strip_prefix("syscr: "));
    line.unwrap().parse().unwrap()
}

#[test]
fn the_first_copy_reads_no_file_where_there_is_no_profile() {
    if Path::new(SYSTEM_PATH).exists() || !Path::new("/proc/self/io").exists() {
        println!("not run: this machine has a profile, or a kernel that doesn't count");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().to_str().unwrap();
    let mut command = command("count", &[("HOME", home), ("XDG_CONFIG_HOME", home)]);
    let said = text(&command.env_remove("NTCOPY_PROFILE").output().unwrap().stdout);
    let counted = said.split("read: (").nth(1).unwrap().split(')').next().unwrap();
    let (looking, copying) = counted.split_once(", ").unwrap();
    assert_eq!(looking, copying, "calls to read the count, and with a copy");
}

#[test]
fn a_bad_variable_is_an_error_of_init_and_nothing_is_printed() {
    let output = run("init", &[("NTCOPY_ISA", "mmx")]);
    let said = text(&output.stdout);
    assert!(said.contains("error: NTCOPY_ISA=\"mmx\": no such instruction set"), "{said}");
    assert_eq!(text(&output.stderr), "");
}

#[test]
fn a_bad_variable_is_said_once_where_nobody_asked() {
    let output = run("copy", &[("NTCOPY_THRESHOLD", "12 parsecs")]);
    let said = text(&output.stderr);
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.starts_with("ntcopy: NTCOPY_THRESHOLD=\"12 parsecs\": expected bytes"), "{said}");
    assert!(text(&output.stdout).contains("origin: Cpuid"));
}

#[test]
fn good_variables_are_obeyed_without_a_word() {
    let output = run("copy", &[("NTCOPY_ISA", "libc"), ("NTCOPY_THRESHOLD", "never")]);
    assert!(text(&output.stdout).contains("path: libc"), "{output:?}");
    assert_eq!(text(&output.stderr), "");
    if cfg!(target_arch = "x86_64") {
        let output = run("copy", &[("NTCOPY_ISA", "movnti"), ("NTCOPY_THRESHOLD", "4KiB")]);
        let said = text(&output.stdout);
        assert!(said.contains("path: movnti") && said.contains("auto: movnti"), "{said}");
    }
}

#[test]
fn a_profile_is_gone_by_and_another_machines_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("profile.toml");
    let name = path.to_str().unwrap();
    let mut policy = Policy::for_cpu();
    policy.copy_nontemporal_from_bytes = 4096;
    let mut profile = Profile {
        date: "2026-11-21".into(),
        machine: ProfiledMachine::this(),
        policy,
        measured: Default::default(),
    };
    profile.write(&path).unwrap();
    let output = run("copy", &[("NTCOPY_PROFILE", name)]);
    let said = text(&output.stdout);
    assert!(said.contains(&format!("origin: Profile({path:?})")), "{said}");
    let streams = profile.policy.copy_method != Method::Libc;
    assert_eq!(!said.contains("auto: libc"), streams, "{said}");

    profile.machine.signature = "Elsewhere-1-2-3".into();
    profile.write(&path).unwrap();
    let output = run("copy", &[("NTCOPY_PROFILE", name)]);
    let said = text(&output.stderr);
    assert!(said.contains("is of another machine: Elsewhere-1-2-3"), "{said}");
    assert!(text(&output.stdout).contains("origin: Cpuid"));
}
