//! A record of somebody else that is no file with an end: each verb that reads records says so.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};

use ntcopy_record::FILE_NAME;
use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::common::{PROGRAM, ends, good, store::write, text};
use crate::synthetic;

/// The program, with an end to what it takes: a reader without one runs out of memory, or of time.
fn bounded(home: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -v 4194304; exec timeout 60 \"$@\"", "sh", PROGRAM]);
    command.args(arguments).current_dir(home).env("HOME", home).env_remove("XDG_DATA_HOME");
    command.output().expect("the program starts")
}

/// Folders whose record is none, and how that is said.
fn places(home: &Path) -> Vec<(&'static str, &'static str)> {
    let at = |name: &str| {
        fs::create_dir(home.join(name)).unwrap();
        home.join(name).join(FILE_NAME)
    };
    symlink("/dev/zero", at("zero")).unwrap();
    mknodat(CWD, at("fifo"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    File::create(at("huge")).unwrap().set_len(1 << 40).unwrap();
    vec![("zero", "it is a device"), ("fifo", "it is a FIFO"), ("huge", "it is larger than 64 MiB")]
}

#[test]
fn every_verb_that_reads_records_refuses_what_has_no_end_and_says_why() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    write(home, &synthetic::synthetic_rounds());
    let record = synthetic::synthetic_rounds().header.id;
    for (place, why) in places(home) {
        ends(&bounded(home, &["report", place]), 1, &[why]);
        ends(&bounded(home, &["report", &record, "--against", place]), 1, &[why]);
        ends(&bounded(home, &["report", place, "--out", "page.html"]), 1, &[why]);
        let file = format!("{place}/{FILE_NAME}");
        ends(&bounded(home, &["report", &file]), 1, &[why]);
        ends(&bounded(home, &["survey", "--store", "s", "add", place]), 1, &[why]);
        let output = bounded(home, &["advise", place]);
        assert!(good(&output).contains(why), "{}", text(&output.stdout));
        let output = bounded(home, &["advise", &file]);
        assert!(good(&output).contains(why), "{}", text(&output.stdout));
    }
    ends(&bounded(home, &["report", "/dev/zero"]), 1, &["it is a device"]);
}
