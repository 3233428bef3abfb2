//! `ntcopy footprint`, end to end on the kernel that runs the tests. No test wants a time; that a
//! copy displaces more than nothing is asked only where the instrument says that it can tell.

use std::path::Path;
use std::process::Output;

use ntcopy_bench::experiments::footprint;
use ntcopy_record::{ExperimentKind, Record};
use serde_json::Value;

use crate::common::{ends, has_flag, ntcopy};

fn footprint(arguments: &[&str]) -> Output {
    ntcopy(&[&["footprint", "--allow-not-a-timing"], arguments].concat())
}

/// The object of a run; none where this machine's clock or caches say nothing, which is exit code 3
/// with a reason.
fn told(arguments: &[&str], out: &Path) -> Option<Value> {
    let place = out.to_str().expect("UTF-8");
    let output = footprint(&[&["--quick", "--json", "--out", place], arguments].concat());
    let object: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    if output.status.code() == Some(3) {
        let why = object["results"][0]["unavailable"].as_str().expect("a reason");
        assert!(why.contains("clock") || why.contains("stays in"), "{why}");
        println!("not run: {why}");
        return None;
    }
    assert!(output.status.success(), "{output:?}");
    Some(object)
}

#[test]
fn a_table_has_the_calls_and_the_record_says_the_same() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("record");
    let Some(object) = told(&["copy:1MiB", "getpid", "send:64KiB"], &out) else { return };
    let modes: Vec<&str> = object["results"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|r| r["mode"].as_str())
        .collect();
    assert_eq!(modes, ["copy:1MiB", "getpid", "send:64KiB"]);
    let checks = object["levels"][0]["checks"].as_array().expect("a list");
    let hows: Vec<&str> = checks.iter().filter_map(|check| check["how"].as_str()).collect();
    assert_eq!(hows, ["read", "read", "flushed", "written-nt"]);
    // Each line that is flushed is missed, unless the machine is too loud to tell.
    let flushed = &checks[2];
    if flushed["agrees"] == true {
        let copy = object["results"][0]["median"].as_f64().expect("a number");
        assert!(copy > 0.0, "{object:#}");
    }
    let record = Record::read(&out).expect("a record");
    let levels = ntcopy_judge::judge(&record).levels;
    assert_eq!(levels[0].calls.len(), 3);
    assert_eq!(Some(levels[0].calls[0].lines), object["results"][0]["median"].as_f64());
    assert!(record.complete && record.header.experiment == ExperimentKind::Footprint);
}

#[test]
fn a_hint_where_nobody_takes_it_is_exit_code_3() {
    if has_flag() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let place = folder.path().join("record");
    let line = ["--quick", "--out", place.to_str().expect("UTF-8"), "send-hinted:64KiB"];
    let refused = footprint(&line);
    ends(&refused, 3, &[]);
    assert!(String::from_utf8_lossy(&refused.stdout).contains("--kernel um"), "{refused:?}");
}

#[test]
fn the_calls_are_listed() {
    let list = footprint(&["--list"]);
    let list = String::from_utf8_lossy(&list.stdout).into_owned();
    assert_eq!(list.lines().count(), footprint::TABLE.len(), "{list}");
}
