//! `ntcopy footprint calibrate`: what it writes is a profile that the library takes. No test looks at a
//! figure: on a busy machine they mean nothing.

use std::path::Path;
use std::process::{Command, Output};

use ntcopy::profile::Profile;

use crate::common::{PROGRAM, ends, good, stderr};

fn run(args: &[&str], home: &Path) -> Output {
    Command::new(PROGRAM)
        .args(["footprint", "calibrate"])
        .args(args)
        .arg("--allow-not-a-timing")
        .env("HOME", home)
        .env_remove("XDG_CONFIG_HOME")
        .env_remove("NTCOPY_PROFILE")
        .output()
        .expect("ntcopy starts")
}

#[test]
fn the_library_takes_the_profile_that_was_written() {
    let home = tempfile::tempdir().unwrap();
    let output = run(&["--region", "32MiB"], home.path());
    let said = stderr(&output);
    if output.status.code() == Some(3) {
        assert!(said.contains("memory"), "{said}");
        return;
    }
    assert!(output.status.success(), "{said}");
    let path = home.path().join(".config/ntcopy/profile.toml");
    let profile = Profile::read(&path).expect("it is of this machine");
    assert!(!profile.measured.is_empty() && profile.policy.unavailable().is_none());
    assert!(said.contains(&format!("profile: {}\n", path.display())), "{said}");
    let probe = Command::new(PROGRAM)
        .args(["bench", "memset", "--quick", "--size", "64KiB", "--modes", "ours"])
        .args(["--allow-not-a-timing", "--out"])
        .arg(home.path().join("record"))
        .env("NTCOPY_PROFILE", &path)
        .output()
        .unwrap();
    good(&probe);
}

#[test]
fn without_a_home_it_asks_where_to_write_before_it_measures() {
    let output = Command::new(PROGRAM)
        .args(["footprint", "calibrate"])
        .env_remove("HOME")
        .env_remove("XDG_CONFIG_HOME")
        .output()
        .unwrap();
    ends(&output, 1, &["--out FILE"]);
}
