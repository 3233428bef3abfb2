//! Requests and responses: how many, what they cost, how long they took.

use super::http::{Pooled, against, is_open, names, nontemporal_part, pooled, samples, told};
use super::{P50, P99, PER_CPU, THROUGHPUT, Versus, median};
use crate::record::{Cell, Record, Sample};

/// The parts of a latency's distribution that are reported.
pub const QUANTILES: [f64; 5] = [0.5, 0.9, 0.95, 0.99, 0.999];

/// CPU time of client and server, nanoseconds; none if it was not taken.
#[must_use]
pub fn cpu_ns(sample: &Sample) -> Option<u64> {
    Some(sample.phases_ns.get("client_cpu")? + sample.phases_ns.get("server_cpu")?)
}

/// What one mode did in a cell.
#[derive(Debug, Clone, PartialEq)]
pub struct Exchanged {
    pub mode: String,
    /// Transactions per second: median of the samples.
    pub per_s: f64,
    /// CPU microseconds of client and server for a transaction: medians of the samples.
    pub cpu_us: Option<[f64; 2]>,
    /// Part of the hinted and copied bytes that was copied non-temporally, from 0 to 1.
    pub nontemporal_part: Option<f64>,
    /// [`QUANTILES`] over all samples, nanoseconds; none where too few took longer.
    pub quantiles_ns: [Option<f64>; 5],
    pub answers: u64,
    /// Those among them that had not come when the wait ended.
    pub unanswered: u64,
    /// Transactions against the baseline's; none where they came on a schedule.
    pub throughput: Option<Versus>,
    /// Transactions per CPU second of both, against the baseline's.
    pub per_cpu: Option<Versus>,
    /// The time that half of the responses did not exceed, against the baseline's: above 1 is
    /// shorter.
    pub p50: Option<Versus>,
    /// The same of 99 in 100.
    pub p99: Option<Versus>,
}

/// What each mode did in a cell, the baseline first.
#[must_use]
pub fn exchanged(record: &Record, cell: &Cell) -> Vec<Exchanged> {
    let one = |mode: &str| {
        let rates: Vec<f64> = samples(record, cell, mode).filter_map(per_s).collect();
        let Pooled { latencies, answers, unanswered } = pooled(record, cell, mode);
        let against = |metric| against(record, cell, mode, metric);
        (!rates.is_empty()).then(|| Exchanged {
            mode: mode.to_owned(),
            per_s: median(&rates),
            cpu_us: cpu_us(record, cell, mode),
            nontemporal_part: nontemporal_part(record, cell, mode),
            quantiles_ns: QUANTILES.map(|part| told(&latencies, part)),
            answers,
            unanswered,
            throughput: against(THROUGHPUT).filter(|_| !is_open(cell)),
            per_cpu: against(PER_CPU),
            p50: against(P50),
            p99: against(P99),
        })
    };
    names(record).into_iter().filter_map(one).collect()
}

/// Responses while the clock ran.
fn answered(sample: &Sample) -> Option<f64> {
    let answered: u64 = sample.series.get("answered")?.iter().sum();
    (answered > 0).then_some(answered as f64)
}

fn per_s(sample: &Sample) -> Option<f64> {
    Some(answered(sample)? * 1e9 / sample.elapsed_ns.max(1) as f64)
}

fn cpu_us(record: &Record, cell: &Cell, mode: &str) -> Option<[f64; 2]> {
    let of = |process: &str| {
        let each = samples(record, cell, mode).filter_map(|sample| {
            Some(*sample.phases_ns.get(process)? as f64 / 1e3 / answered(sample)?)
        });
        let each: Vec<f64> = each.collect();
        (!each.is_empty()).then(|| median(&each))
    };
    let [client, server] = ["client_cpu", "server_cpu"].map(of);
    Some([client?, server?])
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::record::testing::record;

    /// A cell without a pause and one on a schedule; for each of `copy` and `adaptive`, responses
    /// in a second's samples, CPU microseconds for each, and its latency in microseconds.
    pub(crate) fn sketch(modes: [(u64, u64, u64); 2]) -> Record {
        let mut record = record(&["copy"], &[&[("connections", 16)], &[("connections", 16)]]);
        record.header.experiment = "net".into();
        for (cell, form) in record.cells.iter_mut().zip(["closed", "open"]) {
            for (name, value) in [("form", form), ("family", "tcp"), ("between", "loopback")] {
                cell.params.insert(name.into(), value.into());
            }
            for name in ["request_bytes", "response_bytes"] {
                cell.params.insert(name.into(), 14_000.into());
            }
        }
        for cell in 0..2 {
            for pair in 0..5 {
                let named = ["copy", "adaptive"].into_iter().zip(modes);
                record.samples.extend(named.map(|(mode, (per_s, cpu_us, us))| {
                    let name = if cell == 0 { "round_trip_ns" } else { "latency_ns" };
                    let half = per_s * cpu_us * 500;
                    Sample {
                        cell,
                        pair,
                        position: 0,
                        mode: mode.to_owned(),
                        bytes: per_s * 28_000,
                        elapsed_ns: 1_000_000_000,
                        phases_ns: [("client_cpu", half), ("server_cpu", half)]
                            .map(|(name, ns)| (name.to_owned(), ns))
                            .into(),
                        counters: [].into(),
                        series: [
                            ("answered", vec![per_s]),
                            (name, vec![us * 1000, us * 10_000]),
                            ("answers", vec![per_s - per_s / 100, per_s / 100]),
                        ]
                        .map(|(name, list)| (name.to_owned(), list))
                        .into(),
                    }
                }));
            }
        }
        record
    }

    #[test]
    fn transactions_cost_and_latency_are_those_of_the_samples() {
        let record = sketch([(10_000, 20, 100), (20_000, 10, 50)]);
        let closed = exchanged(&record, &record.cells[0]);
        assert_eq!(closed.len(), 2);
        let adaptive = &closed[1];
        assert_eq!((adaptive.mode.as_str(), adaptive.per_s), ("adaptive", 20_000.0));
        assert_eq!(adaptive.cpu_us, Some([5.0, 5.0]));
        assert_eq!(adaptive.throughput.as_ref().unwrap().ratio, 2.0);
        assert_eq!(adaptive.per_cpu.as_ref().unwrap().ratio, 2.0);
        assert_eq!(adaptive.p50.as_ref().unwrap().ratio, 2.0);
        assert_eq!(adaptive.quantiles_ns[0], Some(50_000.0));
        assert_eq!(adaptive.quantiles_ns[4], Some(500_000.0));
        let open = exchanged(&record, &record.cells[1]);
        assert_eq!(open[1].throughput, None, "what is offered is no throughput");
        assert_eq!(open[0].answers, 50_000);
    }

    #[test]
    fn a_tail_of_few_is_not_told() {
        let record = sketch([(200, 20, 100), (200, 10, 50)]);
        let closed = exchanged(&record, &record.cells[0]);
        assert_eq!(closed[0].quantiles_ns[4], None);
        assert!(closed[0].quantiles_ns[2].is_some());
    }
}
