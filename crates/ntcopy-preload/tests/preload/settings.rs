//! What the environment says, and what becomes of a bad word.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::built::{alone, good, library, program, run, shared, text, under};

#[test]
fn a_bad_setting_is_named_once_and_makes_it_inactive() {
    let filtered = program("gcc", "filtered").expect("gcc");
    for (variable, value) in [
        ("NTCOPY_PRELOAD_MIN_BYTES", "4k"),
        ("NTCOPY_PRELOAD_MIN_BYTES", "4095"),
        ("NTCOPY_PRELOAD_FAMILIES", "inet"),
        ("NTCOPY_PRELOAD_FILTERS", "some"),
    ] {
        let mut command = alone(&filtered, &[library()]);
        command.arg("send").env(variable, value);
        let output = command.output().expect("it starts");
        good(&command, &output);
        let said = text(&output.stderr);
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(said.contains(&format!("{variable} is '{value}', not ")), "{said}");
        let mut played = under(&filtered);
        run(played.env(variable, value).args(["send", "0"]));
    }
}

#[test]
fn a_kernel_without_the_option_gets_plain_sends() {
    let filtered = program("gcc", "filtered").expect("gcc");
    run(alone(&filtered, &[library()]).arg("send"));
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
    command.arg(format!("LD_PRELOAD={} {}", library().display(), shared("early").display()));
    command.arg("NTCOPY_PRELOAD_FAMILIES=bad").arg(&marked).arg("nothing");
    let output = command.output().expect("setpriv of util-linux");
    // It ran, and neither library was loaded into it.
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert_eq!(text(&output.stderr).lines().count(), 1, "{output:?}");
}

fn rustix_is_root() -> bool {
    run(alone(std::path::Path::new("id"), &[]).arg("-u")).trim() == "0"
}
