//! What went through a proxy, what it cost, and how long answers took.

use std::collections::BTreeMap;

use serde_json::Value;

use super::retention::copies::quantile_ns as nearest_rank;
use super::{P50, P99, PER_CPU, THROUGHPUT, Versus, median, mode_median, modes, versus};
use crate::record::{Cell, Record, Sample};

/// The parts of a latency's distribution that are reported.
pub const QUANTILES: [f64; 4] = [0.5, 0.9, 0.99, 0.999];

/// A quantile is given when at least this many answers took longer.
const LEAST_BEYOND: f64 = 3.0;

/// The processes, as the phases of a sample have their CPU time.
pub const PROCESSES: [&str; 3] = ["client_cpu", "proxy_cpu", "backend_cpu"];

/// Whether the sample's requests came on a schedule.
#[must_use]
pub fn is_scheduled(sample: &Sample) -> bool {
    sample.series.contains_key("latency_ns")
}

/// Nanoseconds that answers took, and how many took them; none if that was not kept. Without a
/// schedule they are round trips.
#[must_use]
pub fn latencies(sample: &Sample) -> Option<Vec<(u64, u64)>> {
    let ns = sample.series.get("latency_ns").or_else(|| sample.series.get("round_trip_ns"))?;
    let counts = sample.series.get("answers")?;
    (ns.len() == counts.len()).then(|| ns.iter().copied().zip(counts.iter().copied()).collect())
}

/// The latency that this part of a sample's answers did not exceed.
#[must_use]
pub fn quantile_ns(sample: &Sample, part: f64) -> Option<f64> {
    nearest_rank(&latencies(sample)?, part).filter(|ns| *ns > 0.0)
}

/// CPU time of proxy and backend, nanoseconds; none if it was not taken.
#[must_use]
pub fn server_cpu_ns(sample: &Sample) -> Option<u64> {
    Some(sample.phases_ns.get("proxy_cpu")? + sample.phases_ns.get("backend_cpu")?)
}

/// Whether a cell's requests came on a schedule.
#[must_use]
pub fn is_open(cell: &Cell) -> bool {
    cell.params.get("form").and_then(Value::as_str) == Some("open")
}

/// What one mode did without a pause.
#[derive(Debug, Clone, PartialEq)]
pub struct Through {
    pub mode: String,
    /// Median of the samples.
    pub bytes_per_s: f64,
    /// CPU seconds per 10^9 bytes of client, proxy and backend: medians of the samples.
    pub cpu_s_per_gb: Option<[f64; 3]>,
    /// Part of the hinted and copied bytes that was copied non-temporally, from 0 to 1.
    pub nontemporal_part: Option<f64>,
    /// Throughput against the baseline's.
    pub throughput: Option<Versus>,
    /// Bytes per CPU second of proxy and backend, against the baseline's.
    pub per_cpu: Option<Versus>,
}

/// What each mode did without a pause in a cell, the baseline first.
#[must_use]
pub fn through(record: &Record, cell: &Cell) -> Vec<Through> {
    let one = |mode: &str| {
        let against = |metric| against(record, cell, mode, metric);
        Some(Through {
            mode: mode.to_owned(),
            bytes_per_s: mode_median(record, cell.cell, mode, THROUGHPUT)?,
            cpu_s_per_gb: cpu_s_per_gb(record, cell, mode),
            nontemporal_part: nontemporal_part(record, cell, mode),
            throughput: against(THROUGHPUT),
            per_cpu: against(PER_CPU),
        })
    };
    names(record).into_iter().filter_map(one).collect()
}

/// How long answers took in one mode.
#[derive(Debug, Clone, PartialEq)]
pub struct Waited {
    pub mode: String,
    /// [`QUANTILES`] over all samples, nanoseconds; none where too few answers took longer.
    pub quantiles_ns: [Option<f64>; 4],
    pub answers: u64,
    /// Those among them that had not come when the wait ended.
    pub unanswered: u64,
    /// It is that of [`Through`].
    pub cpu_s_per_gb: Option<[f64; 3]>,
    /// The time that half of the answers did not exceed, against the baseline's: above 1 is
    /// shorter.
    pub p50: Option<Versus>,
    /// The same of 99 in 100.
    pub p99: Option<Versus>,
}

/// How long answers took in each mode of a cell, the baseline first.
#[must_use]
pub fn waited(record: &Record, cell: &Cell) -> Vec<Waited> {
    let one = |mode: &str| {
        let Pooled { latencies, answers, unanswered } = pooled(record, cell, mode);
        let told = |part: f64| told(&latencies, part);
        (answers > 0).then(|| Waited {
            mode: mode.to_owned(),
            quantiles_ns: QUANTILES.map(told),
            answers,
            unanswered,
            cpu_s_per_gb: cpu_s_per_gb(record, cell, mode),
            p50: against(record, cell, mode, P50),
            p99: against(record, cell, mode, P99),
        })
    };
    names(record).into_iter().filter_map(one).collect()
}

/// The answers of all samples of a mode in a cell.
pub(super) struct Pooled {
    /// Nanoseconds, and how many answers took them.
    pub latencies: Vec<(u64, u64)>,
    pub answers: u64,
    /// Those among them that had not come when the wait ended.
    pub unanswered: u64,
}

pub(super) fn pooled(record: &Record, cell: &Cell, mode: &str) -> Pooled {
    let mut all: BTreeMap<u64, u64> = BTreeMap::new();
    let mut unanswered = 0;
    for sample in samples(record, cell, mode) {
        for (ns, count) in latencies(sample).into_iter().flatten() {
            *all.entry(ns).or_default() += count;
        }
        unanswered += sample.series.get("unanswered").map_or(0, |list| list.iter().sum());
    }
    let answers = all.values().sum();
    Pooled { latencies: all.into_iter().collect(), answers, unanswered }
}

/// A quantile, if enough answers took longer. The median is given however few there are.
pub(super) fn told(latencies: &[(u64, u64)], part: f64) -> Option<f64> {
    let answers: u64 = latencies.iter().map(|(_, count)| count).sum();
    let beyond = answers as f64 * (1.0 - part);
    if part > 0.5 && beyond < LEAST_BEYOND { None } else { nearest_rank(latencies, part) }
}

pub(super) fn names(record: &Record) -> Vec<&str> {
    let mut names = modes(record);
    names.sort_by_key(|mode| *mode != record.header.baseline);
    names
}

pub(super) fn against(record: &Record, cell: &Cell, mode: &str, metric: &str) -> Option<Versus> {
    let other = Some(record.header.baseline.as_str()).filter(|other| *other != mode)?;
    versus(record, cell.cell, mode, other, metric)
}

pub(super) fn samples<'a>(
    record: &'a Record,
    cell: &Cell,
    mode: &str,
) -> impl Iterator<Item = &'a Sample> + use<'a> {
    let ours = record.samples.iter();
    let (cell, mode) = (cell.cell, mode.to_owned());
    ours.filter(move |sample| sample.cell == cell && sample.mode == mode)
}

fn cpu_s_per_gb(record: &Record, cell: &Cell, mode: &str) -> Option<[f64; 3]> {
    let of = |process: &str| {
        let each = samples(record, cell, mode).filter(|sample| sample.bytes > 0);
        // Nanoseconds a byte are seconds for 10^9 of them.
        let each = each.filter_map(|sample| {
            Some(*sample.phases_ns.get(process)? as f64 / sample.bytes as f64)
        });
        let each: Vec<f64> = each.collect();
        (!each.is_empty()).then(|| median(&each))
    };
    let [client, proxy, backend] = PROCESSES.map(of);
    Some([client?, proxy?, backend?])
}

/// The part of the bytes that the kernel counted that was copied non-temporally.
pub(super) fn nontemporal_part(record: &Record, cell: &Cell, mode: &str) -> Option<f64> {
    let (mut nontemporal, mut all) = (0, 0);
    for sample in samples(record, cell, mode) {
        nontemporal += sample.counters.get("nontemporal_bytes").copied().unwrap_or(0);
        // What was only spliced was copied in no way; and the hardware counts beside the kernel.
        let copied = sample.counters.iter().filter(|(name, _)| {
            *name != "not_supported_bytes" && !record.machine.is_hardware_counter(name)
        });
        all += copied.map(|(_, count)| count).sum::<u64>();
    }
    (all > 0).then(|| nontemporal as f64 / all as f64)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::record::HardwareCounter;
    use crate::record::testing::{Sketch, record};

    /// A closed and an open cell of two modes: (bytes per second, CPU nanoseconds a byte of each
    /// server, latency in us).
    pub(crate) fn sketch(figures: [(u64, u64, u64); 2]) -> Record {
        let names = ["copy", "adaptive"];
        let params = [("connections", 64), ("object_bytes", 1 << 20), ("asked_bytes", 64 << 20)];
        let mut empty = record(&names, &[&params, &params]);
        empty.header.experiment = "http".into();
        for (cell, form) in empty.cells.iter_mut().zip(["closed", "open"]) {
            cell.params.insert("form".into(), form.into());
            cell.params.insert("stack".into(), "storaged+proxyd".into());
            cell.params.insert("scheme".into(), "plain".into());
            cell.params.insert("dataset_bytes".into(), (256_u64 << 20).into());
        }
        let mut sketch = Sketch::of(&names, empty);
        for pair in 0..5 {
            sketch.pair(0, pair, &figures.map(|(rate, ..)| rate));
            sketch.pair(1, pair, &[1000, 1000]);
        }
        let mut record = sketch.record();
        for sample in &mut record.samples {
            let (_, cpu_ns, us) = figures[usize::from(sample.mode == "adaptive")];
            sample.phases_ns =
                PROCESSES.map(|name| (name.to_owned(), cpu_ns * sample.bytes)).into();
            if sample.cell == 1 {
                let ns = [us * 1000, us * 5000];
                sample.series.insert("latency_ns".into(), ns.into());
                sample.series.insert("answers".into(), vec![98, 2]);
            } else if sample.mode == "adaptive" {
                let counts = [
                    ("nontemporal_bytes", 75),
                    ("fits_cache_bytes", 25),
                    ("not_supported_bytes", 90),
                ];
                sample.counters = counts.map(|(name, n)| (name.to_owned(), n)).into();
            }
        }
        record
    }

    #[test]
    fn a_closed_cell_tells_what_went_through_and_what_it_cost() {
        let record = sketch([(1_000_000, 2, 100), (1_250_000, 1, 50)]);
        let through = through(&record, &record.cells[0]);
        assert_eq!(through[0].mode, "copy");
        assert_eq!(through[1].cpu_s_per_gb, Some([1.0; 3]));
        assert_eq!((through[0].nontemporal_part, through[1].nontemporal_part), (None, Some(0.75)));
        let ratio = |versus: &Option<Versus>| versus.as_ref().map_or(0.0, |versus| versus.ratio);
        assert!((ratio(&through[1].throughput) - 1.25).abs() < 1e-3);
        assert!((ratio(&through[1].per_cpu) - 2.0).abs() < 1e-6);
        assert!(through[0].throughput.is_none());
        assert!(waited(&record, &record.cells[0]).is_empty());
    }

    #[test]
    fn what_the_hardware_counted_is_no_part_of_what_the_kernel_copied() {
        let mut record = sketch([(1_000_000, 2, 100), (1_250_000, 1, 50)]);
        let (name, source) = ("dram-read-bytes".to_owned(), String::new());
        record.machine.hardware_counters = vec![HardwareCounter { name, source, missing: None }];
        for sample in &mut record.samples {
            sample.counters.insert("dram-read-bytes".into(), 1 << 30);
            sample.counters.insert("dram-read-bytes:counted_permille".into(), 900);
        }
        let through = through(&record, &record.cells[0]);
        let parts = through.iter().map(|mode| mode.nontemporal_part);
        assert_eq!(parts.collect::<Vec<_>>(), [None, Some(0.75)]);
    }

    #[test]
    fn an_open_cell_tells_how_long_it_took_and_no_throughput() {
        let record = sketch([(1_000_000, 2, 100), (1_250_000, 1, 50)]);
        let waited = waited(&record, &record.cells[1]);
        // 490 and 10 of 500 answers; at 99.9 % not even one took longer.
        let tail = [Some(100_000.0), Some(100_000.0), Some(500_000.0), None];
        assert_eq!((waited[0].quantiles_ns, waited[0].answers), (tail, 500));
        let p99 = waited[1].p99.as_ref().unwrap();
        assert!((p99.ratio - 2.0).abs() < 1e-6, "half as long is twice as good");
        assert!(through(&record, &record.cells[1]).is_empty(), "an offered rate is no throughput");
        let results = crate::stats::results(&record);
        let of =
            |cell, metric| results.iter().filter(|r| (r.cell, r.metric) == (cell, metric)).count();
        assert_eq!([of(0, THROUGHPUT), of(1, THROUGHPUT), of(0, P99), of(1, P99)], [1, 0, 0, 1]);
    }
}
