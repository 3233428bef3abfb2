//! Standard output that takes nothing more: a full disk is an error with words, a reader that is gone
//! is none.

use std::fs::File;
use std::process::{Command, Output, Stdio};

use crate::common::{PROGRAM, ends};

/// What prints by each way that the program has.
const LINES: [&str; 10] = [
    "--help",
    "--version",
    "bench --help",
    "bench list",
    "bench memcpy --list",
    "probe --json",
    "kernel list",
    "module status --json",
    "footprint --list",
    "stat --help",
];

fn printing(line: &str, to: Stdio) -> Output {
    let mut command = Command::new(PROGRAM);
    command.args(line.split(' ')).stdout(to).stderr(Stdio::piped());
    command.spawn().unwrap().wait_with_output().unwrap()
}

#[test]
fn a_full_disk_is_an_error_that_says_so() {
    for line in LINES {
        let full = File::options().write(true).open("/dev/full").unwrap();
        ends(&printing(line, full.into()), 1, &["No space left on device"]);
    }
}

#[test]
fn a_reader_that_is_gone_is_no_failure() {
    for line in LINES {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = printing(line, writer.into());
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(matches!(output.status.code(), Some(0 | 3)), "{line}: {output:?}");
        assert!(!said.contains("panicked") && !said.contains("standard output"), "{line}: {said}");
    }
}

#[test]
fn a_message_that_nobody_can_read_changes_no_exit_code() {
    for (line, code) in [
        ("report /nonexistent", 1),
        ("kernel build --kernel none", 2),
        ("module build --headers /nonexistent", 3),
        ("survey list --store /nonexistent", 1),
        ("bench pages --kernel um", 2),
        ("try --metric x -- true", 2),
        ("none", 2),
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let full = File::options().write(true).open("/dev/full").unwrap();
        for to in [Stdio::from(writer), full.into()] {
            let mut command = Command::new(PROGRAM);
            let status = command.args(line.split(' ')).stderr(to).status().unwrap();
            assert_eq!(status.code(), Some(code), "{line}: {status}");
        }
    }
}
