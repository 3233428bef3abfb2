use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::{Judged, Measured, judge};
use ntcopy_record::testing::{pairs, params, proxied, rated, sends};
use ntcopy_record::{HardwareCounter, Record};

fn versus(record: &Record, cell: u32, mode: &str, other: &str, metric: &str) -> Option<Versus> {
    judge(record).versus(cell, mode, other, metric).cloned()
}

fn measured(judged: &Judged, cell: usize) -> Vec<Measured<'_>> {
    judged.measured(&judged.cells[cell])
}

#[test]
fn ratio_is_taken_inside_pairs_not_over_medians() {
    // The machine doubles its speed half way; every pair says 1.1.
    let speed = |pair| if pair < 5 { 100 } else { 200 };
    let record =
        sends(&["plain", "hinted"], (0..10).map(speed).map(|speed| [speed * 10, speed * 11]));
    let whole = versus(&record, 0, "hinted", "plain", THROUGHPUT).unwrap();
    assert!((whole.ratio - 1.1).abs() < 1e-9);
    assert!((whole.ci.0 - 1.1).abs() < 1e-9 && (whole.ci.1 - 1.1).abs() < 1e-9);
    assert_eq!((whole.verdict(), whole.ratios.len()), (Verdict::Win, 10));
}

#[test]
fn medians_are_bytes_per_second() {
    let record = pairs(&["plain", "hinted"], 5, &[1000, 2000]);
    let result = versus(&record, 0, "hinted", "plain", THROUGHPUT).unwrap();
    assert!((result.other_median - 1000.0).abs() < 0.01, "{result:?}");
    assert!((result.median - 2000.0).abs() < 0.01, "{result:?}");
}

#[test]
fn fewer_than_five_pairs_make_no_result() {
    for (many, has_result) in [(4, false), (5, true)] {
        let record = pairs(&["plain", "hinted"], many, &[1000, 2000]);
        assert_eq!(versus(&record, 0, "hinted", "plain", THROUGHPUT).is_some(), has_result);
    }
}

#[test]
fn a_pair_that_lacks_a_side_does_not_count() {
    let mut record = pairs(&["plain", "hinted"], 6, &[1000, 2000]);
    record.samples.retain(|sample| sample.pair != 3 || sample.mode == "hinted");
    assert_eq!(versus(&record, 0, "hinted", "plain", THROUGHPUT).unwrap().ratios.len(), 5);
}

#[test]
fn sends_have_a_result_of_their_own_only_where_they_were_clocked() {
    let mut record = pairs(&["plain", "hinted"], 5, &[1000, 2000]);
    let sends = |record: &Record| versus(record, 0, "hinted", "plain", SEND_THROUGHPUT);
    assert!(sends(&record).is_some());
    record.samples.iter_mut().for_each(|sample| sample.phases_ns.clear());
    assert_eq!(sends(&record), None);
}

#[test]
fn a_mode_has_a_median_where_it_has_samples() {
    let record = pairs(&["plain"], 9, &[1000]);
    let median = |mode| judge(&record).median(0, mode, THROUGHPUT);
    assert!(median("plain").is_some() && median("hinted").is_none());
}

#[test]
fn a_verdict_has_an_interval_on_one_side_and_a_bar() {
    let of = |ratio: f64, ci: (f64, f64)| Ratio { ratio, ci }.verdict();
    assert_eq!([of(1.1, (1.01, 1.2)), of(1.03, (1.02, 1.04))], [Verdict::Win; 2]);
    assert_eq!([of(0.9, (0.8, 0.99)), of(0.97, (0.96, 0.98))], [Verdict::Loss; 2]);
    // A difference that shows, and that nobody would act on, is none.
    for (ratio, ci) in [(1.0, (0.96, 1.04)), (1.008, (1.002, 1.01)), (0.98, (0.96, 0.99))] {
        assert_eq!(of(ratio, ci), Verdict::Equal, "{ratio} {ci:?}");
    }
    for (ratio, ci) in [(1.0, (0.9, 1.1)), (1.02, (1.001, 1.06)), (1.04, (0.99, 1.05))] {
        assert_eq!(of(ratio, ci), Verdict::Unresolved, "{ratio} {ci:?}");
    }
}

proptest! {
    #[test]
    fn the_interval_lies_within_the_data_and_around_its_median(
        values in prop::collection::vec(0.01f64..100.0, 1..40),
    ) {
        let (low, high) = interval(&values, 50);
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let middle = median(&values);
        prop_assert!(least <= low && high <= most);
        prop_assert!(low <= middle && middle <= high, "{low} {middle} {high}");
        prop_assert_eq!(interval(&values, 50), (low, high));
    }
}

/// One cell of a hot set of ten lines: `idle`, `plain` and `hinted`, in which a walk takes so many
/// nanoseconds, and every fiftieth ten times as long.
fn hot_set(walk_ns: [u64; 3]) -> Record {
    let modes = ["idle", "plain", "hinted"];
    let cell = (params(json!({"hot_set_bytes": 640})), [[1, 8_000_000_000, 9_000_000_000]; 5]);
    let mut record = rated(&modes, [cell]);
    record.header.baseline = "plain".into();
    for sample in &mut record.samples {
        let ns = walk_ns[modes.iter().position(|mode| *mode == sample.mode).unwrap()];
        let walks = [vec![ns; 98], vec![10 * ns; 2]].concat();
        sample.series.insert("walk_ns".into(), walks);
    }
    record
}

fn ratio(versus: Option<&Versus>) -> f64 {
    versus.map_or(0.0, |versus| (versus.ratio * 1e6).round() / 1e6)
}

#[test]
fn a_closed_cell_tells_what_went_through_and_what_it_cost() {
    let mut record = proxied([(1_000_000, 2, 100), (1_250_000, 1, 50)]);
    let name = "dram-read-bytes";
    record.machine.hardware_counters =
        vec![HardwareCounter { name: name.into(), source: String::new(), missing: None }];
    for sample in &mut record.samples {
        sample.counters.insert(name.into(), 1 << 30);
        sample.counters.insert(format!("{name}:counted_permille"), 900);
    }
    let judged = judge(&record);
    let all = measured(&judged, 0);
    let [plain, hinted] = &all[..] else { panic!("two modes") };
    assert!(plain.is_baseline() && !hinted.is_baseline());
    assert_eq!(hinted.median(SERVERS_CPU), Some(2.0));
    assert_eq!((hinted.median(PROGRAM_CPU), hinted.median(SEND_SHARE)), (None, None));
    // What the hardware counted is no part of what the kernel copied.
    assert_eq!((plain.median(NONTEMPORAL), hinted.median(NONTEMPORAL)), (None, Some(0.75)));
    assert_eq!(ratio(hinted.versus(THROUGHPUT)), 1.25);
    assert_eq!(ratio(hinted.versus(PER_CPU)), 2.0);
    assert_eq!((plain.versus(THROUGHPUT), hinted.quantile_ns(0.5)), (None, None));
    let scaled = hinted.event(name, 1.0).unwrap();
    assert!(scaled.1 && scaled.0 > 0.0);
}

#[test]
fn an_open_cell_tells_how_long_it_took_and_no_throughput() {
    let record = proxied([(1_000_000, 2, 100), (1_250_000, 1, 50)]);
    let judged = judge(&record);
    let all = measured(&judged, 1);
    let plain = &all[0];
    // 490 and 10 of 500 answers; at 99.9 % not even one took longer.
    let told = [0.5, 0.9, 0.99, 0.999].map(|part| plain.quantile_ns(part));
    assert_eq!(told, [Some(100_000.0), Some(100_000.0), Some(500_000.0), None]);
    assert_eq!((plain.answers(), plain.unanswered, plain.median(MEAN_US)), (500, 0, Some(108.0)));
    assert_eq!(ratio(all[1].versus(P99)), 2.0, "half as long is twice as good");
    assert_eq!((plain.median(THROUGHPUT), plain.median(PER_CPU)), (None, None));
    assert!(plain.median(CLIENT_CPU_US).is_some());
    let has = |cell, metric| versus(&record, cell, "hinted", "plain", metric).is_some();
    let all = [has(0, THROUGHPUT), has(1, THROUGHPUT), has(0, P99), has(1, P99)];
    assert_eq!(all, [true, false, false, true]);
}

#[test]
fn a_slow_down_is_a_walk_by_one_that_was_left_alone() {
    let record = hot_set([100, 150, 120]);
    let judged = judge(&record);
    let all = measured(&judged, 0);
    let modes: Vec<&str> = all.iter().map(|one| one.mode).collect();
    assert_eq!(modes, ["idle", "plain", "hinted"]);
    assert_eq!((all[1].line_ns(0.5), all[1].line_ns(0.99)), (Some(15.0), Some(150.0)));
    assert_eq!(
        [0, 1, 2]
            .map(|at| all[at].slow_down().map_or(0.0, |slow| (slow.ratio * 1e6).round() / 1e6)),
        [0.0, 1.5, 1.2]
    );
    assert_eq!(ratio(all[2].versus(WALKS)), 1.25);
    let mut tailed = record.clone();
    for sample in tailed.samples.iter_mut().filter(|sample| sample.mode == "hinted") {
        let walks = sample.series.get_mut("walk_ns").unwrap();
        walks.iter_mut().skip(98).for_each(|ns| *ns *= 2);
    }
    let judged = judge(&tailed);
    let all = measured(&judged, 0);
    // At the median and at the 99th percentile a mode may do unlike.
    assert_eq!([WALKS, WALKS_P99].map(|metric| ratio(all[2].versus(metric))), [1.25, 0.625]);
}
