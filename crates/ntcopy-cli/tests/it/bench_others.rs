//! `ntcopy bench retention`, end to end on the kernel that runs the tests, at sizes
//! that take no time. No test looks at a time.

use std::path::Path;
use std::process::{Command, Output};

use ntcopy_record::Record;

use crate::common::{assert_refused, stderr};

fn run(args: &[&str], out: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ntcopy"))
        .arg("bench")
        .args(args)
        .args(["--quick", "--allow-not-a-timing", "--out"])
        .arg(out)
        .output()
        .expect("ntcopy starts")
}

#[test]
fn a_victim_walks_after_every_send_and_alone() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("record");
    let sizes = ["--object", "20000", "--dataset", "100KiB", "--hot-set", "8KiB", "--sockets", "2"];
    let output = run(&[&["retention"], &sizes[..], &["--modes", "copy"]].concat(), &out);
    assert!(output.status.success(), "{}", stderr(&output));
    let record = Record::read(&out).unwrap();
    assert!(record.complete && record.errors.is_empty(), "{:?}", record.errors);
    assert_eq!((record.header.experiment.as_str(), record.samples.len()), ("retention", 10));
    let walks = record.samples[0].series["walk_ns"].len();
    for sample in &record.samples {
        assert_eq!(sample.series["walk_ns"].len(), walks, "the same traffic in every mode");
        let bytes = if sample.mode == "idle" { 0 } else { walks as u64 * 20_000 };
        assert_eq!(sample.bytes, bytes, "{}", sample.mode);
    }
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("ns per line") && text.contains("idle"), "{text}");
}

#[test]
fn usage_errors_are_exit_code_2_and_say_what_to_write() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("record");
    for (args, words) in [
        (&["retention", "--hot-set", "64"][..], "two cache lines"),
        (&["retention", "--modes", "vmsplice"], "to measure sends"),
        (&["retention", "--kernel", "host", "--sockets", "1", "--pairs", "3"], "at least 5 pairs"),
    ] {
        let output = run(args, &out);
        assert_refused(&output, args, words, &out);
    }
}

#[test]
fn every_experiment_lists_its_defaults() {
    for name in ["unix", "retention"] {
        let output =
            Command::new(env!("CARGO_BIN_EXE_ntcopy")).args(["bench", name, "--list"]).output();
        let output = output.expect("ntcopy starts");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains(&format!("name = \"{name}\"")), "{text}");
    }
}
