//! `ntcopy bench pages`, end to end on the kernel that runs the tests, at sizes that take no time.
//! No test looks at a time.

use std::path::Path;
use std::process::{Command, Output};

use ntcopy_record::Record;

use crate::common::{assert_refused, stderr};

fn run(args: &[&str], out: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ntcopy"))
        .args(["bench", "pages", "--quick", "--allow-not-a-timing", "--out"])
        .arg(out)
        .args(args)
        .env("NTCOPY_PROFILE", "none")
        .output()
        .expect("ntcopy starts")
}

fn samples(record: &Record, cell: u32, mode: &str) -> usize {
    record.samples.iter().filter(|s| s.cell == cell && s.mode == mode).count()
}

#[test]
#[cfg(target_arch = "x86_64")]
fn pages_are_cleared_and_copied_every_way_and_read_back() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("record");
    let output = run(&["--buffer", "8KiB,64KiB"], &out);
    assert!(output.status.success(), "{}", stderr(&output));
    let record = Record::read(&out).unwrap();
    assert!(record.complete && record.errors.is_empty(), "{:?}", record.errors);
    // Two actions, three ways to read back, two sizes.
    assert_eq!((record.cells.len(), record.header.baseline.as_str()), (12, "rep-b"));
    for cell in &record.cells {
        let is_copy = cell.params["action"] == "copy";
        for mode in ["rep-b", "rep-q", "sse-t0", "sse-nt-t0", "movnti"] {
            assert_eq!(samples(&record, cell.cell, mode), 5, "{mode} in {:?}", cell.params);
        }
        for mode in ["sse-nta", "sse-nt-nta"] {
            assert_eq!(samples(&record, cell.cell, mode), if is_copy { 5 } else { 0 }, "{mode}");
        }
        for mode in ["clzero", "movdir64b"] {
            let lines = record.unavailable.iter().filter(|line| line.mode == mode);
            let why = lines.filter(|line| line.cell.is_none_or(|at| at == cell.cell)).count();
            assert_eq!(samples(&record, cell.cell, mode) == 0, why == 1, "{mode}: a reason");
        }
        let size = cell.params["size_bytes"].as_u64().unwrap();
        let ours = record.samples.iter().filter(|sample| sample.cell == cell.cell);
        assert!(ours.into_iter().all(|sample| sample.bytes > 0 && sample.bytes % size == 0));
    }
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains(", throughput: "), "{text}");
}

#[test]
fn forks_on_this_kernel_show_the_baseline_and_say_why_nothing_else() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("record");
    let output = run(&["--form", "fork", "--buffer", "8KiB", "--json"], &out);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(stderr(&output).contains("--kernel um"), "{}", stderr(&output));
    let record = Record::read(&out).unwrap();
    assert!(record.complete && record.errors.is_empty(), "{:?}", record.errors);
    assert_eq!((record.cells.len(), record.samples.len()), (4, 20));
    assert!(record.samples.iter().all(|sample| sample.mode == "temporal"));
    let why: Vec<&str> = record.unavailable.iter().map(|line| line.why.as_str()).collect();
    assert!(why.len() == 2 && why.iter().all(|why| why.contains("nothing to switch")), "{why:?}");
    let object: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(object["experiment"], "pages");
    let asked = run(&["--form", "fork", "--buffer", "4KiB", "--modes", "nt"], &out.join("nt"));
    assert_eq!(asked.status.code(), Some(3), "{}", stderr(&asked));
}

#[test]
fn a_wrong_byte_is_an_error_row_and_exit_code_4() {
    let place = tempfile::tempdir().unwrap();
    for form in ["pages", "fork"] {
        let out = place.path().join(form);
        let output = run(&["--form", form, "--buffer", "8KiB", "--inject", "wrong-byte"], &out);
        assert_eq!(output.status.code(), Some(4), "{form}: {}", stderr(&output));
        let record = Record::read(&out).unwrap();
        assert!(record.samples.is_empty(), "a wrong byte is never a number");
        assert!(record.errors.iter().all(|error| error.wrong_byte) && !record.errors.is_empty());
    }
}

#[test]
fn usage_errors_are_exit_code_2_and_say_what_to_write() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("record");
    for (args, words) in [
        (&["--buffer", "5000"][..], "whole number of pages"),
        (&["--buffer", "0"], "--buffer 0"),
        (&["--modes", "mmx"], "sse-nt-t0"),
        (&["--read-back", "every"], "none, some, all"),
        (&["--kernel", "um"], "add --form fork"),
        (&["--form", "fork", "--modes", "movnti"], "nt-copy"),
        (&["--form", "fork", "--pairs", "4"], "at least 5 pairs"),
    ] {
        let output = run(args, &out);
        assert_refused(&output, args, words, &out);
    }
}

#[test]
fn an_emulated_kernel_has_nothing_to_compare() {
    let place = tempfile::tempdir().unwrap();
    let output = run(&["--form", "fork", "--kernel", "x86"], &place.path().join("record"));
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(stderr(&output).contains("--kernel um"), "{}", stderr(&output));
}
