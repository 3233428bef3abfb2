//! The figures of a mode's samples in a cell. Each is none where it was not measured.

use std::collections::BTreeMap;

use super::sample::{self, Times, pooled, quantile_ns};
use super::{ByPair, Halves, LINE_BYTES, METRICS, THROUGHPUT, halves, median, place};
use ntcopy_record::{
    COUNTED_PERMILLE, Counted, ExperimentKind, Params, Sample, add_counts, is_counting_mark, number,
};

/// A quantile is given when at least this many answers took longer.
const LEAST_BEYOND: f64 = 3.0;

/// The figures of a mode's samples in a cell.
#[derive(Debug, Clone, PartialEq)]
pub struct Figures {
    /// The median by each metric, and how many samples have a figure.
    medians: Vec<Option<(f64, usize)>>,
    /// Nanoseconds of all answers, and of all walks, with their counts.
    latencies: Times,
    walks: Times,
    /// Lines of the hot set that is walked through.
    lines: Option<f64>,
    /// The answers that had not come when the wait ended.
    pub unanswered: u64,
    /// What was counted of the sends.
    pub counted: Option<Counted>,
    /// The median of each counter for a byte of payload, and whether it took turns.
    events: BTreeMap<String, (f64, bool)>,
    /// By throughput.
    pub(crate) halves: Halves,
}

impl Figures {
    /// They, and by each metric the figure of each group.
    pub(crate) fn of(
        experiment: &ExperimentKind,
        params: &Params,
        samples: &[&Sample],
    ) -> (Figures, Vec<ByPair>) {
        let (mut medians, mut pairs, mut throughput) = (Vec::new(), Vec::new(), Halves::default());
        for metric in &METRICS {
            let rates: Vec<(u32, Option<f64>)> =
                samples.iter().map(|one| (one.pair, metric.rate(experiment, one))).collect();
            if metric.name == THROUGHPUT {
                throughput = halves(&rates);
            }
            medians.push(median_of(rates.iter().filter_map(|(_, rate)| *rate)));
            pairs.push(rates.into_iter().collect());
        }
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
            let each = samples.iter().filter_map(|sample| each(sample));
            Some((name.clone(), (median_of(each)?.0, is_scaled)))
        };
        let unanswered = samples.iter().filter_map(|sample| sample.series.get("unanswered"));
        let figures = Figures {
            medians,
            latencies: all(sample::latencies),
            walks: all(sample::walks),
            lines: number(params, "hot_set_bytes").map(|bytes| bytes as f64 / LINE_BYTES),
            unanswered: unanswered.flatten().sum(),
            counted: Counted::of(&counts),
            events: counts
                .keys()
                .filter(|name| !is_counting_mark(name))
                .filter_map(event)
                .collect(),
            halves: throughput,
        };
        (figures, pairs)
    }

    /// The median of the samples by a metric.
    #[must_use]
    pub fn median(&self, metric: &str) -> Option<f64> {
        self.medians[place(metric)?].map(|(median, _)| median)
    }

    /// How many samples have a figure by a metric.
    #[must_use]
    pub fn many(&self, metric: &str) -> usize {
        place(metric).and_then(|at| self.medians[at]).map_or(0, |(_, many)| many)
    }

    /// The time that this part of the answers of all samples did not exceed, if enough of them took
    /// longer. The median is given however few there are.
    #[must_use]
    pub fn quantile_ns(&self, part: f64) -> Option<f64> {
        let beyond = self.answers() as f64 * (1.0 - part);
        let is_known = part <= 0.5 || beyond >= LEAST_BEYOND;
        quantile_ns(&self.latencies, part).filter(|_| is_known)
    }

    #[must_use]
    pub fn mean_ns(&self) -> Option<f64> {
        let sum: f64 = self.latencies.iter().map(|(ns, count)| *ns as f64 * *count as f64).sum();
        (self.answers() > 0).then(|| sum / self.answers() as f64)
    }

    #[must_use]
    pub fn answers(&self) -> u64 {
        self.latencies.iter().map(|(_, count)| count).sum()
    }

    /// Part of the hinted bytes that went past the caches, from 0 to 1.
    #[must_use]
    pub fn nontemporal_part(&self) -> Option<f64> {
        self.counted?.bypassed_part()
    }

    /// Nanoseconds that a line of the hot set took at most in this part of the walks of all samples.
    #[must_use]
    pub fn line_ns(&self, part: f64) -> Option<f64> {
        Some(quantile_ns(&self.walks, part)? / self.lines?)
    }

    /// The median of a hardware event per so many bytes of payload, and whether it is scaled, since
    /// its counter took turns.
    #[must_use]
    pub fn event(&self, name: &str, per_bytes: f64) -> Option<(f64, bool)> {
        let (per_byte, is_scaled) = self.events.get(name)?;
        Some((per_byte * per_bytes, *is_scaled))
    }
}

fn median_of(figures: impl Iterator<Item = f64>) -> Option<(f64, usize)> {
    let figures: Vec<f64> = figures.collect();
    (!figures.is_empty()).then(|| (median(&figures), figures.len()))
}
