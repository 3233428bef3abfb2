//! Messages there and back: the distribution of half a round trip.

use super::http::{against, names, pooled, samples};
use super::retention::copies::quantile_ns as nearest_rank;
use super::{P50, P99, Versus};
use crate::record::{Cell, Record};

/// The percentiles that are reported, as sockperf orders them.
pub const PERCENTILES: [f64; 8] = [99.999, 99.99, 99.9, 99.0, 90.0, 75.0, 50.0, 25.0];

/// Standard deviations within which 99 in 100 of a normal distribution lie.
const Z_99: f64 = 2.576;

/// What one mode did in a cell.
#[derive(Debug, Clone, PartialEq)]
pub struct Played {
    pub mode: String,
    /// Messages that came back, of all samples.
    pub messages: u64,
    /// How long the clocks ran, nanoseconds.
    pub elapsed_ns: u64,
    /// The mean of half a round trip, nanoseconds.
    pub mean_ns: f64,
    pub deviation_ns: f64,
    /// Half the width of the mean's 99 % confidence interval, as if messages knew nothing of each
    /// other.
    pub ci99_ns: f64,
    pub min_ns: f64,
    /// The longest.
    pub max_ns: f64,
    /// [`PERCENTILES`].
    pub percentiles_ns: [f64; 8],
    /// The median of a sample, against the baseline's: above 1 is shorter.
    pub p50: Option<Versus>,
    /// The same of the 99th percentile.
    pub p99: Option<Versus>,
}

/// What each mode did in a cell, the baseline first.
#[must_use]
pub fn played(record: &Record, cell: &Cell) -> Vec<Played> {
    names(record).into_iter().filter_map(|mode| one(record, cell, mode)).collect()
}

fn one(record: &Record, cell: &Cell, mode: &str) -> Option<Played> {
    let all = pooled(record, cell, mode);
    let (first, last) = (all.latencies.first()?, all.latencies.last()?);
    let count = all.answers as f64;
    let sum = |of: &dyn Fn(f64) -> f64| -> f64 {
        all.latencies.iter().map(|(ns, count)| of(*ns as f64) * *count as f64).sum()
    };
    let mean_ns = sum(&|ns| ns) / count;
    let variance = sum(&|ns| (ns - mean_ns).powi(2)) / (count - 1.0).max(1.0);
    let deviation_ns = variance.sqrt();
    let elapsed = samples(record, cell, mode).map(|sample| sample.elapsed_ns);
    Some(Played {
        mode: mode.to_owned(),
        messages: all.answers,
        elapsed_ns: elapsed.sum(),
        mean_ns,
        deviation_ns,
        ci99_ns: Z_99 * deviation_ns / count.sqrt(),
        min_ns: first.0 as f64,
        max_ns: last.0 as f64,
        percentiles_ns: PERCENTILES
            .map(|percent| nearest_rank(&all.latencies, percent / 100.0).unwrap_or(0.0)),
        p50: against(record, cell, mode, P50),
        p99: against(record, cell, mode, P99),
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::record::Sample;
    use crate::record::testing::record;

    /// One cell; for each mode the latencies in nanoseconds of every sample, and how many.
    pub(crate) fn sketch(modes: &[(&str, &[(u64, u64)])]) -> Record {
        let mut record = record(&["copy"], &[&[("message_bytes", 256)]]);
        record.header.experiment = "pingpong".into();
        for (name, value) in [("form", "pingpong"), ("family", "udp")] {
            record.cells[0].params.insert(name.into(), value.into());
        }
        for pair in 0..5 {
            record.samples.extend(modes.iter().map(|(mode, latencies)| {
                let (ns, counts): (Vec<u64>, Vec<u64>) = latencies.iter().copied().unzip();
                let messages: u64 = counts.iter().sum();
                Sample {
                    cell: 0,
                    pair,
                    position: 0,
                    mode: (*mode).to_owned(),
                    bytes: 512 * messages,
                    elapsed_ns: 2 * latencies.iter().map(|(ns, count)| ns * count).sum::<u64>(),
                    phases_ns: [].into(),
                    counters: [].into(),
                    series: [("answered", vec![messages]), ("latency_ns", ns), ("answers", counts)]
                        .map(|(name, list)| (name.to_owned(), list))
                        .into(),
                }
            }));
        }
        record
    }

    #[test]
    fn the_published_interval_comes_out() {
        // 2.653 us, deviation 0.062, 1,793,530 observations: plus and minus 0.000119.
        let half = 1_793_530 / 5 / 2;
        let record = sketch(&[("copy", &[(2591, half), (2715, half)])]);
        let played = &played(&record, &record.cells[0])[0];
        assert_eq!((played.mean_ns, played.messages), (2653.0, 10 * half));
        assert!((played.deviation_ns - 62.0).abs() < 0.001, "{played:?}");
        assert!((played.ci99_ns - 0.119).abs() < 0.0005, "{played:?}");
        assert_eq!((played.min_ns, played.max_ns), (2591.0, 2715.0));
    }

    #[test]
    fn percentiles_are_of_all_samples_and_ratios_of_pairs() {
        let record = sketch(&[
            ("copy", &[(1000, 90), (2000, 9), (9000, 1)]),
            ("nt", &[(2000, 90), (4000, 9), (9000, 1)]),
        ]);
        let played = played(&record, &record.cells[0]);
        assert_eq!(played[0].percentiles_ns[6], 1000.0);
        assert_eq!(played[0].percentiles_ns[3], 2000.0);
        assert_eq!(played[0].percentiles_ns[0], 9000.0);
        assert_eq!(played[0].p50, None);
        assert_eq!(played[1].p50.as_ref().unwrap().ratio, 0.5);
    }
}
