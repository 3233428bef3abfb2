//! `ntcopy footprint calibrate`: what it writes is a profile that the library takes. No test looks at a
//! figure: on a busy machine they mean nothing.

use ntcopy::profile::Profile;

use crate::common::{at_home, bench, ends, good, in_home, is_not_available};

#[test]
fn the_library_takes_the_profile_that_was_written() {
    let home = tempfile::tempdir().unwrap();
    let line = ["footprint", "calibrate", "--allow-not-a-timing", "--region", "32MiB"];
    let output = in_home(home.path(), &line);
    if is_not_available(&output, "memory") {
        return;
    }
    let said = ends(&output, 0, &[]);
    let path = home.path().join(".config/ntcopy/profile.toml");
    let profile = Profile::read(&path).expect("it is of this machine");
    assert!(!profile.measured.is_empty() && profile.policy.unavailable().is_none());
    assert!(said.contains(&format!("profile: {}\n", path.display())), "{said}");
    let line = ["memset", "--size", "64KiB", "--modes", "ours"];
    let mut probe = bench(&line, &home.path().join("record"));
    good(&probe.env("NTCOPY_PROFILE", &path).output().unwrap());
}

#[test]
fn without_a_home_it_asks_where_to_write_before_it_measures() {
    let mut homeless = at_home("/".as_ref(), &["footprint", "calibrate"]);
    ends(&homeless.env_remove("HOME").output().unwrap(), 1, &["--out FILE"]);
}
