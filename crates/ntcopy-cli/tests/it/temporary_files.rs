//! A folder for temporary files that is gone, as after a job's end: it is named, and no option is
//! wrong.

use std::path::PathBuf;
use std::process::Command;

use crate::common::{PROGRAM, daemons_built, good, house::House, preload::library, text};

/// Fails with 1, and names the folder.
fn names_the_folder(arguments: &[&str]) {
    let place = tempfile::tempdir().unwrap();
    let gone = place.path().join("gone");
    let mut command = Command::new(PROGRAM);
    command.args(arguments).current_dir(&place).env("TMPDIR", &gone).env("HOME", place.path());
    let output = command.env_remove("XDG_DATA_HOME").output().unwrap();
    let said = text(&output.stdout) + &text(&output.stderr);
    assert!(said.contains(gone.to_str().unwrap()) && said.contains("TMPDIR"), "{said}");
    assert_eq!(output.status.code(), Some(1), "{said}");
}

#[test]
fn a_folder_for_temporary_files_that_is_gone_is_named() {
    daemons_built();
    let try_ = ["try", "--library", library(), "--anyway", "--allow-not-a-timing", "--pairs", "5"];
    names_the_folder(&[&try_[..], &["--metric", "s/^x(.*)/\\1/", "--", "echo", "x5"]].concat());
    names_the_folder(&[&try_[..], &["--load", "true", "--", "sleep", "600"]].concat());
    let http = ["bench", "http", "--quick", "--allow-not-a-timing", "--connections", "1"];
    let http = [&http[..], &["--rate", "off", "--modes", "plain", "--pairs", "5"]].concat();
    names_the_folder(&[&http[..], &["--object", "64KiB", "--dataset", "1MiB"]].concat());
    names_the_folder(&["survey", "measure", "--experiments", "memset"]);
}

#[test]
fn a_kernel_is_built_without_a_folder_for_temporary_files() {
    let house = House::new();
    let mut build = house.ntcopy(&["build"]);
    let built = good(&build.env("TMPDIR", house.path("gone")).output().unwrap());
    assert!(PathBuf::from(built.trim()).is_file());
}

#[test]
fn an_expression_is_not_wrong_where_there_is_no_sed() {
    let place = tempfile::tempdir().unwrap();
    let mut command = Command::new(PROGRAM);
    command.args(["try", "--library", library(), "--anyway", "--allow-not-a-timing", "--out"]);
    command.arg(place.path().join("record")).args(["--metric", "s/^x(.*)/\\1/", "--", "/bin/true"]);
    let output = command.env("PATH", place.path()).output().unwrap();
    let said = text(&output.stdout) + &text(&output.stderr);
    assert!(said.contains("cannot run sed"), "{said}");
    assert_eq!(output.status.code(), Some(1), "{said}");
}
