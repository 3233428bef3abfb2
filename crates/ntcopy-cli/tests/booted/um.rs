//! End to end, in the kernel that knows `MSG_NTCOPY`: built if it is not yet, booted, measured.

use std::path::Path;
use std::process::Command;

use ntcopy_record::Record;
use serde_json::Value;
use xtask::selftests;

use crate::common::{
    good, json, kernel_built, ntcopy, project,
    suite::{self, Kernel},
    text,
};

#[test]
fn the_kernel_keeps_its_promises() {
    kernel_built();
    let lacks = &["udplite", "mptcp", "sctp", "io_uring"];
    suite::must_pass(&Kernel { arguments: &[], lacks, big_mib: 64, limit_s: 600 });
}

/// A missing fence cannot be seen in the bytes, nearly always; in the machine code it can.
#[test]
fn every_copy_of_the_kernel_that_bypasses_the_cache_is_fenced() {
    let image = good(&ntcopy(&["kernel", "build"]));
    let mut script = Command::new(project().join("scripts/check-fences.py"));
    good(&script.arg(image.trim()).output().expect("python3"));
}

#[test]
fn the_suite_skips_on_a_kernel_without_the_flag() {
    kernel_built();
    let folder = tempfile::tempdir().expect("a folder for the suite");
    selftests::build(folder.path(), &["options"]).expect("it can be built");
    // A host that does have the flag has a root of its own that may run the suite.
    if ntcopy::socket::kernel_support() != ntcopy::socket::Support::None {
        println!("not run: this kernel has the flag");
        return;
    }
    let output = Command::new(folder.path().join("options")).output().expect("it runs");
    assert_eq!(output.status.code(), Some(4), "{}", text(&output.stdout));
    assert!(text(&output.stdout).contains("1..0 # SKIP"), "{}", text(&output.stdout));
}

#[test]
fn probe_inside_finds_the_flag_its_settings_and_its_counters() {
    let program = env!("CARGO_BIN_EXE_ntcopy");
    let output = ntcopy(&["kernel", "boot", "--timeout", "60", "--", program, "probe"]);
    let said = good(&output);
    assert!(said.contains("MSG_NTCOPY"), "{said}");
    assert!(!said.contains("no MSG_NTCOPY"), "{said}");
    let output = ntcopy(&[
        "kernel",
        "boot",
        "--sysctl",
        "net.core.ntcopy=2",
        "--",
        "cat",
        "/proc/sys/net/core/ntcopy",
        "/proc/net/ntcopy_stat",
    ]);
    assert!(good(&output).starts_with("2\nnontemporal_bytes 0\n"), "{}", text(&output.stdout));
}

/// Runs the smallest experiment inside and gives its JSON and its record's lines.
fn smallest_experiment(folder: &Path) -> (Value, Vec<Value>) {
    let out = folder.join("record");
    let out_text = out.to_str().expect("a temporary path in UTF-8");
    let output = ntcopy(&[
        "bench",
        "unix",
        "--kernel",
        "um",
        "--sockets",
        "1,3",
        "--object",
        "300KiB",
        "--dataset",
        "1MiB",
        "--modes",
        "copy,nt,adaptive",
        "--quick",
        "--pairs",
        "5",
        "--json",
        "--out",
        out_text,
    ]);
    let object = json(&good(&output));
    let lines = std::fs::read_to_string(out.join("record.jsonl")).expect("the record");
    (object, lines.lines().map(json).collect())
}

#[test]
fn retention_in_a_kernel_is_that_of_sends() {
    let folder = tempfile::tempdir().expect("a folder for the record");
    let out = folder.path().join("record");
    let mut line = vec!["bench", "retention", "--kernel", "um", "--quick", "--pairs", "5"];
    line.extend(["--dataset", "4MiB", "--modes", "copy", "--json", "--out"]);
    line.push(out.to_str().expect("a temporary path in UTF-8"));
    let object = json(&good(&ntcopy(&line)));
    let results = object["results"].as_array().expect("results");
    assert!(results.iter().all(|result| result["params"]["sockets"].is_number()), "{object}");
}

#[test]
fn forked_pages_go_the_way_that_the_mode_says_and_are_counted() {
    let folder = tempfile::tempdir().expect("a folder for the record");
    let out = folder.path().join("record");
    let mut line = vec!["bench", "pages", "--form", "fork", "--kernel", "um", "--quick", "--json"];
    line.extend(["--buffer", "4KiB,20KiB", "--out"]);
    line.push(out.to_str().expect("a temporary path in UTF-8"));
    let object = json(&good(&ntcopy(&line)));
    let results = object["results"].as_array().expect("results");
    assert!(results.iter().all(|result| result.get("unavailable").is_none()), "{object}");
    let record = ntcopy_record::Record::read(&out).expect("the record");
    // Two users, two uses, two sizes; three modes, five pairs.
    assert!(record.complete && record.errors.is_empty(), "{:?}", record.errors);
    assert_eq!((record.cells.len(), record.samples.len()), (8, 8 * 3 * 5));
    assert_eq!(record.machine.kernel_kind, "um");
    for sample in &record.samples {
        let counted = |name: &str| sample.counters.get(name).copied().unwrap_or(0);
        let (cleared, copied) = (counted("pgclear_nontemporal"), counted("pgcopy_nontemporal"));
        match sample.mode.as_str() {
            "temporal" => assert_eq!((cleared, copied), (0, 0)),
            "nt" => assert!(cleared > 0 && copied >= sample.bytes / 4096, "{sample:?}"),
            _ => assert!(cleared == 0 && copied >= sample.bytes / 4096, "{sample:?}"),
        }
    }
}

#[test]
fn what_was_hinted_is_counted_byte_for_byte_and_nothing_else_is() {
    let folder = tempfile::tempdir().expect("a folder for the record");
    let (object, lines) = smallest_experiment(folder.path());
    let samples: Vec<&Value> = lines.iter().filter(|line| line["type"] == "sample").collect();
    // Two cells, three modes, five pairs.
    assert_eq!(samples.len(), 30, "{lines:?}");
    for sample in samples {
        let counted = |name: &str| sample["counters"][name].as_u64().unwrap_or(0);
        let hinted = if sample["mode"] == "copy" { Some(0) } else { sample["bytes"].as_u64() };
        let (obeyed, fits) = (counted("nontemporal_bytes"), counted("fits_cache_bytes"));
        // The heads of buffers: less than a page in front of each 32 KiB.
        let heads = counted("too_small_bytes");
        assert_eq!(Some(obeyed + fits + heads), hinted, "{sample}");
        assert!(heads <= obeyed / 8, "{sample}");
        assert!(fits == 0 || sample["mode"] == "adaptive", "{sample}");
        for other in ["read_by_kernel_bytes", "not_supported_bytes"] {
            assert_eq!(counted(other), 0, "{sample}");
        }
    }
    let results = object["results"].as_array().expect("results");
    assert!(results.iter().any(|result| result["mode"] == "nt" && result["ratio"].is_number()));
    assert!(results.iter().all(|result| result.get("unavailable").is_none()), "{object}");
    let machine = &object["machine"];
    assert_eq!(machine["kernel_kind"], "um", "{machine}");
    assert_eq!(machine["kernel_cpus"], 1, "{machine}");
    assert!(lines.last().is_some_and(|line| line["type"] == "end"), "the record is whole");
}

#[test]
fn two_senders_at_once_are_counted_byte_for_byte() {
    let folder = tempfile::tempdir().expect("a folder for the record");
    let out = folder.path().join("record");
    let mut line = vec!["bench", "unix", "--kernel", "um", "--senders", "2", "--quick"];
    line.extend(["--dataset", "4MiB", "--iterations", "40", "--modes", "nt", "--out"]);
    line.push(out.to_str().expect("a temporary path in UTF-8"));
    good(&ntcopy(&line));
    let record = ntcopy_record::Record::read(&out).expect("the record");
    assert!(record.complete && record.errors.is_empty(), "{:?}", record.errors);
    assert_eq!(record.cells[0].params["sender_cpus"], "0,1");
    for sample in &record.samples {
        assert_eq!(sample.bytes, (2 * 40) << 20);
        let counted: u64 = sample.counters.values().sum();
        assert_eq!(counted, if sample.mode == "nt" { sample.bytes } else { 0 }, "{sample:?}");
    }
}

#[test]
fn the_rules_number_comes_from_sends_in_a_booted_kernel() {
    let mut line = vec!["footprint", "calibrate", "--kernel", "um", "--sockets", "1,64", "--json"];
    line.push("--dry-run");
    let rule = &json(&good(&ntcopy(&line)))["rule"];
    let bytes = rule["bytes"].as_u64().expect("a number");
    // One object in flight or 64, or neither wins.
    let expected = match rule["wins"].as_str() {
        Some("everywhere") => 128 << 10,
        Some("from") => 65 << 17,
        _ => 32 << 20,
    };
    assert_eq!((bytes, rule["record"].is_null()), (expected, true), "{rule}");
}

#[test]
fn sender_and_reader_have_caches_of_their_own() {
    let place = tempfile::tempdir().expect("a folder for the record");
    let out = place.path().join("record");
    let line = ["bench", "unix", "--kernel", "um", "--own-caches", "--sockets", "1", "--quick"];
    let sizes = ["--object", "64KiB", "--dataset", "1MiB", "--modes", "nt"];
    let output = ntcopy(&[&line[..], &sizes, &["--out", &out.display().to_string()]].concat());
    if output.status.code() == Some(3) {
        let said = text(&output.stderr);
        assert!(said.contains("share"), "{said}");
        println!("not run: {said}");
        return;
    }
    good(&output);
    let record = Record::read(&out).expect("a record");
    assert_eq!((record.machine.kernel_cpus, record.machine.kernel_pin), (2, None));
    let [sender, reader] = record.machine.kernel_own_cpus[..] else { panic!("two CPUs") };
    assert_ne!(sender, reader);
    let params = &record.cells[0].params;
    assert_eq!((&params["sender_cpu"], &params["reader_cpu"]), (&0.into(), &1.into()));
}

#[test]
fn the_published_command_line_runs_inside() {
    let program = env!("CARGO_BIN_EXE_ntcopy");
    for hint in ["0", "1"] {
        let output = ntcopy(&[
            "kernel",
            "boot",
            "--cpus",
            "2",
            "--timeout",
            "120",
            "--",
            program,
            "unix-nt-bench",
            "1048576",
            "20",
            hint,
            "524288",
            "524288",
        ]);
        let said = good(&output);
        assert!(said.contains("Mb/s"), "{said}");
    }
}
