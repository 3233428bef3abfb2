use proptest::prelude::*;

use super::*;
use crate::record::testing::{self, Sketch, crossover, error, record, unavailable};

const MIB: u64 = 1 << 20;

fn only(points: &[(u64, u64)]) -> String {
    let sentences = sentences(&crossover(points));
    assert_eq!(sentences.len(), 1, "{sentences:?}");
    sentences[0].clone()
}

#[test]
fn a_crossover_names_both_ends_and_what_lies_between() {
    assert_eq!(
        only(&[(MIB, 77), (8 * MIB, 85), (16 * MIB, 100), (32 * MIB, 120), (64 * MIB, 131)]),
        "MSG_NTCOPY wins from 32 MiB in flight on (1.31x at 64 MiB, interval 1.28-1.34); it loses \
         up to 8 MiB (0.77x at 1 MiB, interval 0.75-0.79); in between no difference."
    );
}

#[test]
fn a_crossover_with_nothing_between_does_not_speak_of_it() {
    assert_eq!(
        only(&[(MIB, 80), (32 * MIB, 150)]),
        "MSG_NTCOPY wins from 32 MiB in flight on (1.50x at 32 MiB, interval 1.47-1.53); it loses \
         up to 1 MiB (0.80x at 1 MiB, interval 0.78-0.82)."
    );
}

#[test]
fn never_winning_and_never_losing_are_said() {
    assert_eq!(
        only(&[(MIB, 80), (2 * MIB, 100)]),
        "MSG_NTCOPY never wins here: it loses up to 1 MiB (0.80x at 1 MiB, interval 0.78-0.82); \
         from 2 MiB on no difference."
    );
    assert_eq!(
        only(&[(MIB, 100), (2 * MIB, 130)]),
        "MSG_NTCOPY wins from 2 MiB in flight on (1.30x at 2 MiB, interval 1.27-1.33); it never \
         loses; below that no difference."
    );
}

#[test]
fn the_same_everywhere_is_said_once() {
    assert_eq!(
        only(&[(MIB, 130), (4 * MIB, 150)]),
        "MSG_NTCOPY wins everywhere from 1 MiB to 4 MiB in flight (1.50x at 4 MiB, interval \
         1.47-1.53)."
    );
    assert_eq!(
        only(&[(MIB, 80), (4 * MIB, 50)]),
        "MSG_NTCOPY loses everywhere from 1 MiB to 4 MiB in flight (0.50x at 4 MiB, interval \
         0.49-0.51)."
    );
    assert_eq!(
        only(&[(MIB, 100), (4 * MIB, 100)]),
        "MSG_NTCOPY makes no difference from 1 MiB to 4 MiB in flight."
    );
}

#[test]
fn one_cell_is_not_a_range() {
    assert_eq!(
        only(&[(MIB, 80)]),
        "MSG_NTCOPY loses with 1 MiB in flight (0.80x, interval 0.78-0.82)."
    );
}

#[test]
fn a_mixed_picture_is_called_mixed() {
    assert_eq!(
        only(&[(MIB, 120), (2 * MIB, 80), (4 * MIB, 130), (8 * MIB, 100)]),
        "MSG_NTCOPY is mixed here: it wins with 1 MiB and 4 MiB in flight (best 1.30x at 4 MiB, \
         interval 1.27-1.33), loses with 2 MiB (worst 0.80x at 2 MiB, interval 0.78-0.82), makes \
         no difference with 8 MiB."
    );
}

#[test]
fn cells_are_ordered_by_bytes_in_flight_not_by_number() {
    assert_eq!(only(&[(32 * MIB, 150), (MIB, 80)]), only(&[(MIB, 80), (32 * MIB, 150)]));
}

#[test]
fn cells_that_differ_in_more_than_bytes_in_flight_are_counted() {
    let mut record = crossover(&[(MIB, 120), (2 * MIB, 80), (3 * MIB, 100)]);
    for cell in &mut record.cells {
        cell.params.remove("in_flight_bytes");
    }
    assert_eq!(
        sentences(&record),
        [
            "MSG_NTCOPY wins in 1 of 3 cells (best 1.20x, interval 1.18-1.22; objects of 1 MiB), loses \
          in 1 of 3 cells (worst 0.80x, interval 0.78-0.82; objects of 1 MiB), makes no difference \
          in 1 of 3 cells."
        ]
    );
}

#[test]
fn two_data_sets_get_a_sentence_each() {
    let mut record = crossover(&[(MIB, 80), (32 * MIB, 150), (MIB, 70), (32 * MIB, 100)]);
    for (cell, dataset) in record.cells.iter_mut().zip([MIB, MIB, 256 * MIB, 256 * MIB]) {
        cell.params.insert("dataset_bytes".into(), dataset.into());
    }
    assert_eq!(
        sentences(&record),
        [
            "With a data set of 1 MiB, MSG_NTCOPY wins from 32 MiB in flight on (1.50x at 32 MiB, \
             interval 1.47-1.53); it loses up to 1 MiB (0.80x at 1 MiB, interval 0.78-0.82).",
            "With a data set of 256 MiB, MSG_NTCOPY never wins here: it loses up to 1 MiB (0.70x at \
             1 MiB, interval 0.69-0.71); from 32 MiB on no difference.",
        ]
    );
}

#[test]
fn published_configurations_are_named_by_their_label() {
    let mut record = crossover(&[(MIB, 120)]);
    record.cells[0].params.remove("in_flight_bytes");
    record.cells[0].params.insert("published".into(), "CPUs 1,2".into());
    assert_eq!(
        sentences(&record),
        ["MSG_NTCOPY wins (1.20x, interval 1.18-1.22; as published for CPUs 1,2)."]
    );
}

#[test]
fn a_missing_mode_is_said_with_its_reason_and_comes_first() {
    let mut sketch = Sketch::new(&["copy", "vmsplice"]);
    for pair in 0..5 {
        sketch.pair(0, pair, &[1000, 2000]);
    }
    let mut record = sketch.record();
    record.unavailable.push(unavailable("nt", "this kernel has no MSG_NTCOPY; try --kernel um"));
    assert_eq!(
        sentences(&record),
        [
            "MSG_NTCOPY was not measured: this kernel has no MSG_NTCOPY; try --kernel um.",
            "vmsplice wins with 1 MiB in flight (2.00x, interval 2.00-2.00); its buffer must not \
             be touched until the reader is done."
        ]
    );
}

#[test]
fn too_few_pairs_give_no_verdict() {
    let mut sketch = Sketch::new(&["copy", "nt"]);
    sketch.pair(0, 0, &[1000, 2000]);
    let mut record = sketch.record();
    record.complete = false;
    assert_eq!(
        sentences(&record),
        [
            "MSG_NTCOPY has no result: fewer than 5 good pairs of samples.",
            "The record was cut short after 2 samples."
        ]
    );
}

#[test]
fn trouble_is_one_sentence() {
    let mut record = crossover(&[(MIB, 120)]);
    record.errors = vec![error("nt", true), error("nt", false), error("nt", false)];
    record.complete = false;
    assert_eq!(
        sentences(&record)[1],
        "A byte was wrong in 1 run, and 2 runs failed and gave no number, and the record was cut \
         short after 10 samples."
    );
}

#[test]
fn nothing_compared_is_said() {
    assert_eq!(
        sentences(&record(&["copy"], &[])),
        ["Nothing was compared: the record holds no mode beside copy."]
    );
}

#[test]
fn what_is_not_a_timing_has_no_verdict() {
    let mut record = crossover(&[(MIB, 120)]);
    record.header.not_a_timing = Some("KASAN".into());
    assert_eq!(sentences(&record), ["These are not timings (KASAN), so there is no verdict."]);
}

proptest! {
    #[test]
    fn any_record_gives_one_to_four_whole_sentences(
        percents in prop::collection::vec(50u64..160, 0..8),
        missing: bool, failed: bool, complete: bool,
    ) {
        let points: Vec<_> = (0..).map(|n| MIB << n).zip(percents).collect();
        let mut record = crossover(&points);
        record.complete = complete;
        if missing {
            record.unavailable.push(unavailable("vmsplice", "it is not."));
        }
        if failed {
            record.errors.push(error("nt", false));
        }
        let sentences = sentences(&record);
        prop_assert!((1..=4).contains(&sentences.len()), "{sentences:?}");
        for sentence in &sentences {
            prop_assert!(sentence.ends_with('.') && !sentence.ends_with(".."), "{sentence}");
        }
    }

    #[test]
    fn a_sentence_never_claims_what_no_cell_shows(percents in prop::collection::vec(50u64..160, 1..8)) {
        let points: Vec<_> = (0..).map(|n| MIB << n).zip(percents).collect();
        let record = crossover(&points);
        let verdicts: Vec<_> = stats::results(&record)
            .into_iter()
            .filter(|result| result.metric == THROUGHPUT)
            .map(|result| result.verdict)
            .collect();
        let sentence = &sentences(&record)[0];
        let claims = |words: &str| sentence.contains(words);
        prop_assert_eq!(verdicts.contains(&Verdict::Win), claims("wins ") && !claims("never wins"));
        prop_assert_eq!(verdicts.contains(&Verdict::Loss), claims("loses "));
        prop_assert_eq!(verdicts.contains(&Verdict::Equal), claims("no difference"));
        prop_assert_eq!(verdicts.contains(&Verdict::Unresolved), claims("unresolved"));
    }
}

#[test]
fn a_sweep_says_how_far_behind_the_better_mode_it_stays() {
    let cells: [&[(&str, u64)]; 2] = [
        &[("in_flight_bytes", 1 << 20), ("sockets", 1), ("object_bytes", 1 << 20)],
        &[("in_flight_bytes", 64 << 20), ("sockets", 64), ("object_bytes", 1 << 20)],
    ];
    let modes = ["copy", "nt", "adaptive"];
    let mut sketch = Sketch::of(&modes, record(&modes, &cells));
    for pair in 0..5 {
        sketch.pair(0, pair, &[1000, 800, 970]);
        sketch.pair(1, pair, &[1000, 1250, 1250]);
    }
    let said = sentences(&sketch.record());
    assert_eq!(
        said[..3],
        [
            "Over 2 cells the hint by the rule reaches 0.985 of the better of copy and nt in the \
             geometric mean (interval 0.985-0.985); the worst is 0.97 (interval 0.97-0.97; objects \
             of 1 MiB, 1 MiB in flight).",
            "No cell is below 0.97.",
            "With 64 MiB or more in flight (1 cell) it is at 1.25x to 1.25x of copy; the least \
             is objects of 1 MiB, 64 MiB in flight.",
        ]
    );
    assert!(said[4].starts_with("The hint by the rule wins from 64 MiB in flight on"), "{said:?}");
}

#[test]
fn a_sweep_says_how_many_cells_are_low_and_how_many_noise_would_make() {
    let cells: [&[(&str, u64)]; 2] = [&[("sockets", 1)], &[("sockets", 2)]];
    let modes = ["copy", "nt", "adaptive"];
    let mut sketch = Sketch::of(&modes, record(&modes, &cells));
    for (pair, adaptive) in (0..).zip([950, 800, 1200, 960, 900]) {
        sketch.pair(0, pair, &[1000, 800, adaptive]);
        sketch.pair(1, pair, &[1000, 900, 950]);
    }
    let said = &sentences(&sketch.record())[1];
    let expected = "2 cells are below 0.97; were the hint as good as the better one in every cell, \
                    noise alone would put 0 to 1 there.";
    assert_eq!(said, expected);
}

#[test]
fn of_two_series_each_mode_is_named_where_the_new_one_wins() {
    let modes = ["old", "new"];
    let cells: [&[(&str, u64)]; 2] = [&[("sockets", 1)], &[("sockets", 1)]];
    let mut sketch = Sketch::of(&modes, record(&modes, &cells));
    for pair in 0..5 {
        sketch.pair(0, pair, &[1000, 1000]);
        sketch.pair(1, pair, &[1000, 1200]);
    }
    let mut record = sketch.record();
    for (cell, sends) in record.cells.iter_mut().zip(["copy", "nt"]) {
        cell.params.insert("sends".to_owned(), sends.into());
    }
    let said = sentences(&record).join("\n");
    assert!(said.contains("The new kernel wins in 1 of 2 cells (best 1.20x"), "{said}");
    assert!(said.contains("; nt sends"), "{said}");
    record.header.experiment = ExperimentKind::Http;
    let said = sentences(&record).join("\n");
    assert!(said.contains("new moves bodies faster than old in 1"), "{said}");
    assert!(said.contains("1.20x, interval 1.20-1.20 (nt sends"), "{said}");
}

#[test]
fn sends_of_two_kernels_are_held_against_both_kinds_of_plain_ones() {
    let modes = ["unpatched", "patched", "nt", "adaptive"];
    let mut sketch = Sketch::new(&modes);
    for pair in 0..5 {
        sketch.pair(0, pair, &[1000, 1100, 1320, 1210]);
    }
    let mut record = sketch.record();
    let said = sentences(&record).join("\n");
    for words in [
        "MSG_NTCOPY wins with 1 MiB in flight (1.32x",
        "The patched kernel, unhinted, wins with 1 MiB in flight (1.10x",
        "nt is faster than patched in 1, the other way round in 0",
        "1.20x, interval 1.20-1.20",
        "adaptive is faster than patched in 1",
    ] {
        assert!(said.contains(words), "{words} is missing:\n{said}");
    }
    record.header.experiment = ExperimentKind::Http;
    let said = sentences(&record).join("\n");
    for words in
        ["nt moves bodies faster than unpatched in 1", "nt moves bodies faster than patched"]
    {
        assert!(said.contains(words), "{words} is missing:\n{said}");
    }
}

#[test]
fn pacing_is_told_and_what_to_do_about_it_where_that_can_be_had() {
    let mut record = testing::record(&["copy", "nt"], &[&[]]);
    record.cells[0].params.insert("family".into(), "tcp".into());
    record.machine.tcp_congestion_control = Some("cubic".into());
    assert_eq!(pacing_sentence(&record), None);
    record.machine.tcp_congestion_control = Some("bbr".into());
    let told = pacing_sentence(&record).unwrap();
    assert!(told.contains("bbr, which paces") && !told.contains("--congestion"), "{told}");
    record.header.experiment = ExperimentKind::Http;
    assert!(pacing_sentence(&record).is_some_and(|told| told.contains("--congestion reno")));
}
