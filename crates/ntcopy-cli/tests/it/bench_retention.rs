//! `ntcopy bench retention`, end to end on the kernel that runs the tests, at sizes that take no
//! time. No test looks at a time.

use crate::common::measured;

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
