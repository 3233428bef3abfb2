//! What the environment says, and what becomes of a bad word.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::built::{alone, good, library, program, run, shared, text, watched};

#[test]
fn a_bad_setting_is_named_once_and_makes_it_inactive() {
    let calls = program("gcc", "calls").expect("gcc");
    for (variable, value) in [
        ("NTCOPY_PRELOAD_MIN_BYTES", "4k"),
        ("NTCOPY_PRELOAD_FAMILIES", "inet"),
        ("NTCOPY_PRELOAD_MODE", ""),
        ("NTCOPY_PRELOAD_FILTERS", "some"),
        ("NTCOPY_PRELOAD_ASSUME", "module"),
    ] {
        let mut command = watched(&calls);
        command.arg("none").env(variable, value);
        let output = command.output().expect("it starts");
        good(&command, &output);
        let said = text(&output.stderr);
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(said.contains(&format!("{variable} is '{value}', not ")), "{said}");
    }
}

#[test]
fn a_kernel_without_the_flag_is_asked_once_and_left_alone() {
    if ntcopy::socket::kernel_support() != ntcopy::socket::Support::None {
        println!("not run: this kernel has the flag");
        return;
    }
    let calls = program("gcc", "calls").expect("gcc");
    run(watched(&calls).arg("none").env_remove("NTCOPY_PRELOAD_ASSUME"));
}

#[test]
fn a_program_with_more_rights_than_its_user_is_left_alone() {
    // The loader loads nothing by a path there, so only a library that it finds by a name and that
    // is itself marked would come as far as asking. The program says what it is.
    let life = program("gcc", "life").expect("gcc");
    if !rustix_is_root() {
        println!("not run: only root can make a program of another user's");
        return;
    }
    let folder = tempfile::Builder::new().tempdir_in("/tmp").expect("a folder");
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("our folder");
    let marked = folder.path().join("life");
    fs::copy(&life, &marked).expect("a copy");
    fs::set_permissions(&marked, fs::Permissions::from_mode(0o4755)).expect("our copy");
    let mut command = alone(std::path::Path::new("setpriv"), &[]);
    command.args(["--reuid", "65534", "--clear-groups", "env"]);
    command.arg(format!("LD_PRELOAD={} {}", library().display(), shared("spy").display()));
    command.arg("NTCOPY_PRELOAD_MODE=bad").arg(&marked).arg("nothing");
    let output = command.output().expect("setpriv of util-linux");
    // It ran, and neither library was loaded into it.
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert_eq!(text(&output.stderr).lines().count(), 1, "{output:?}");
}

fn rustix_is_root() -> bool {
    run(alone(std::path::Path::new("id"), &[]).arg("-u")).trim() == "0"
}
