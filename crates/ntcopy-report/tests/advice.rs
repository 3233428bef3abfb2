//! Advice as text, from records made by the tests.

mod common;

use std::path::Path;

use common::{synthetic_retention, synthetic_rounds, synthetic_sweep};
use ntcopy_judge::advice::{Advice, Decision, Reason, Taker, Target, Topic, advise};
use ntcopy_judge::{Judged, judge};
use ntcopy_record::{Kernel, Mode, Record};
use ntcopy_report::advice::{Opening, Source, terminal};
use ntcopy_report::text::Line;
use ntcopy_report::{hot, summary};

fn target(record: &Judged) -> Target {
    Target { machine: record.machine.clone(), profile: None }
}

fn advice() -> (Vec<Advice>, Target) {
    let record = judge(&synthetic_sweep());
    let target = target(&record);
    (advise(&[&record], &target), target)
}

fn threshold(topic: Topic, bytes: u64) -> Advice {
    let bare = Advice::bare(topic, Decision::Set, Reason::NotMeasured);
    Advice { from_bytes: Some(bytes), ..bare }
}

const UNKNOWN: Opening<'static> = Opening { origin: "nowhere", verdict: &[] };

fn source(place: &str, not_counted: Option<&str>) -> Source {
    Source {
        place: place.into(),
        id: Some(place.into()),
        not_counted: not_counted.map(str::to_owned),
        cpu_signature: None,
    }
}

#[test]
fn each_piece_has_its_setting_gain_reason_and_record() {
    let (all, target) = advice();
    let sources = [source("a", None), source("b", Some("a byte was wrong in it"))];
    let verdict = [Line { label: "verdict:", words: "It wins".into() }];
    let opening = Opening { origin: "1 record in a", verdict: &verdict };
    let text = terminal(&opening, &all, &target, &sources);
    for words in [
        "Advice from 1 record in a.\nSYNTHETIC CPU 9000 (AuthenticAMD-26-2-1), 2 CPUs, last-level \
         cache 32 MiB, glibc 2.36.\n",
        "\nverdict: It wins\n",
        "advice  USE ntcopy run --min-bytes 256KiB -- PROGRAM",
        "advice  USE SO_NTCOPY = 262144 (sends of 256 KiB and more) on unix sockets",
        "gain    1.25x (",
        "undo    start PROGRAM without ntcopy run",
        "undo    setsockopt() of SO_NTCOPY to 0",
        "record  synthetic-sweep",
        "No evidence yet; these commands measure it\n",
        "      ntcopy bench memcpy --modes libc-tuned --libc-threshold 1MiB",
        "Not counted\n    1 x a byte was wrong in it\n        b\n",
    ] {
        assert!(text.contains(words), "{words:?} is missing:\n{text}");
    }
    // Commands are copied, and stay in one line.
    let mut prose = text.lines().filter(|line| !line.trim_start().starts_with("ntcopy bench"));
    assert!(text.is_ascii() && prose.all(|line| line.len() <= 120), "{text}");
}

#[test]
fn losses_are_as_plain_as_wins() {
    let mut record = synthetic_sweep();
    for sample in record.samples.iter_mut().filter(|sample| sample.mode != "plain") {
        sample.elapsed_ns = sample.elapsed_ns * 3 / 2;
    }
    let record = judge(&record);
    let target = target(&record);
    let text = terminal(&UNKNOWN, &advise(&[&record], &target), &target, &[]);
    assert!(text.contains("leave off SO_NTCOPY: 0."), "{text}");
    assert!(!text.contains("SET ") && !text.contains("USE "), "{text}");
    assert!(!text.contains("undo"), "nothing is set: {text}");
}

#[test]
fn both_tunables_are_said_in_one_line() {
    let memcpy = "glibc.cpu.x86_non_temporal_threshold";
    let memset = "glibc.cpu.x86_memset_non_temporal_threshold";
    let all =
        [threshold(Topic::MemcpyThreshold, 1 << 20), threshold(Topic::MemsetThreshold, 2 << 20)];
    let target = target(&judge(&synthetic_rounds()));
    let text = terminal(&UNKNOWN, &all, &target, &[]);
    assert!(
        text.contains(&format!("in one line:\n  GLIBC_TUNABLES={memcpy}=1048576:{memset}=2097152"))
    );
}

/// The newest of them is one of footprint, whose instrument is off: that is not what is to be set.
#[test]
fn where_copies_are_advised_and_no_sends_were_measured_that_is_the_verdict() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../bench/record/2026-11-26-GenuineIntel-6-167-1");
    let read = |name: &str| judge(&Record::read(folder.join(name)).unwrap());
    let (footprint, memcpy) = (read("footprint"), read("memcpy"));
    let machine = footprint.machine.clone();
    let summary = summary::of(&machine, vec![&footprint, &memcpy]);
    let lines: Vec<String> = summary.lines().iter().map(Line::to_string).collect();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].contains("USE ") && !lines[0].contains("instrument"), "{lines:?}");
    let summary = summary::of(&machine, vec![&footprint]);
    let lines: Vec<String> = summary.lines().iter().map(Line::to_string).collect();
    assert!(lines[0].contains("instrument is off"), "nothing is advised: {lines:?}");
}

#[test]
fn the_hot_set_of_the_answer_is_that_beside_sends_out_of_more_data_than_the_caches_hold() {
    let cold = synthetic_retention();
    let mut both = cold.clone();
    let mut hot = cold.cells[0].clone();
    hot.cell = 1;
    hot.params.insert("dataset_bytes".to_owned(), serde_json::json!(1 << 20));
    both.cells.push(hot);
    for sample in &cold.samples {
        // Plain sends of the same megabyte slow the hot set down more.
        let times = if sample.mode == "plain" { 3 } else { 1 };
        let walks = sample.series["walk_ns"].iter().map(|ns| ns * times).collect();
        let series = [("walk_ns".to_owned(), walks)].into();
        both.samples.push(ntcopy_record::Sample { cell: 1, series, ..sample.clone() });
    }
    let p50 =
        |record: &Judged| hot::worst(&[record], Taker::Kernel).unwrap().line("plain").unwrap().p50;
    assert_eq!(p50(&judge(&both)), 10.0);
    // A stock kernel's plain sends come first in `--against stock`, and are not what a hint adds to.
    let mut against = both.clone();
    against.header.baseline = "plain-stock".to_owned();
    against.header.modes.insert(0, Mode::named("plain").on(Kernel::Stock));
    for mode in &mut against.header.modes[1..] {
        mode.kernel = Some(Kernel::Patched);
    }
    for sample in both.samples.iter().filter(|sample| sample.mode == "plain") {
        let walks = sample.series["walk_ns"].iter().map(|ns| ns * 9).collect();
        let series = [("walk_ns".to_owned(), walks)].into();
        let mode = "plain-stock".to_owned();
        against.samples.push(ntcopy_record::Sample { mode, series, ..sample.clone() });
    }
    let kept = hot::worst(&[&judge(&against)], Taker::Kernel).unwrap().kept();
    assert_eq!(kept.unwrap(), "others on the CPU have 8.0 ns a line instead of 10.0");
    both.cells.remove(0);
    assert_eq!(p50(&judge(&both)), 30.0, "it is all that was measured");
}
