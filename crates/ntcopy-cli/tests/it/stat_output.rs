//! `ntcopy stat` as a user sees it: from files of counters, and in a kernel that counts.

use std::fs;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::common::{PROGRAM, ends, good, in_um, json, ntcopy, project};

/// The counters of a kernel that did a bit of everything.
const COUNTERS: &str = "nontemporal_bytes 750\nfits_cache_bytes 150\ntoo_small_bytes 40\n\
                        read_by_kernel_bytes 50\nnot_supported_bytes 10\n";

fn output(arguments: &[&str]) -> Output {
    ntcopy(&[&["stat"], arguments].concat())
}

/// A folder with a file of counters, and the file's name.
fn recorded(text: &str) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("ntcopy_stat");
    fs::write(&path, text).expect("the file can be written");
    let path = path.to_str().expect("a temporary path in UTF-8").to_owned();
    (folder, path)
}

#[test]
fn every_reason_has_its_share_also_those_of_an_earlier_interface() {
    let text = format!("{COUNTERS}checksummed_bytes 1000\n");
    let (_folder, path) = recorded(&text);
    let text = good(&output(&["--file", &path]));
    for (reason, share) in [
        ("non-temporal", "37.5 %"),
        ("fits cache", "7.5 %"),
        ("too small", "2.0 %"),
        ("read by kernel", "2.5 %"),
        ("not supported", "0.5 %"),
        ("checksummed_bytes", "50.0 %"),
    ] {
        let line = text.lines().find(|line| line.trim_start().starts_with(reason));
        assert!(line.is_some_and(|line| line.contains(share)), "{reason}: {text}");
    }
    assert!(text.lines().all(|line| line.len() <= 80), "{text}");
    assert!(text.contains("  too small         40 bytes    2.0 %  pieces below"), "{text}");
    let object = json(&good(&output(&["--file", &path, "--json"])));
    assert_eq!(object["hinted_total_bytes"], 2000);
    assert_eq!(object["nontemporal_share"], 0.375);
    assert_eq!(object["total_bytes"]["too_small_bytes"], 40);
}

#[test]
fn where_nothing_was_hinted_there_is_no_share() {
    let (_folder, path) = recorded("nontemporal_bytes 0\ntoo_small_bytes 0\n");
    let text = good(&output(&["--file", &path]));
    assert!(text.lines().skip(1).all(|line| line.contains(" -")), "{text}");
    let object = json(&good(&output(&["--file", &path, "--json"])));
    assert!(object["nontemporal_share"].is_null(), "{object}");
}

#[test]
fn counters_that_are_not_understood_fail() {
    let (_folder, path) = recorded("nontemporal_bytes many\n");
    ends(&output(&["--file", &path]), 1, &["line 1: expected"]);
}

#[test]
fn a_kernel_without_the_counters_is_told_from_a_wrong_question_and_is_a_metric() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("ntcopy.prom");
    let counts = Path::new("/proc/net/ntcopy_stat").exists();
    for arguments in [&[][..], &["--prometheus", "--out", out.to_str().expect("UTF-8")]] {
        let said = ends(&output(arguments), if counts { 0 } else { 3 }, &[]);
        assert_eq!(said.contains("does not know MSG_NTCOPY"), !counts, "{said}");
    }
    let text = fs::read_to_string(&out).expect("it was written");
    assert!(text.contains(&format!("\nntcopy_available {}\n", u8::from(counts))), "{text}");
    assert_eq!(text.contains("ntcopy_hinted_bytes_total"), counts, "{text}");
    // No process has the largest number.
    ends(&output(&["--pid", "4294967295"]), 1, &["no process 4294967295"]);
    ends(&output(&["--file", "/nonexistent"]), 1, &["no file /nonexistent"]);
}

/// What promtool says of a text: nothing, if it is as it should be. None where there is no promtool.
fn promtool_says(text: &str) -> Option<String> {
    let mut command = Command::new("promtool");
    command.args(["check", "metrics"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = match command.stderr(Stdio::piped()).spawn() {
        Ok(child) => child,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            println!("not run: promtool is not installed (package prometheus)");
            return None;
        }
        Err(error) => panic!("promtool: {error}"),
    };
    child.stdin.take().expect("a pipe").write_all(text.as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8(said).expect("UTF-8");
    assert_eq!(output.status.success(), said.is_empty(), "{said}");
    Some(said)
}

#[test]
fn the_text_for_prometheus_has_every_counter_and_promtool_has_no_word_against_it() {
    // A kernel of another day may count under any name.
    let (_folder, path) = recorded(&format!("{COUNTERS}new\"reason 5\n"));
    let text = good(&output(&["--file", &path, "--prometheus"]));
    let values = text.lines().filter_map(|line| line.strip_prefix("ntcopy_hinted_bytes_total{"));
    let values = values.map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap());
    assert_eq!(values.sum::<u64>(), 1005, "{text}");
    assert!(text.contains("# TYPE ntcopy_hinted_bytes_total counter\n"), "{text}");
    assert!(text.contains("\nntcopy_hinted_bytes_total{outcome=\"fits_cache\"} 150\n"), "{text}");
    assert!(text.contains("{outcome=\"new\\\"reason\"} 5\n"), "{text}");
    assert!(text.contains("\nntcopy_available 1\n"), "{text}");
    if let Some(said) = promtool_says(&text) {
        assert_eq!(said, "", "{text}");
        let worse = text.replace("hinted_bytes_total", "hinted_bytes");
        assert!(promtool_says(&worse).is_some_and(|said| said.contains("_total")));
    }
}

#[test]
fn the_alerts_fire_when_they_should() {
    let tests = project().join("packaging/prometheus/ntcopy.rules.test.yml");
    match Command::new("promtool").args(["test", "rules"]).arg(tests).output() {
        Ok(output) => drop(good(&output)),
        Err(_) => println!("not run: promtool is not installed (package prometheus)"),
    }
}

#[test]
fn a_file_for_the_exporter_is_written_whole_for_every_user() {
    let (folder, path) = recorded(COUNTERS);
    let out = folder.path().join("ntcopy.prom");
    let name = out.to_str().expect("UTF-8");
    let arguments = ["--file", &path, "--prometheus", "--out", name];
    assert_eq!(good(&output(&arguments)), "");
    let written = fs::read_to_string(&out).expect("it was written");
    assert_eq!(written, good(&output(&arguments[..3])));
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 2, "nothing else is left");
    let mode = fs::metadata(&out).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o644, "another user's exporter reads it");
    let nowhere = folder.path().join("none/ntcopy.prom");
    let nowhere = ["--file", &path, "--prometheus", "--out", nowhere.to_str().expect("UTF-8")];
    ends(&output(&nowhere), 1, &["cannot write"]);
}

#[test]
fn in_a_kernel_that_counts_hinted_sends_are_seen() {
    let script = format!(
        "{PROGRAM} unix-nt-bench 1048576 64 1 524288 524288 >&2 && {PROGRAM} stat --json && \
         {PROGRAM} stat --json --pid $$ && \
         {PROGRAM} stat --prometheus"
    );
    let text = in_um(&script);
    let (objects, metrics) = text.split_at(text.find("# HELP").expect("metrics come last"));
    let lines: Vec<Value> = objects.lines().map(json).collect();
    assert_eq!(lines.len(), 2, "{text}");
    for (name, bytes) in lines[0]["total_bytes"].as_object().expect("an object") {
        let outcome = name.strip_suffix("_bytes").expect("counters are bytes");
        let line = format!("\nntcopy_hinted_bytes_total{{outcome=\"{outcome}\"}} {bytes}\n");
        assert!(metrics.contains(&line), "{line}: {metrics}");
    }
    assert!(metrics.contains("\nntcopy_setting 1\n"), "{metrics}");
    let hinted = lines[0]["hinted_total_bytes"].as_u64().expect("a number");
    assert!(hinted >= 64 << 20, "{text}");
    assert_eq!(lines[1], lines[0], "{text}");
}
