//! `ntcopy bench retention` with copies, end to end on the kernel that runs the tests, at sizes
//! that take no time. No test looks at a time.

use std::path::Path;
use std::process::Output;

use ntcopy_record::Record;

use crate::common::{bench, measured, stderr};

const SMALL: [&str; 7] =
    ["retention", "--hot-set", "64KiB", "--object", "16KiB", "--dataset", "4MiB"];

fn run(args: &[&str], out: &Path) -> Output {
    bench(&[&SMALL, args].concat(), out).output().unwrap()
}

fn path(record: &Record, mode: &str) -> Option<String> {
    let path = record.cells[0].params.get(&format!("path_{mode}"))?;
    path.as_str().map(str::to_owned)
}

#[test]
fn on_the_same_core_every_mode_has_the_same_passes_and_the_same_bytes() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("record");
    let output = run(&["--victim", "same-core"], &out);
    let record = Record::read(&out).unwrap();
    // A CPU without non-temporal loads or stores says so, and nothing else goes wrong.
    let expected = if record.unavailable.is_empty() { 0 } else { 3 };
    assert_eq!(output.status.code(), Some(expected), "{}", stderr(&output));
    assert!(record.complete && record.errors.is_empty(), "{:?}", record.errors);
    assert_eq!((record.header.experiment.as_str(), record.cells.len()), ("retention", 1));
    let modes = 4 - record.unavailable.len();
    assert_eq!(record.samples.len(), 5 * modes);
    let passes = |sample: &ntcopy_record::Sample| sample.series["passes"].iter().sum::<u64>();
    let count = passes(&record.samples[0]);
    for sample in &record.samples {
        assert_eq!(passes(sample), count, "{}", sample.mode);
        assert_eq!(sample.series["pass_ns"].len(), sample.series["passes"].len());
        let bytes = if sample.mode == "idle" { 0 } else { count * (16 << 10) };
        assert_eq!(sample.bytes, bytes, "{}", sample.mode);
    }
    assert!(path(&record, "copy").is_some_and(|path| !path.contains("-nt")), "{record:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("hot set") && text.contains("idle") && text.contains("copy"), "{text}");
}

#[test]
fn a_neighbour_is_offered_the_same_by_every_mode_or_is_not_available() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("record");
    let output = run(&["--victim", "neighbour", "--rate", "20MB/s", "--modes", "copy"], &out);
    if output.status.code() == Some(3) {
        assert!(stderr(&output).contains("second CPU"), "{}", stderr(&output));
        return;
    }
    let record = Record::read(&out).unwrap();
    assert!(record.complete && !record.errors.iter().any(|error| error.wrong_byte));
    let rate = record.cells[0].params["rate_bytes_per_s"].as_u64().unwrap();
    assert!(rate <= 20_000_000);
    let offered = record.samples.iter().filter_map(|sample| sample.series.get("offered_bytes"));
    let offered: Vec<u64> = offered.map(|offered| offered[0]).collect();
    assert!(!offered.is_empty(), "{}", stderr(&output));
    // The schedule's rounding may move one copy over an end of the window.
    assert!(offered.iter().all(|bytes| bytes.abs_diff(offered[0]) <= 16 << 10), "{offered:?}");
    let over = |sample: &&ntcopy_record::Sample| {
        sample.series.get("offered_bytes").is_some_and(|offered| sample.bytes > offered[0])
    };
    assert_eq!(record.samples.iter().find(over), None);
}

#[test]
fn a_victim_walks_after_every_send_and_alone() {
    let sizes = ["--object", "20000", "--dataset", "100KiB", "--hot-set", "8KiB", "--sockets", "2"];
    let (record, text) = measured(&[&["retention"], &sizes[..], &["--modes", "copy"]].concat());
    assert_eq!((record.header.experiment.as_str(), record.samples.len()), ("retention", 10));
    let walks = record.samples[0].series["walk_ns"].len();
    for sample in &record.samples {
        assert_eq!(sample.series["walk_ns"].len(), walks, "the same traffic in every mode");
        let bytes = if sample.mode == "idle" { 0 } else { walks as u64 * 20_000 };
        assert_eq!(sample.bytes, bytes, "{}", sample.mode);
    }
    assert!(text.contains("ns per line") && text.contains("idle"), "{text}");
}
