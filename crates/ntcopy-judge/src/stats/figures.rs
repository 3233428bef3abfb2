//! The figures of a mode's samples in a cell. Each is none where it was not measured.

use std::collections::BTreeMap;

use super::sample::{self, Times, pooled, quantile_ns};
use super::{Halves, LINE_BYTES, METRICS, THROUGHPUT, halves, median, place, rate};
use ntcopy_record::{
    COUNTED_PERMILLE, Counted, ExperimentKind, Sample, add_counts, is_counting_mark,
};

/// A quantile is given when at least this many answers took longer.
const LEAST_BEYOND: f64 = 3.0;

/// The figures of a mode's samples in a cell.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Figures {
    /// The median by each metric, and how many samples have a figure.
    medians: Vec<Option<(f64, usize)>>,
    /// Nanoseconds of all answers, and of all walks, with their counts.
    latencies: Times,
    walks: Times,
    pub unanswered: u64,
    pub counted: Option<Counted>,
    /// The median of each counter for a byte of payload, and whether it took turns.
    pub events: BTreeMap<String, (f64, bool)>,
    /// By throughput.
    pub halves: Halves,
}

impl Figures {
    pub fn of(experiment: &ExperimentKind, samples: &[&Sample]) -> Figures {
        let all = |series: fn(&Sample) -> Option<Times>| {
            pooled(samples.iter().filter_map(|sample| series(sample)).flatten())
        };
        let mut counts = BTreeMap::new();
        samples.iter().for_each(|sample| add_counts(&mut counts, &sample.counters));
        let event = |name: &String| {
            let each = |sample: &Sample| {
                let count = *sample.counters.get(name)? as f64;
                (sample.bytes > 0).then(|| count / sample.bytes as f64)
            };
            let is_scaled = counts.contains_key(&format!("{name}{COUNTED_PERMILLE}"));
            Some((name.clone(), (median_of(samples, each)?.0, is_scaled)))
        };
        let unanswered = samples.iter().filter_map(|sample| sample.series.get("unanswered"));
        Figures {
            medians: METRICS
                .iter()
                .map(|metric| median_of(samples, |sample| metric.rate(experiment, sample)))
                .collect(),
            latencies: all(sample::latencies),
            walks: all(sample::walks),
            unanswered: unanswered.flatten().sum(),
            counted: Counted::of(&counts),
            events: counts
                .keys()
                .filter(|name| !is_counting_mark(name))
                .filter_map(event)
                .collect(),
            halves: halves(samples, |sample| rate(experiment, sample, THROUGHPUT)),
        }
    }

    pub fn median(&self, metric: &str) -> Option<f64> {
        self.medians[place(metric)?].map(|(median, _)| median)
    }

    /// How many samples have a figure by a metric.
    pub fn many(&self, metric: &str) -> usize {
        place(metric).and_then(|at| self.medians[at]).map_or(0, |(_, many)| many)
    }

    pub fn quantile_ns(&self, part: f64) -> Option<f64> {
        let beyond = self.answers() as f64 * (1.0 - part);
        let is_known = part <= 0.5 || beyond >= LEAST_BEYOND;
        quantile_ns(&self.latencies, part).filter(|_| is_known)
    }

    pub fn mean_ns(&self) -> Option<f64> {
        let sum: f64 = self.latencies.iter().map(|(ns, count)| *ns as f64 * *count as f64).sum();
        (self.answers() > 0).then(|| sum / self.answers() as f64)
    }

    pub fn answers(&self) -> u64 {
        self.latencies.iter().map(|(_, count)| count).sum()
    }

    pub fn line_ns(&self, hot_set_bytes: u64, part: f64) -> Option<f64> {
        Some(quantile_ns(&self.walks, part)? / (hot_set_bytes as f64 / LINE_BYTES))
    }
}

fn median_of(samples: &[&Sample], figure: impl Fn(&Sample) -> Option<f64>) -> Option<(f64, usize)> {
    let figures: Vec<f64> = samples.iter().filter_map(|sample| figure(sample)).collect();
    (!figures.is_empty()).then(|| (median(&figures), figures.len()))
}
