use super::*;
use crate::record::testing::{Sketch, record};

pub(crate) const MODES: [&str; 4] = [IDLE, COPY, "nt", NT_BOTH];

/// Five groups of a neighbour and of a victim on the same core, each with a hot set of 1 MiB; a
/// pass of 10 lines takes these nanoseconds in each of [`MODES`], and every hundredth ten times
/// as long.
pub(crate) fn sketch(neighbour: [u64; 4], same_core: [u64; 4]) -> Record {
    let cell = [("hot_set_bytes", 1 << 20), ("pass_bytes", 640), ("object_bytes", 256 << 10)];
    let mut sketch = Sketch::of(&MODES, record(&MODES, &[&cell, &cell]));
    for (number, pair) in (0..2).flat_map(|cell| (0..5).map(move |pair| (cell, pair))) {
        sketch.pair(number, pair, &[1, 8_000_000_000, 9_000_000_000, 10_000_000_000]);
    }
    let mut record = sketch.record();
    record.header.experiment = "retention".into();
    for (cell, victim) in record.cells.iter_mut().zip(["neighbour", "same-core"]) {
        cell.params.insert("form".to_owned(), "copies".into());
        cell.params.insert("victim".to_owned(), victim.into());
    }
    record.cells[0].params.insert("rate_bytes_per_s".to_owned(), 10_000_000_000_u64.into());
    for sample in &mut record.samples {
        let at = MODES.iter().position(|mode| *mode == sample.mode).unwrap();
        let ns = if sample.cell == 0 { neighbour[at] } else { same_core[at] };
        sample.phases_ns = [("walk".to_owned(), 1)].into();
        sample.series =
            [("pass_ns".to_owned(), vec![ns, 10 * ns]), ("passes".to_owned(), vec![98, 2])].into();
        if at == 0 {
            sample.bytes = 0;
        } else {
            sample.series.insert("offered_bytes".to_owned(), vec![sample.bytes]);
            sample.phases_ns.insert("copy".to_owned(), sample.elapsed_ns);
        }
    }
    record
}

#[test]
fn a_slow_down_is_a_pass_by_one_that_was_left_alone() {
    let record = sketch([100, 150, 120, 110], [100, 200, 125, 112]);
    let felt = felt(&record, &record.cells[0]);
    let modes: Vec<&str> = felt.iter().map(|felt| felt.mode.as_str()).collect();
    assert_eq!(modes, MODES);
    assert_eq!(felt[1].line_ns, [15.0, 150.0, 150.0]);
    assert_eq!(felt[1].by_idle, Some([1.5, 1.5, 1.5]));
    assert_eq!(felt[1].slow_down[0], Some(Ratio { ratio: 1.5, ci: (1.5, 1.5) }));
    assert_eq!((felt[0].slow_down, felt[0].by_idle), ([None, None], None));
    assert!(felt[3].speed.as_ref().is_some_and(|speed| (speed.ratio - 1.0 / 1.1).abs() < 1e-9));
    assert_eq!((felt[2].passes, felt[2].samples, felt[2].short), (500, 5, 0));
    assert!((felt[2].traffic_bytes_per_s / 9e9 - 1.0).abs() < 1e-6);
    assert_eq!(felt[2].whole_by_copy, None, "side by side, the rate is what was offered");
}

#[test]
fn on_the_same_core_the_whole_counts_too() {
    let record = sketch([100, 150, 120, 110], [100, 200, 125, 112]);
    let felt = felt(&record, &record.cells[1]);
    assert!(felt[3].whole_by_copy.as_ref().is_some_and(|w| (w.ratio - 1.25).abs() < 1e-6));
    assert_eq!(felt[1].whole_by_copy, None);
}

#[test]
fn a_part_of_the_slow_down_is_told_where_there_is_one() {
    let record = sketch([100, 150, 120, 110], [100, 101, 125, 112]);
    let part = part_of_slow_down(&record, &record.cells[0], NT_BOTH).unwrap();
    assert!((part.ratio - 0.2).abs() < 1e-9 && part.ci == (part.ratio, part.ratio), "{part:?}");
    assert_eq!(part_of_slow_down(&record, &record.cells[1], NT_BOTH), None);
}

#[test]
fn a_sample_that_fell_behind_does_not_count() {
    let mut record = sketch([100, 150, 120, 110], [100, 200, 125, 112]);
    for sample in record.samples.iter_mut().filter(|s| s.cell == 0 && s.mode == COPY) {
        if sample.pair == 0 {
            sample.bytes = sample.bytes / 100 * 97;
        }
    }
    let felt = felt(&record, &record.cells[0]);
    assert_eq!((felt[1].samples, felt[1].short), (4, 1));
    assert_eq!(felt[1].slow_down[0], None, "four groups make no interval");
    assert_eq!(felt[2].short, 0);
    assert!(versus(&record, 0, COPY, IDLE, WALKS).is_none());
    assert!(always_behind(&record, &record.cells[0]).is_empty());
    for sample in record.samples.iter_mut().filter(|s| s.cell == 0 && s.mode == COPY) {
        sample.bytes /= 2;
    }
    assert_eq!(always_behind(&record, &record.cells[0]), [COPY]);
    assert_eq!(felt.len(), 4);
    assert_eq!(super::felt(&record, &record.cells[0]).len(), 3);
}

#[test]
fn quantiles_are_nearest_ranks_of_the_counts() {
    let passes = [(10, 98), (20, 1), (70, 1)];
    let at = |part| quantile_ns(&passes, part).unwrap();
    assert_eq!([at(0.5), at(0.98), at(0.99), at(0.999)], [10.0, 10.0, 20.0, 70.0]);
    assert_eq!(quantile_ns(&[], 0.5), None);
}
