//! `ntcopy bench memcpy`, `memset`, `order` and `pages`, end to end at sizes that take no time. No
//! test looks at a time.

use ntcopy_record::Record;

use crate::common::{bench, counted, ends, measured, stderr, tried};

/// Four cells of small copies: with a region of 8 MiB, nothing takes long.
const SMALL: [&str; 9] = [
    "memcpy",
    "--size",
    "4099,128KiB",
    "--region",
    "8MiB",
    "--threads",
    "1",
    "--destination",
    "cold",
];

#[test]
fn copies_are_measured_against_every_peer_that_is_here() {
    let (record, text) = measured(&SMALL);
    assert_eq!((record.header.experiment.as_str(), record.cells.len()), ("memcpy", 4));
    assert_eq!(record.header.baseline, "libc");
    let missing = |cell: u32, mode: &str| {
        record
            .unavailable
            .iter()
            .any(|line| line.mode == mode && line.cell.is_none_or(|at| at == cell))
    };
    for cell in &record.cells {
        let size = cell.params["size_bytes"].as_u64().unwrap();
        assert_eq!(cell.params["region_bytes"], 8 << 20);
        for mode in ["libc", "libc-tuned", "rep-movsb", "libpmem2", "movnti", "ours", "stream"] {
            let samples = record.samples.iter().filter(|s| s.cell == cell.cell && s.mode == mode);
            let samples: Vec<_> = samples.collect();
            let expected = if missing(cell.cell, mode) { 0 } else { 5 };
            assert_eq!(samples.len(), expected, "{mode} in {:?}", cell.params);
            assert!(samples.iter().all(|sample| sample.bytes % size == 0 && sample.bytes > 0));
        }
        assert!(cell.params.contains_key("ours_path"), "the record says which path ours took");
    }
    assert!(text.contains("GB/s") && text.contains("the best peer of each"), "{text}");
}

#[test]
fn sources_begin_within_a_line_and_destinations_are_read() {
    let all = ["memcpy", "--size", "4099", "--region", "8MiB", "--threads", "1"];
    let more = ["--offset", "0,15", "--read-back", "all", "--modes", "ours"];
    let (record, text) = measured(&[&all[..], &more[..]].concat());
    let offsets: Vec<_> = record.cells.iter().map(|cell| cell.params.get("offset_bytes")).collect();
    assert_eq!(offsets, [[None; 4], [Some(&15.into()); 4]].concat());
    assert!(record.cells.iter().all(|cell| cell.params["read_back"] == "all"));
    counted::every_sample_or_why_not(&record, &text);
}

#[test]
fn fills_store_the_value_by_every_function() {
    for value in ["0", "165"] {
        let (record, text) = measured(&["memset", "--size", "100000,1MiB", "--value", value]);
        let has = |mode: &str| record.samples.iter().any(|sample| sample.mode == mode);
        for mode in ["libc", "x86-64-stosb", "x86-64-stosq", "x86-64-movnt", "ours"] {
            assert!(has(mode) || !cfg!(target_arch = "x86_64"), "{mode}");
        }
        assert!(value == "0" || !has("clzero"), "CLZERO stores zeros only");
        counted::every_sample_or_why_not(&record, &text);
    }
}

#[test]
fn a_matrix_is_walked_every_way_but_a_sum_has_no_non_temporal_one() {
    let (record, _) = measured(&["order", "--side", "50"]);
    let walks = |task: &str| {
        let cell = record.cells.iter().find(|cell| cell.params["task"] == task).unwrap().cell;
        let mut modes: Vec<&str> =
            record.samples.iter().filter(|s| s.cell == cell).map(|s| s.mode.as_str()).collect();
        modes.sort_unstable();
        modes.dedup();
        modes.len()
    };
    let all = if cfg!(target_arch = "x86_64") { 4 } else { 2 };
    assert_eq!((walks("sum"), walks("write"), walks("copy")), (2, all, all));
}

#[test]
fn a_peer_that_was_asked_for_and_is_not_here_is_exit_code_3() {
    let args = ["memset", "--size", "64KiB", "--value", "7", "--modes", "clzero"];
    let (output, record) = tried(&args);
    ends(&output, 3, &[]);
    assert_eq!(record.unavailable[0].mode, "clzero");
    assert!(record.unavailable[0].why.contains("zeros only"), "{:?}", record.unavailable);
}

#[test]
fn a_bad_override_is_an_error_before_anything_is_measured() {
    let place = tempfile::tempdir().unwrap();
    let mut command = bench(&["memset"], &place.path().join("record"));
    ends(&command.env("NTCOPY_ISA", "mmx").output().unwrap(), 2, &["NTCOPY_ISA"]);
}

#[test]
fn what_does_not_fit_the_memory_is_left_out_aloud() {
    if ntcopy_bench::run::available_bytes() > 80 << 30 {
        // The largest size would fit, and take its time.
        return;
    }
    let (output, record) = tried(&["memset", "--size", "64KiB,64GiB", "--modes", "libc"]);
    let left_out = record.unavailable.iter().filter(|line| line.why.contains("MiB")).count();
    assert!(left_out == 1, "{:?}", record.unavailable);
    assert!(stderr(&output).contains("1 of 2 cells are left out"), "{}", stderr(&output));
    assert!(record.samples.iter().all(|sample| sample.cell == 0) && record.complete);
}

fn samples(record: &Record, cell: u32, mode: &str) -> usize {
    record.samples.iter().filter(|s| s.cell == cell && s.mode == mode).count()
}

#[test]
#[cfg(target_arch = "x86_64")]
fn pages_are_cleared_and_copied_every_way_and_read_back() {
    let (record, text) = measured(&["pages", "--buffer", "8KiB,64KiB"]);
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
        let lines = record.unavailable.iter().filter(|line| line.mode == "movdir64b");
        let why = lines.filter(|line| line.cell.is_none_or(|at| at == cell.cell)).count();
        assert_eq!(samples(&record, cell.cell, "movdir64b") == 0, why == 1, "a reason");
        let size = cell.params["size_bytes"].as_u64().unwrap();
        let ours = record.samples.iter().filter(|sample| sample.cell == cell.cell);
        assert!(ours.into_iter().all(|sample| sample.bytes > 0 && sample.bytes % size == 0));
    }
    assert!(text.contains(", throughput: "), "{text}");
}
