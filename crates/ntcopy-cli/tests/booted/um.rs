//! End to end, in the kernel that knows `MSG_NTCOPY`: built if it is not yet, booted, measured.

use std::path::Path;
use std::process::Command;

use ntcopy_record::{Record, Sample};
use serde_json::Value;
use xtask::selftests;
use xtask::suite::{self, Kernel};

use crate::common::{
    self, PROGRAM, good, has_flag, is_not_available, json, kernel_built, ntcopy, project, text,
};

#[test]
fn the_kernel_keeps_its_promises() {
    let lacks = &["udplite", "mptcp", "sctp", "io_uring", "bpf"];
    let kernel = Kernel { name: "um", lacks, big_mib: 64, limit_s: 600 };
    let passed = suite::must_pass(Path::new(PROGRAM), &kernel, &suite::all());
    passed.unwrap_or_else(|error| panic!("{error}"));
}

#[test]
#[ignore = "make test-612"]
fn the_kernel_of_the_long_term_series_keeps_its_promises() {
    let lacks = &["mptcp", "sctp", "io_uring", "bpf"];
    let kernel = Kernel { name: "um:6.12", lacks, big_mib: 64, limit_s: 900 };
    let passed = suite::must_pass(Path::new(PROGRAM), &kernel, &suite::of_sockets());
    passed.unwrap_or_else(|error| panic!("{error}"));
}

/// What user-mode Linux copies at once; with two CPUs, so that pages go while they are copied to.
fn user_copies_pass(kernel: &str, cpus: &str) {
    let folder = tempfile::tempdir().expect("a folder for the suite");
    selftests::build(folder.path(), &["user_copies"]).expect("it can be built");
    let program = folder.path().join("user_copies");
    let program = program.to_str().expect("a path in UTF-8");
    let boot = ["kernel", "boot", "--kernel", kernel, "--cpus", cpus, "--timeout", "600", "--"];
    let said = good(&ntcopy(&[&boot[..], &[program]].concat()));
    let passed = said.lines().filter(|line| line.starts_with("ok ") && !line.contains("# SKIP"));
    let skipped = usize::from(cpus == "1");
    assert_eq!(passed.count() + skipped, 12, "{said}");
}

#[test]
fn plain_copies_end_where_the_mapping_does() {
    user_copies_pass("um", "2");
}

#[test]
#[ignore = "make test-612"]
fn plain_copies_of_the_long_term_series_end_where_the_mapping_does() {
    user_copies_pass("um:6.12", "1");
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
    if has_flag() {
        return;
    }
    let output = Command::new(folder.path().join("options")).output().expect("it runs");
    assert_eq!(output.status.code(), Some(4), "{}", text(&output.stdout));
    assert!(text(&output.stdout).contains("1..0 # SKIP"), "{}", text(&output.stdout));
}

#[test]
fn probe_inside_finds_the_flag_its_settings_and_its_counters() {
    let script = format!("cat /proc/sys/net/core/ntcopy; {PROGRAM} stat --json; {PROGRAM} probe");
    let boot = ["kernel", "boot", "--timeout", "60", "--sysctl", "net.core.ntcopy=0", "--"];
    let said = good(&ntcopy(&[&boot[..], &["sh", "-c", &script]].concat()));
    assert!(
        said.starts_with("0\n{\"bytes\":0,\"hinted_bytes\":0,\"bypassed_bytes\":0}\n"),
        "{said}"
    );
    assert!(said.contains("MSG_NTCOPY") && !said.contains("no MSG_NTCOPY"), "{said}");
}

/// Measures little inside, and gives the record and what was printed.
fn measured(line: &str) -> (Record, Value) {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let (record, text) = common::measured(&[&words[..], &["--kernel", "um", "--json"]].concat());
    let object = json(&text);
    assert_eq!(record.machine.kernel_kind, "um");
    let results = object["results"].as_array().expect("results");
    assert!(results.iter().all(|result| result.get("unavailable").is_none()), "{object}");
    (record, object)
}

fn counted(sample: &Sample, name: &str) -> u64 {
    sample.counters.get(name).copied().unwrap_or(0)
}

#[test]
fn a_victim_in_a_kernel_walks_after_hinted_sends() {
    let (record, _) = measured("retention --pairs 5 --dataset 4MiB --modes hinted");
    let hinted = record.samples.iter().filter(|sample| sample.mode == "hinted");
    assert!(hinted.clone().count() > 0);
    assert!(
        hinted.into_iter().all(|sample| counted(sample, "NtcopyBypassedBytes") == sample.bytes)
    );
}

#[test]
fn forked_pages_go_the_way_that_the_mode_says_and_are_counted() {
    let (record, _) = measured("pages --form fork --buffer 4KiB,20KiB");
    // Two users, two uses, two sizes; three modes, five pairs.
    assert_eq!((record.cells.len(), record.samples.len()), (8, 8 * 3 * 5));
    for sample in &record.samples {
        let [cleared, copied] =
            ["pgclear_nontemporal", "pgcopy_nontemporal"].map(|name| counted(sample, name));
        match sample.mode.as_str() {
            "temporal" => assert_eq!((cleared, copied), (0, 0)),
            "nt" => assert!(cleared > 0 && copied >= sample.bytes / 4096, "{sample:?}"),
            _ => assert!(cleared == 0 && copied >= sample.bytes / 4096, "{sample:?}"),
        }
    }
}

#[test]
fn what_was_hinted_is_counted_byte_for_byte_and_nothing_else_is() {
    let (record, object) = measured(
        "unix --sockets 1,3 --object 300KiB --dataset 1MiB --modes plain,hinted --pairs 5",
    );
    // Two cells, two modes, five pairs.
    assert_eq!(record.samples.len(), 20);
    for sample in &record.samples {
        // All sends are plain until the cell's first hinted one has opted the sockets in.
        let hinted = if sample.mode == "plain" { 0 } else { sample.bytes };
        assert_eq!(counted(sample, "NtcopyHintedBytes"), hinted, "{sample:?}");
        assert_eq!(counted(sample, "NtcopyBypassedBytes"), hinted, "{sample:?}");
        assert!(counted(sample, "NtcopyBytes") >= hinted, "{sample:?}");
    }
    let results = object["results"].as_array().expect("results");
    assert!(results.iter().any(|result| result["mode"] == "hinted" && result["ratio"].is_number()));
    assert_eq!(object["machine"]["kernel_cpus"], 1, "{object}");
}

#[test]
fn sender_and_reader_have_caches_of_their_own() {
    let place = tempfile::tempdir().expect("a folder for the record");
    let out = place.path().join("record");
    let line = ["bench", "unix", "--kernel", "um", "--own-caches", "--sockets", "1", "--quick"];
    let sizes = ["--object", "64KiB", "--dataset", "1MiB", "--modes", "hinted"];
    let output = ntcopy(&[&line[..], &sizes, &["--out", &out.display().to_string()]].concat());
    if is_not_available(&output, "share") {
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
