//! What small requests to a program felt of large ones, and what became of the large ones.

use super::http::{QUANTILES, against, names, nontemporal_part, pooled, samples, told};
use super::{P50, P99, PER_CPU, THROUGHPUT, Versus, median, mode_median};
use crate::record::{Cell, Record, Sample};

/// Whether it is a sample of a program with small requests and large ones.
#[must_use]
pub fn is_one(sample: &Sample) -> bool {
    sample.series.contains_key("multigets")
}

/// CPU time of the program, nanoseconds; none of another experiment's sample.
#[must_use]
pub fn server_cpu_ns(sample: &Sample) -> Option<u64> {
    is_one(sample).then(|| sample.phases_ns.get("server_cpu").copied())?
}

/// What one mode did in a cell.
#[derive(Debug, Clone, PartialEq)]
pub struct Served {
    /// The mode.
    pub mode: String,
    /// How long small requests took, from when they were due: [`QUANTILES`] over all samples,
    /// nanoseconds; none where too few took longer.
    pub quantiles_ns: [Option<f64>; 4],
    /// Answers that make these figures.
    pub answers: u64,
    /// Those of them that had not come when no more was waited for.
    pub unanswered: u64,
    /// The time that half of the answers did not exceed, against the baseline's: above 1 is
    /// shorter.
    pub p50: Option<Versus>,
    /// The same of 99 in 100.
    pub p99: Option<Versus>,
    /// Bytes of large values a second: the median of the samples; none where there were none.
    pub bytes_per_s: Option<f64>,
    /// Against the baseline's.
    pub throughput: Option<Versus>,
    /// CPU seconds of the program for 10^9 bytes of large values: the median of the samples.
    pub cpu_s_per_gb: Option<f64>,
    /// Bytes of large values for a CPU second, against the baseline's.
    pub per_cpu: Option<Versus>,
    /// Part of the hinted and copied bytes that was copied non-temporally, from 0 to 1.
    pub nontemporal_part: Option<f64>,
}

/// What each mode did in a cell, the baseline first.
#[must_use]
pub fn served(record: &Record, cell: &Cell) -> Vec<Served> {
    let one = |mode: &str| {
        let pooled = pooled(record, cell, mode);
        let against = |metric| against(record, cell, mode, metric);
        let cpu: Vec<f64> = samples(record, cell, mode).filter_map(cpu_s_per_gb).collect();
        (pooled.answers > 0).then(|| Served {
            mode: mode.to_owned(),
            quantiles_ns: QUANTILES.map(|part| told(&pooled.latencies, part)),
            answers: pooled.answers,
            unanswered: pooled.unanswered,
            p50: against(P50),
            p99: against(P99),
            bytes_per_s: mode_median(record, cell.cell, mode, THROUGHPUT),
            throughput: against(THROUGHPUT),
            cpu_s_per_gb: (!cpu.is_empty()).then(|| median(&cpu)),
            per_cpu: against(PER_CPU),
            nontemporal_part: nontemporal_part(record, cell, mode),
        })
    };
    names(record).into_iter().filter_map(one).collect()
}

/// Nanoseconds a byte are seconds for 10^9 of them.
fn cpu_s_per_gb(sample: &Sample) -> Option<f64> {
    let ns = server_cpu_ns(sample)?;
    (sample.bytes > 0).then(|| ns as f64 / sample.bytes as f64)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::record::testing::{Sketch, record};

    /// One cell of `copy`, `idle` and `adaptive`: (bytes of large values a second, CPU nanoseconds
    /// of the program for one, microseconds that a small request takes). No bytes: none were asked
    /// for.
    pub(crate) fn sketch(figures: [(u64, u64, u64); 3]) -> Record {
        let names = ["copy", "idle", "adaptive"];
        let params = [("connections", 16), ("large_bytes", 1 << 20), ("dataset_bytes", 256 << 20)];
        let mut empty = record(&names, &[&params]);
        empty.header.experiment = "app".into();
        for (name, value) in [("app", "memcached"), ("form", "closed"), ("large_rate", "max")] {
            empty.cells[0].params.insert(name.into(), value.into());
        }
        let mut sketch = Sketch::of(&names, empty);
        for pair in 0..5 {
            sketch.pair(0, pair, &figures.map(|(rate, ..)| rate.max(1)));
        }
        let mut record = sketch.record();
        for sample in &mut record.samples {
            let at = names.iter().position(|name| *name == sample.mode).unwrap();
            let (rate, cpu_ns, us) = figures[at];
            if rate == 0 {
                sample.bytes = 0;
                sample.elapsed_ns = 1_000_000_000;
            }
            sample.phases_ns = [("server_cpu".to_owned(), cpu_ns * sample.bytes)].into();
            let ns = [us * 1000, us * 5000];
            sample.series.insert("multigets".into(), vec![100]);
            sample.series.insert("latency_ns".into(), ns.into());
            sample.series.insert("answers".into(), vec![98, 2]);
            if sample.mode == "adaptive" {
                let counts = [("nontemporal_bytes", 75), ("fits_cache_bytes", 25)];
                sample.counters = counts.map(|(name, n)| (name.to_owned(), n)).into();
            }
        }
        record
    }

    #[test]
    fn small_requests_and_large_ones_are_told_of_every_mode_that_has_them() {
        let record = sketch([(1_000_000, 2, 100), (0, 0, 25), (1_250_000, 1, 50)]);
        let served = served(&record, &record.cells[0]);
        let modes: Vec<&str> = served.iter().map(|served| served.mode.as_str()).collect();
        assert_eq!(modes, ["copy", "idle", "adaptive"]);
        let [copy, idle, adaptive] = &served[..] else { panic!("three modes") };
        let ratio = |versus: &Option<Versus>| versus.as_ref().map(|versus| versus.ratio);
        let close = |versus: &Option<Versus>, wanted: f64| {
            ratio(versus).is_some_and(|ratio| (ratio - wanted).abs() < 1e-3)
        };
        assert_eq!(copy.quantiles_ns[..3], [Some(1e5), Some(1e5), Some(5e5)]);
        assert_eq!((copy.p99.as_ref(), copy.cpu_s_per_gb), (None, Some(2.0)));
        assert!(close(&idle.p50, 4.0) && close(&adaptive.p99, 2.0));
        assert_eq!((idle.bytes_per_s, ratio(&idle.throughput)), (None, None));
        assert_eq!((idle.cpu_s_per_gb, ratio(&idle.per_cpu)), (None, None));
        // An offered rate or not: how much came of large values is a result of its own.
        assert!(close(&adaptive.throughput, 1.25) && close(&adaptive.per_cpu, 2.0));
        assert_eq!(adaptive.nontemporal_part, Some(0.75));
    }
}
