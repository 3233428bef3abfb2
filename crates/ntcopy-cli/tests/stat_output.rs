//! `ntcopy stat` as a user sees it: from files of counters, and in a kernel that counts.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// The counters of a kernel that did a bit of everything.
const COUNTERS: &str = "nontemporal_bytes 750\nfits_cache_bytes 150\ntoo_small_bytes 40\n\
                        read_by_kernel_bytes 50\nnot_supported_bytes 10\n";

fn stat(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ntcopy"));
    command.arg("stat").args(arguments);
    command
}

fn output(arguments: &[&str]) -> Output {
    stat(arguments).output().expect("the program starts")
}

fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

fn json(line: &str) -> Value {
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in {line}"))
}

/// A folder with a file of counters, and the file's name.
fn recorded(text: &str) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("ntcopy_stat");
    fs::write(&path, text).expect("the file can be written");
    let path = path.to_str().expect("a temporary path in UTF-8").to_owned();
    (folder, path)
}

fn this_kernel_counts() -> bool {
    Path::new("/proc/net/ntcopy_stat").exists()
}

#[test]
fn once_prints_every_reason_with_its_share() {
    let (_folder, path) = recorded(COUNTERS);
    let text = stdout(&output(&["--file", &path, "--once"]));
    for (reason, share) in [
        ("non-temporal", "75.0 %"),
        ("fits cache", "15.0 %"),
        ("too small", "4.0 %"),
        ("read by kernel", "5.0 %"),
        ("not supported", "1.0 %"),
    ] {
        let line = text.lines().find(|line| line.trim_start().starts_with(reason));
        assert!(line.is_some_and(|line| line.contains(share)), "{reason}: {text}");
    }
    let object = json(&stdout(&output(&["--file", &path, "--once", "--json"])));
    assert_eq!(object["hinted_total_bytes"], 1000);
    assert_eq!(object["nontemporal_share"], 0.75);
    assert_eq!(object["total_bytes"]["too_small_bytes"], 40);
}

#[test]
fn what_an_earlier_interface_counted_is_shown_under_its_own_name() {
    let earlier = "nontemporal_bytes 60\nchecksummed_bytes 30\nsoftware_tls_bytes 10\n";
    let (_folder, path) = recorded(earlier);
    let text = stdout(&output(&["--file", &path, "--once"]));
    for (reason, share) in [("checksummed_bytes", "30.0 %"), ("software_tls_bytes", "10.0 %")] {
        let line = text.lines().find(|line| line.trim_start().starts_with(reason));
        assert!(line.is_some_and(|line| line.contains(share)), "{reason}: {text}");
    }
}

#[test]
fn count_ends_it_and_counters_that_rest_have_no_share() {
    let (_folder, path) = recorded(COUNTERS);
    let arguments = ["--file", &path, "--interval", "5ms", "--count", "3"];
    let text = stdout(&output(&arguments));
    let lines: Vec<&str> = text.lines().collect();
    // What was before, the head, three lines, and what the three were together.
    assert_eq!(lines.len(), 6, "{text}");
    assert!(lines[0].contains("1.00 kB were hinted"), "{text}");
    assert!(lines[1].trim_start().starts_with("hinted/s"), "{text}");
    assert!(lines[5].ends_with("no bytes were hinted."), "{text}");

    let text = stdout(&output(&[&arguments[..], &["--json"]].concat()));
    assert_eq!(text.lines().count(), 3, "{text}");
    for line in text.lines() {
        let object = json(line);
        assert!(object["nontemporal_share"].is_null(), "{line}");
        assert_eq!(object["bytes_per_second"]["nontemporal_bytes"], 0);
        assert_eq!(object["total_bytes"]["nontemporal_bytes"], 750);
        assert!(object["interval_ns"].as_u64().unwrap() >= 1_000_000, "{line}");
    }
}

/// A `stat --json` that runs until it is ended, and its lines.
fn watching(path: &str) -> (Child, impl Iterator<Item = Value>) {
    let mut child = stat(&["--file", path, "--interval", "5ms", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    (child, lines.map(|line| json(&line.expect("a line"))))
}

/// Replaces the file, so that nobody reads half of it.
fn replace(path: &str, text: &str) {
    let new = format!("{path}.new");
    fs::write(&new, text).expect("the file can be written");
    fs::rename(&new, path).expect("the file can be renamed");
}

#[test]
fn what_is_added_is_seen_and_a_signal_ends_it_well() {
    let (_folder, path) = recorded(COUNTERS);
    let (mut child, mut lines) = watching(&path);
    assert_eq!(lines.next().expect("a line")["hinted_bytes_per_second"], 0);
    replace(&path, &COUNTERS.replace(" 750", " 1050").replace(" 40", " 140"));
    let line = lines.find(|line| line["hinted_bytes_per_second"] != 0).expect("a line");
    assert_eq!(line["added_bytes"]["nontemporal_bytes"], 300);
    assert_eq!(line["added_bytes"]["too_small_bytes"], 100);
    assert_eq!(line["added_bytes"]["fits_cache_bytes"], 0);
    assert_eq!(line["nontemporal_share"], 0.75);
    assert_eq!(line["total_bytes"]["nontemporal_bytes"], 1050);

    kill_process(Pid::from_child(&child), Signal::INT).expect("the child lives");
    assert!(lines.all(|line| line["hinted_bytes_per_second"] == 0));
    assert!(child.wait().expect("the child ends").success());
}

#[test]
fn a_closed_pipe_ends_it_without_a_word() {
    let (_folder, path) = recorded(COUNTERS);
    let (mut child, mut lines) = watching(&path);
    lines.next().expect("a line");
    drop(lines);
    assert!(child.wait().expect("the child ends").success());
    let mut said = String::new();
    child.stderr.take().expect("a pipe").read_to_string(&mut said).expect("UTF-8");
    assert_eq!(said, "");
}

#[test]
fn counters_that_fall_or_vanish_or_are_not_understood_fail() {
    for (later, says) in [
        (Some(COUNTERS.replace(" 750", " 749")), "went from 750 to 749"),
        (Some("nontemporal_bytes many\n".to_owned()), "line 1: expected"),
        (None, "is gone"),
    ] {
        let (_folder, path) = recorded(COUNTERS);
        let (mut child, mut lines) = watching(&path);
        lines.next().expect("a line");
        match later {
            Some(text) => replace(&path, &text),
            None => fs::remove_file(&path).expect("the file is there"),
        }
        assert_eq!(lines.by_ref().filter(|line| line["hinted_bytes_per_second"] != 0).count(), 0);
        assert_eq!(child.wait().expect("the child ends").code(), Some(1));
        let mut said = String::new();
        child.stderr.take().expect("a pipe").read_to_string(&mut said).expect("UTF-8");
        assert!(said.contains(says), "{says}: {said}");
    }
}

#[test]
fn a_kernel_without_the_counters_is_told_from_a_wrong_question() {
    let absent = output(&["--once"]);
    if this_kernel_counts() {
        assert!(absent.status.success(), "{absent:?}");
    } else {
        assert_eq!(absent.status.code(), Some(3), "{absent:?}");
        let said = String::from_utf8_lossy(&absent.stderr).into_owned();
        assert!(said.contains("does not know MSG_NTCOPY"), "{said}");
    }
    // No process has the largest number.
    let nobody = output(&["--once", "--pid", "4294967295"]);
    assert_eq!(nobody.status.code(), Some(1), "{nobody:?}");
    assert_eq!(output(&["--once", "--file", "/nonexistent"]).status.code(), Some(1));
}

#[test]
fn usage_errors_are_two() {
    for arguments in [
        &["--interval", "soon"][..],
        &["--interval", "0"],
        &["--count", "0"],
        &["--once", "--count", "2"],
        &["--pid", "0"],
        &["--pid", "1", "--file", "x"],
        &["extra"],
    ] {
        assert_eq!(output(arguments).status.code(), Some(2), "{arguments:?}");
    }
}

#[test]
fn in_a_kernel_that_counts_hinted_sends_are_seen() {
    let program = env!("CARGO_BIN_EXE_ntcopy");
    let script = format!(
        "{program} unix-nt-bench 1048576 64 1 524288 524288 >&2 && {program} stat --once --json && \
         {program} stat --json --interval 10ms --count 2 --pid $$"
    );
    let output = Command::new(program)
        .args(["kernel", "boot", "--timeout", "60", "--", "sh", "-c", &script])
        .output()
        .expect("the program starts");
    let text = stdout(&output);
    let lines: Vec<Value> = text.lines().map(json).collect();
    assert_eq!(lines.len(), 3, "{text}");
    let hinted = lines[0]["hinted_total_bytes"].as_u64().expect("a number");
    assert!(hinted >= 64 << 20, "{text}");
    for line in &lines[1..] {
        assert_eq!(line["total_bytes"], lines[0]["total_bytes"], "{text}");
    }
}
