use proptest::prelude::*;

use super::*;
use crate::record::testing::{pairs, sends};

#[test]
fn ratio_is_taken_inside_pairs_not_over_medians() {
    // The machine doubles its speed half way; every pair says 1.1.
    let speed = |pair| if pair < 5 { 100 } else { 200 };
    let record = sends(&["copy", "nt"], (0..10).map(speed).map(|speed| [speed * 10, speed * 11]));
    let whole = versus(&record, 0, "nt", "copy", THROUGHPUT).unwrap();
    assert!((whole.ratio - 1.1).abs() < 1e-9);
    assert!((whole.ci.0 - 1.1).abs() < 1e-9 && (whole.ci.1 - 1.1).abs() < 1e-9);
    assert_eq!((whole.verdict(), whole.ratios.len()), (Verdict::Win, 10));
}

#[test]
fn medians_are_bytes_per_second() {
    let record = pairs(&["copy", "nt"], 5, &[1000, 2000]);
    let result = versus(&record, 0, "nt", "copy", THROUGHPUT).unwrap();
    assert!((result.other_median - 1000.0).abs() < 0.01, "{result:?}");
    assert!((result.median - 2000.0).abs() < 0.01, "{result:?}");
}

#[test]
fn fewer_than_five_pairs_make_no_result() {
    for (many, has_result) in [(4, false), (5, true)] {
        let record = pairs(&["copy", "nt"], many, &[1000, 2000]);
        assert_eq!(versus(&record, 0, "nt", "copy", THROUGHPUT).is_some(), has_result);
    }
}

#[test]
fn a_pair_that_lacks_a_side_does_not_count() {
    let mut record = pairs(&["copy", "nt"], 6, &[1000, 2000]);
    record.samples.retain(|sample| sample.pair != 3 || sample.mode == "nt");
    assert_eq!(versus(&record, 0, "nt", "copy", THROUGHPUT).unwrap().ratios.len(), 5);
}

#[test]
fn sends_have_a_result_of_their_own_only_where_they_were_clocked() {
    let mut record = pairs(&["copy", "nt"], 5, &[1000, 2000]);
    let sends = |record: &Record| versus(record, 0, "nt", "copy", SEND_THROUGHPUT);
    assert!(sends(&record).is_some());
    record.samples.iter_mut().for_each(|sample| sample.phases_ns.clear());
    assert_eq!(sends(&record), None);
}

#[test]
fn a_mode_has_a_median_where_it_has_samples() {
    let record = pairs(&["copy"], 9, &[1000]);
    assert!(mode_median(&record, 0, "copy", THROUGHPUT).is_some());
    assert!(mode_median(&record, 0, "nt", THROUGHPUT).is_none());
}

#[test]
fn the_interval_decides_the_verdict() {
    assert_eq!(Verdict::from_interval((1.01, 1.2)), Verdict::Win);
    assert_eq!(Verdict::from_interval((0.8, 0.99)), Verdict::Loss);
    for ci in [(0.97, 1.03), (1.0, 1.02), (0.98, 1.0), (1.0, 1.0)] {
        assert_eq!(Verdict::from_interval(ci), Verdict::Equal);
    }
    for ci in [(0.9, 1.1), (1.0, 1.1), (0.9, 1.0), (0.969, 1.01), (0.99, 1.031)] {
        assert_eq!(Verdict::from_interval(ci), Verdict::Unresolved, "{ci:?}");
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
