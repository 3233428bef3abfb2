//! `ntcopy bench pages`, end to end on the kernel that runs the tests, at sizes that take no time.
//! No test looks at a time.

use ntcopy_record::Record;

use crate::common::measured;

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
