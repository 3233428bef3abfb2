//! What a victim felt: of sends on the same CPU here, of copies in [`copies`].

pub mod copies;

use serde_json::Value;

use super::{
    THROUGHPUT, Versus, WALKS, interval, interval_missing, median, modes, quantile, versus,
};
use crate::record::{Cell, Record, Sample};

/// Bytes of a line, the unit of a walk.
const LINE_BYTES: u64 = 64;
/// The mode without sends.
const IDLE: &str = "idle";

/// What the victim felt in one mode, in one cell.
#[derive(Debug, Clone, PartialEq)]
pub struct Felt {
    pub mode: String,
    /// Median over the samples of their walks' median, nanoseconds a line.
    pub p50_ns: f64,
    /// 95 % interval of that.
    pub ci: Option<(f64, f64)>,
    /// The time that 99 in 100 walks did not exceed: nanoseconds a line.
    pub p99_ns: f64,
    pub walks: usize,
    /// The slow-down of the median walk, by groups: a walk by one of a victim that was left alone.
    /// None of `idle` itself, and with too few groups.
    pub slow_down: Option<copies::Ratio>,
    /// p50 and p99 by those of `idle`; none of `idle` itself.
    pub by_idle: Option<[f64; 2]>,
    /// The victim's speed against the baseline's: above 1 the victim is better off.
    pub against_baseline: Option<Versus>,
    /// The speed of all of it, sends and walks and drains, against the baseline's.
    pub whole_against_baseline: Option<Versus>,
    /// Nanoseconds for one send, one walk and the send's part of a drain: the median of the
    /// samples.
    pub whole_ns: f64,
}

/// Nanoseconds of each walk of a sample, in order; none if it has none.
#[must_use]
pub fn walks_ns(sample: &Sample) -> Option<Vec<f64>> {
    let walks = sample.series.get("walk_ns").filter(|walks| !walks.is_empty())?;
    Some(walks.iter().map(|ns| *ns as f64).collect())
}

/// Nanoseconds of the sample's median walk, or pass; none if it has neither, or was not the
/// traffic that it should have been.
#[must_use]
pub fn median_ns(sample: &Sample) -> Option<f64> {
    match walks_ns(sample) {
        Some(walks) => Some(median(&walks)),
        None if copies::is_short(sample) => None,
        None => copies::quantile_ns(&copies::passes(sample)?, 0.5),
    }
}

/// What the victim felt in each mode, the modes in the order of the record but `idle` first.
#[must_use]
pub fn felt(record: &Record, cell: &Cell) -> Vec<Felt> {
    let mut names = modes(record);
    names.sort_by_key(|mode| *mode != IDLE);
    let mut felt: Vec<Felt> =
        names.into_iter().filter_map(|mode| one(record, cell, mode)).collect();
    let idle = felt.iter().find(|felt| felt.mode == IDLE).map(|idle| (idle.p50_ns, idle.p99_ns));
    for felt in felt.iter_mut().filter(|felt| felt.mode != IDLE) {
        felt.by_idle = idle.map(|(p50, p99)| [felt.p50_ns / p50, felt.p99_ns / p99]);
    }
    felt
}

/// Times by those of a victim that was left alone, from its speeds.
fn slow_down(speed: &Versus) -> copies::Ratio {
    let times: Vec<f64> = speed.ratios.iter().map(|ratio| 1.0 / ratio).collect();
    copies::Ratio { ratio: median(&times), ci: interval_missing(&times, speed.misses_permille) }
}

fn one(record: &Record, cell: &Cell, mode: &str) -> Option<Felt> {
    let lines =
        cell.params.get("hot_set_bytes").and_then(Value::as_u64)? as f64 / LINE_BYTES as f64;
    let ours: Vec<&Sample> =
        record.samples.iter().filter(|s| s.cell == cell.cell && s.mode == mode).collect();
    let walks: Vec<Vec<f64>> = ours.iter().filter_map(|sample| walks_ns(sample)).collect();
    if walks.is_empty() {
        return None;
    }
    let medians: Vec<f64> = walks.iter().map(|walks| median(walks) / lines).collect();
    let all: Vec<f64> = walks.concat();
    let per_walk = |sample: &&Sample| {
        let walks = sample.series.get("walk_ns").map_or(1, Vec::len).max(1);
        sample.elapsed_ns as f64 / walks as f64
    };
    let whole: Vec<f64> = ours.iter().map(per_walk).collect();
    let baseline = record.header.baseline.as_str();
    let against = |metric| {
        let other = (mode != baseline).then_some(baseline)?;
        versus(record, cell.cell, mode, other, metric)
    };
    Some(Felt {
        mode: mode.to_owned(),
        p50_ns: median(&medians),
        ci: (medians.len() >= super::MIN_PAIRS).then(|| interval(&medians)),
        p99_ns: quantile(&all, 0.99) / lines,
        walks: all.len(),
        slow_down: (mode != IDLE)
            .then(|| versus(record, cell.cell, mode, IDLE, WALKS))
            .flatten()
            .map(|speed| slow_down(&speed)),
        by_idle: None,
        against_baseline: against(WALKS),
        whole_against_baseline: against(THROUGHPUT),
        whole_ns: median(&whole),
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::record::testing::{Sketch, record};

    /// Five pairs in which a line takes `line_ns` nanoseconds in (copy, idle, nt), and the whole
    /// goes at `rates` bytes per second.
    pub(crate) fn sketch(line_ns: [u64; 3], rates: [u64; 3]) -> Record {
        let names = ["copy", IDLE, "nt"];
        let params = [("hot_set_bytes", 6400), ("sockets", 1), ("object_bytes", 1 << 20)];
        let mut sketch = Sketch::of(&names, record(&names, &[&params]));
        for pair in 0..5 {
            sketch.pair(0, pair, &rates);
        }
        let mut record = sketch.record();
        record.header.experiment = "retention".into();
        for sample in &mut record.samples {
            let at = names.iter().position(|name| *name == sample.mode).unwrap();
            let walk = line_ns[at] * 100;
            sample.series = [("walk_ns".to_owned(), vec![walk, walk, 9 * walk])].into();
            if sample.mode == IDLE {
                sample.bytes = 0;
            }
        }
        record
    }

    #[test]
    fn a_line_is_what_the_median_walk_took_by_its_lines() {
        let record = sketch([10, 5, 8], [1000, 1, 900]);
        let felt = felt(&record, &record.cells[0]);
        let modes: Vec<&str> = felt.iter().map(|felt| felt.mode.as_str()).collect();
        assert_eq!(modes, [IDLE, "copy", "nt"]);
        assert_eq!((felt[1].p50_ns, felt[1].p99_ns, felt[1].walks), (10.0, 90.0, 15));
        assert_eq!(felt[2].ci, Some((8.0, 8.0)));
        assert_eq!(felt[1].against_baseline, None);
        let close = |a: Option<&Versus>, b: f64| a.is_some_and(|a| (a.ratio - b).abs() < 1e-6);
        assert!(close(felt[2].against_baseline.as_ref(), 1.25));
        assert!(close(felt[2].whole_against_baseline.as_ref(), 0.9));
        assert!(close(felt[0].against_baseline.as_ref(), 2.0));
        let times = |felt: &Felt| felt.slow_down.map(|slow_down| (slow_down.ratio * 1e6).round());
        assert_eq!([0, 1, 2].map(|at| times(&felt[at])), [None, Some(2e6), Some(1.6e6)]);
        assert_eq!((felt[0].by_idle, felt[1].by_idle), (None, Some([2.0, 2.0])));
        assert_eq!(felt[0].whole_against_baseline, None, "without traffic there is no such rate");
    }
}
