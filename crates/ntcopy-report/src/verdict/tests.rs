use proptest::prelude::*;

use super::*;
use ntcopy_judge::judge;
use ntcopy_record::testing::{self, crossover, error, pairs, proxied, rated, record, unavailable};
use ntcopy_record::{Kernel, Look, Mode, Params, Record, Sample};

const MIB: u64 = 1 << 20;

fn sentences(record: &Record) -> Vec<String> {
    super::sentences(&judge(record))
}

fn says(record: &Record, all: &[&str]) {
    let said = sentences(record).join("\n");
    for words in all {
        assert!(said.contains(words), "{words} is missing:\n{said}");
    }
}

#[test]
fn cells_are_counted_with_both_ends_and_where_every_one_wins() {
    let said =
        sentences(&crossover(&[(MIB, 77), (16 * MIB, 100), (32 * MIB, 120), (64 * MIB, 131)]));
    assert_eq!(
        said,
        ["hinted relative to plain, throughput: 2 wins, 1 loss, 1 equal among 4 cells, \
          from 0.77x (0.75-0.79) [objects of 1 MiB, 1 MiB in flight] to 1.31x (1.28-1.34) \
          [objects of 1 MiB, 64 MiB in flight]; every cell wins from 32 MiB in flight on."]
    );
    let said = sentences(&crossover(&[(MIB, 130), (2 * MIB, 80)])).concat();
    assert!(said.contains("1 win, 1 loss") && !said.contains("every cell"), "{said}");
}

#[test]
fn published_configurations_are_named_by_their_label() {
    let mut record = crossover(&[(MIB, 120)]);
    record.cells[0].params.remove("in_flight_bytes");
    record.cells[0].params.insert("published".into(), "CPUs 1,2".into());
    assert_eq!(
        sentences(&record),
        [
            "hinted relative to plain, throughput: win, 1.20x (1.18-1.22) [as published for CPUs 1,2]."
        ]
    );
}

#[test]
fn a_missing_mode_is_said_with_its_reason_and_comes_first() {
    let mut record = pairs(&["plain", "vmsplice"], 5, &[1000, 2000]);
    record.header.modes.push(Mode::named("hinted"));
    record
        .unavailable
        .push(unavailable("hinted", "this kernel has no MSG_NTCOPY; try --kernel um"));
    assert_eq!(
        sentences(&record),
        [
            "hinted was not measured: this kernel has no MSG_NTCOPY; try --kernel um.",
            "vmsplice relative to plain, throughput: win, 2.00x (2.00-2.00) [1 MiB in flight]."
        ]
    );
}

#[test]
fn too_few_pairs_give_no_verdict() {
    let mut record = pairs(&["plain", "hinted"], 1, &[1000, 2000]);
    record.complete = false;
    assert_eq!(
        sentences(&record),
        [
            "hinted has no result: fewer than 5 good pairs of samples.",
            "The record was cut short after 2 samples."
        ]
    );
}

#[test]
fn trouble_is_one_sentence() {
    let mut record = crossover(&[(MIB, 120)]);
    record.errors = vec![error("hinted", true), error("hinted", false), error("hinted", false)];
    record.complete = false;
    assert_eq!(
        sentences(&record)[1],
        "A byte was wrong in 1 run, and 2 runs failed and gave no number, and the record was cut \
         short after 10 samples."
    );
}

#[test]
fn nothing_compared_is_said() {
    assert_eq!(sentences(&record(&["plain"], &[])), ["Nothing was compared with plain."]);
}

#[test]
fn what_is_not_a_timing_has_no_verdict() {
    let mut record = crossover(&[(MIB, 120)]);
    record.header.not_a_timing = Some("KASAN".into());
    record.complete = false;
    let said = "These are not timings (KASAN), so there is no verdict.";
    assert_eq!(sentences(&record), [said, "The record was cut short after 10 samples."]);
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
            record.errors.push(error("hinted", false));
        }
        let sentences = sentences(&record);
        prop_assert!((1..=4).contains(&sentences.len()), "{sentences:?}");
        for sentence in &sentences {
            prop_assert!(sentence.ends_with('.') && !sentence.ends_with(".."), "{sentence}");
        }
    }
}

#[test]
fn sends_of_two_kernels_are_held_against_both_kinds_of_plain_ones() {
    let mut record = pairs(&["plain-stock", "plain", "hinted"], 5, &[1000, 1100, 1320]);
    record.header.modes = of_kernels(Kernel::Stock, &["plain"]);
    record.header.modes.extend(of_kernels(Kernel::Patched, &["plain", "hinted"]));
    let words = [
        "hinted relative to plain-stock, throughput: win, 1.32x",
        "plain relative to plain-stock, throughput: win, 1.10x",
        "hinted relative to plain, throughput: win, 1.20x (1.20-1.20)",
    ];
    says(&record, &words);
}

fn of_kernels(kernel: Kernel, names: &[&str]) -> Vec<Mode> {
    names.iter().map(|name| Mode::named(*name).on(kernel)).collect()
}

#[test]
fn of_two_series_each_way_to_send_is_held_against_itself() {
    let both = ["plain", "hinted"];
    let modes = [of_kernels(Kernel::OtherPatches, &both), of_kernels(Kernel::Patched, &both)];
    let modes = modes.concat();
    let names: Vec<&str> = modes.iter().map(|mode| mode.mode.as_str()).collect();
    let mut record = pairs(&names, 5, &[1000, 1500, 1000, 1800]);
    record.header.modes.clone_from(&modes);
    let words = [
        "plain relative to plain-old, throughput: equal",
        "hinted relative to hinted-old, throughput: win, 1.20x",
        "hinted-old relative to plain-old, throughput: win, 1.50x",
    ];
    says(&record, &words);
}

#[test]
fn each_metric_has_its_sentence_and_an_offered_rate_is_no_throughput() {
    let words = [
        "throughput: win, 1.25x (1.25-1.25) [objects of 1 MiB, data set of 256 MiB, 64 connections].",
        "hinted relative to plain, bytes per CPU second: win, 2.00x",
        "hinted relative to plain, the 99th percentile of latency: win, 2.00x",
    ];
    says(&proxied([(1_000_000, 2, 100), (1_250_000, 1, 50)]), &words);
    says(&proxied([(1_000_000, 1, 50), (900_000, 2, 100)]), &["throughput: loss, 0.90x"]);
}

#[test]
fn stacks_are_compared_with_the_first_and_with_themselves() {
    let mut record = proxied([(1_000_000, 1, 50), (900_000, 2, 100)]);
    let of = |name: &str, stack: &str| Mode::named(name).measured_in("host").of_stack(stack);
    let [first, second] = ["haproxy+nginx", "storaged+proxyd"];
    record.header.modes = vec![of("plain", first), of("plain", second), of("hinted", second)];
    let names: Vec<String> = record.header.modes.iter().map(|mode| mode.mode.clone()).collect();
    record.header.baseline.clone_from(&names[0]);
    let mut own = Vec::new();
    for sample in &mut record.samples {
        let is_plain = sample.mode == "plain";
        sample.mode.clone_from(&names[usize::from(!is_plain)]);
        if !is_plain {
            own.push(Sample { mode: names[2].clone(), ..sample.clone() });
        }
    }
    record.samples.extend(own);
    let words = [
        "storaged+proxyd:plain relative to haproxy+nginx:plain, throughput",
        "storaged+proxyd:hinted relative to storaged+proxyd:plain, throughput",
    ];
    says(&record, &words);
}

#[test]
fn a_hint_has_a_part_of_what_copying_nothing_gains() {
    let mut record = proxied([(1_000_000, 2, 100), (1_250_000, 1, 50)]);
    let hinted = record.samples.iter().filter(|sample| sample.mode == "hinted");
    let faster = |sample: &Sample, factor: f64| Sample {
        mode: "sendfile".to_owned(),
        elapsed_ns: (sample.elapsed_ns as f64 / factor) as u64,
        ..sample.clone()
    };
    let nothing_copied: Vec<Sample> = hinted.map(|sample| faster(sample, 1.2)).collect();
    record.samples.extend(nothing_copied);
    record.header.modes.push(Mode::named("sendfile").measured_in("host"));
    let words = "hinted has 50 % of the gain of sends that copy nothing, where that is above 3 %: in \
                 1 cell.";
    let said = sentences(&record);
    assert!(said.iter().any(|sentence| sentence == words), "{said:#?}");
    // Where it gains nothing there is no part of it.
    for sample in record.samples.iter_mut().filter(|sample| sample.mode == "sendfile") {
        sample.elapsed_ns *= 2;
    }
    assert!(!sentences(&record).join(" ").contains("of the gain"));
}

#[test]
fn requests_that_were_given_up_are_told() {
    let mut record = proxied([(1_000_000, 2, 100), (1_250_000, 1, 50)]);
    record.samples.last_mut().unwrap().series.insert("unanswered".into(), vec![3]);
    says(&record, &["3 requests of hinted were not answered"]);
}

#[test]
fn pacing_is_told() {
    let mut record = testing::record(&["plain", "hinted"], &[&[]]);
    record.cells[0].params.insert("family".into(), "tcp".into());
    record.machine.tcp_congestion_control = Some("cubic".into());
    assert_eq!(pacing_sentence(&judge(&record)), None);
    record.machine.tcp_congestion_control = Some("bbr".into());
    assert!(pacing_sentence(&judge(&record)).is_some_and(|told| told.contains("bbr, which paces")));
}

#[test]
fn the_best_peer_is_another_in_every_cell_and_never_our_own() {
    let cells = [[100, 200, 300, 900], [400, 200, 200, 900]];
    let cells = cells.map(|rates| (Params::new(), [rates; 5]));
    let record = rated(&["libc", "rep-movsb", "ours", "stream"], cells);
    let words = "Over 2 cells ours is at 0.87x (0.87-0.87) of the best peer of each (geometric \
                 mean); worst, against libc, 0.50x (0.50-0.50) [the only cell].";
    assert_eq!(sentences(&record)[0], words);
}

#[test]
fn what_is_too_wide_is_said_with_what_to_do() {
    let rates = [800, 1200, 1000, 900, 1100].map(|rate| [1000, rate]);
    let mut record = testing::sends(&["plain", "hinted"], rates);
    let words = "2 of 2 results have an interval that is too wide for a win, a loss or equality, by up \
                 to 20 % to either side after 5 pairs. Four times";
    says(&record, &[words]);
    record.looks.push(Look { cell: 0, pairs: 5, misses_permille: 50, end: LookEnd::Budget });
    says(&record, &["; the time for 1 cell was up"]);
}
