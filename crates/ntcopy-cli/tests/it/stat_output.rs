//! `ntcopy stat` as a user sees it: from files of counters, and in a kernel that counts.

use std::fs;
use std::io::{BufRead as _, BufReader, ErrorKind, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::common::{PROGRAM, ends, good, in_um, json, ntcopy, project};

/// A kernel's counters, as they stand in `/proc/net/netstat`.
const COUNTERS: &str = "TcpExt: SyncookiesSent NtcopyBytes NtcopyHintedBytes NtcopyBypassedBytes\n\
                        TcpExt: 5 2000 1000 750\nIpExt: InNoRoutes\nIpExt: 0\n";
/// The module's, of the same sends.
const OF_THE_MODULE: &str = "NtcopyBytes 2000\nNtcopyHintedBytes 1000\nNtcopyBypassedBytes 750\n";

fn output(arguments: &[&str]) -> Output {
    ntcopy(&[&["stat"], arguments].concat())
}

/// A folder with a file of counters, and the file's name.
fn recorded(text: &str) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("ntcopy");
    fs::write(&path, text).expect("the file can be written");
    let path = path.to_str().expect("a temporary path in UTF-8").to_owned();
    (folder, path)
}

#[test]
fn each_counter_has_its_share_of_the_one_before() {
    for text in [COUNTERS, OF_THE_MODULE] {
        let (_folder, path) = recorded(text);
        let said = good(&output(&["--file", &path]));
        let lines: Vec<&str> = said.lines().collect();
        assert!(lines[0].starts_with("Sent on sockets that opted in"), "{said}");
        assert!(lines[1].contains("hinted") && lines[1].ends_with("50.0 % of that"), "{said}");
        assert!(lines[2].ends_with("75.0 % of the hinted bytes"), "{said}");
        assert!(lines.len() == 3 && lines.iter().all(|line| line.len() <= 80), "{said}");
        let object = json(&good(&output(&["--file", &path, "--json"])));
        let expected = serde_json::json!({
            "bytes": 2000, "hinted_bytes": 1000, "bypassed_bytes": 750,
        });
        assert_eq!(object, expected);
    }
}

#[test]
fn rates_go_on_until_nobody_reads() {
    let (_folder, path) = recorded(OF_THE_MODULE);
    let mut command = Command::new(PROGRAM);
    command.args(["stat", "--interval", "1", "--json", "--file", &path]);
    let mut child = command.stdout(Stdio::piped()).spawn().expect("it starts");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let mut rate = || json(&lines.next().expect("a line").expect("UTF-8"));
    assert_eq!(rate()["bytes_per_s"], 0);
    let more = OF_THE_MODULE.replace("NtcopyBytes 2000", "NtcopyBytes 9000000");
    let whole = format!("{path}.new");
    fs::write(&whole, more).expect("a file");
    fs::rename(&whole, &path).expect("the same folder");
    let sent = (0..10).map(|_| rate()).find(|line| line["bytes_per_s"] != 0).expect("it was sent");
    assert_eq!(sent["hinted_bytes_per_s"], 0, "{sent}");
    drop(lines);
    assert!(child.wait().expect("it ends").success());
}

#[test]
fn where_nothing_was_sent_there_is_no_share_and_a_reason() {
    let (_folder, path) = recorded("NtcopyBytes 0\nNtcopyHintedBytes 0\nNtcopyBypassedBytes 0\n");
    let text = good(&output(&["--file", &path]));
    assert!(text.lines().skip(1).take(2).all(|line| line.contains(" - ")), "{text}");
    assert!(text.contains("Nothing was sent on a socket that opted in"), "{text}");
}

#[test]
fn counters_that_are_not_understood_fail() {
    let (_folder, path) = recorded("NtcopyBytes many\n");
    ends(&output(&["--file", &path]), 1, &["NtcopyBytes is not there, or is no number"]);
    let (_folder, path) = recorded("nontemporal_bytes 5\n");
    ends(&output(&["--file", &path]), 1, &["has none of the counters"]);
}

#[test]
fn a_kernel_without_the_counters_is_told_from_a_wrong_question_and_is_a_metric() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("ntcopy.prom");
    let counts = ntcopy::socket::counters().expect("it can be read").is_some();
    for arguments in [&[][..], &["--prometheus", "--out", out.to_str().expect("UTF-8")]] {
        let said = ends(&output(arguments), if counts { 0 } else { 3 }, &[]);
        assert_eq!(said.contains("does not know MSG_NTCOPY"), !counts, "{said}");
        // As `module status` says it.
        let takes_modules = Path::new("/proc/modules").exists();
        assert_eq!(said.contains("ntcopy module status"), !counts && takes_modules, "{said}");
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
    let (_folder, path) = recorded(COUNTERS);
    let text = good(&output(&["--file", &path, "--prometheus"]));
    for (name, bytes) in [
        ("ntcopy_bytes_total", 2000),
        ("ntcopy_hinted_bytes_total", 1000),
        ("ntcopy_bypassed_bytes_total", 750),
    ] {
        assert!(text.contains(&format!("# TYPE {name} counter\n{name} {bytes}\n")), "{text}");
    }
    assert!(text.contains("\nntcopy_available 1\n"), "{text}");
    if let Some(said) = promtool_says(&text) {
        assert_eq!(said, "", "{text}");
        let worse = text.replace("ntcopy_hinted_bytes_total", "ntcopy_hinted_bytes");
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
    for name in ["bytes", "hinted_bytes", "bypassed_bytes"] {
        let line = format!("\nntcopy_{name}_total {}\n", lines[0][name]);
        assert!(metrics.contains(&line), "{line}: {metrics}");
    }
    assert!(metrics.contains("\nntcopy_setting 1\n"), "{metrics}");
    let hinted = lines[0]["hinted_bytes"].as_u64().expect("a number");
    assert!(hinted >= 64 << 20, "{text}");
    assert_eq!(lines[1], lines[0], "{text}");
}
