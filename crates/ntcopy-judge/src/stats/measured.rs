//! What one mode did in one cell: the row of every table. Each figure is none where it was not
//! measured.

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;

use super::sample::{self, pooled, quantile_ns};
use super::{BAR, LINE_BYTES, THROUGHPUT, Versus, WALKS, median, mode_median, modes, versus};
use ntcopy_record::{COUNTED_PERMILLE, Cell, Counted, Record, Sample, Sends, add_counts, number};

/// What is said of [`Sends::Idle`] in the place of a verdict.
pub const CEILING: &str = "ceiling";
/// A quantile is given when at least this many answers took longer.
const LEAST_BEYOND: f64 = 3.0;

pub struct Measured<'a> {
    pub record: &'a Record,
    pub cell: &'a Cell,
    pub mode: &'a str,
    samples: Vec<&'a Sample>,
    latencies: OnceCell<Vec<(u64, u64)>>,
    walks: OnceCell<Vec<(u64, u64)>>,
    versus: RefCell<BTreeMap<(String, String), Option<Versus>>>,
}

impl<'a> Measured<'a> {
    /// Each mode that has samples in a cell: the one without traffic first, then the baseline.
    #[must_use]
    pub fn all(record: &'a Record, cell: &'a Cell) -> Vec<Measured<'a>> {
        let mut names = modes(record);
        let baseline = record.header.baseline.as_str();
        names.sort_by_key(|mode| (record.header.sends(mode) != Sends::Idle, *mode != baseline));
        let one = |mode: &'a str| {
            let ours = record.samples.iter();
            let samples = ours.filter(|s| s.cell == cell.cell && s.mode == mode).collect();
            let (latencies, walks, versus) = Default::default();
            Measured { record, cell, mode, samples, latencies, walks, versus }
        };
        let all = names.into_iter().map(one);
        all.filter(|one| !one.samples.is_empty()).collect()
    }

    #[must_use]
    pub fn sends(&self) -> Sends {
        self.record.header.sends(self.mode)
    }

    #[must_use]
    pub fn is_baseline(&self) -> bool {
        self.mode == self.record.header.baseline
    }

    /// The median of its samples by a metric.
    #[must_use]
    pub fn median(&self, metric: &str) -> Option<f64> {
        mode_median(self.record, self.cell.cell, self.mode, metric)
    }

    /// Relative to the baseline.
    #[must_use]
    pub fn versus(&self, metric: &str) -> Option<Versus> {
        self.relative_to(&self.record.header.baseline, metric)
    }

    #[must_use]
    pub fn relative_to(&self, other: &str, metric: &str) -> Option<Versus> {
        if other == self.mode {
            return None;
        }
        let key = (other.to_owned(), metric.to_owned());
        let fresh = || versus(self.record, self.cell.cell, self.mode, other, metric);
        self.versus.borrow_mut().entry(key).or_insert_with(fresh).clone()
    }

    fn latencies(&self) -> &[(u64, u64)] {
        self.latencies.get_or_init(|| {
            pooled(self.samples.iter().filter_map(|s| sample::latencies(s)).flatten())
        })
    }

    /// The time that this part of the answers of all samples did not exceed, if enough of them took
    /// longer. The median is given however few there are.
    #[must_use]
    pub fn quantile_ns(&self, part: f64) -> Option<f64> {
        let beyond = self.answers() as f64 * (1.0 - part);
        let is_known = part <= 0.5 || beyond >= LEAST_BEYOND;
        quantile_ns(self.latencies(), part).filter(|_| is_known)
    }

    #[must_use]
    pub fn mean_ns(&self) -> Option<f64> {
        let sum: f64 = self.latencies().iter().map(|(ns, count)| *ns as f64 * *count as f64).sum();
        (self.answers() > 0).then(|| sum / self.answers() as f64)
    }

    #[must_use]
    pub fn answers(&self) -> u64 {
        self.latencies().iter().map(|(_, count)| count).sum()
    }

    /// The answers that had not come when the wait ended.
    #[must_use]
    pub fn unanswered(&self) -> u64 {
        self.samples.iter().filter_map(|sample| sample.series.get("unanswered")).flatten().sum()
    }

    /// Responses per second while the clock ran.
    #[must_use]
    pub fn answered_per_s(&self) -> Option<f64> {
        self.median_of(|s| Some(sample::answered(s)? * 1e9 / s.elapsed_ns.max(1) as f64))
    }

    /// CPU seconds of processes for 10^9 bytes.
    #[must_use]
    pub fn cpu_s_per_gb(&self, processes: &[&str]) -> Option<f64> {
        // Nanoseconds for a byte are seconds for 10^9 of them.
        self.median_of(|sample| {
            let ns = sample::cpu_ns(sample, processes)? as f64;
            (sample.bytes > 0).then(|| ns / sample.bytes as f64)
        })
    }

    /// CPU microseconds of processes for a response.
    #[must_use]
    pub fn cpu_us_per_answer(&self, processes: &[&str]) -> Option<f64> {
        self.median_of(|s| Some(sample::cpu_ns(s, processes)? as f64 / 1e3 / sample::answered(s)?))
    }

    /// Part of the time that was spent in the sends, from 0 to 1.
    #[must_use]
    pub fn send_share(&self) -> Option<f64> {
        self.median_of(|sample| {
            let ns = *sample.phases_ns.get("send")? as f64;
            (sample.elapsed_ns > 0).then(|| ns / sample.elapsed_ns as f64)
        })
    }

    /// Part of the hinted bytes that went past the caches, from 0 to 1.
    #[must_use]
    pub fn nontemporal_part(&self) -> Option<f64> {
        let mut all = BTreeMap::new();
        self.samples.iter().for_each(|sample| add_counts(&mut all, &sample.counters));
        Counted::of(&all)?.bypassed_part()
    }

    /// Nanoseconds that a line of the hot set took at most in this part of the walks of all samples.
    #[must_use]
    pub fn line_ns(&self, part: f64) -> Option<f64> {
        let params = &self.cell.params;
        let bytes = number(params, "hot_set_bytes")?;
        let walks = self
            .walks
            .get_or_init(|| pooled(self.samples.iter().filter_map(|s| sample::walks(s)).flatten()));
        Some(quantile_ns(walks, part)? / (bytes as f64 / LINE_BYTES))
    }

    /// How many times as long the median walk takes as one without traffic, by groups.
    #[must_use]
    pub fn slow_down(&self) -> Option<Versus> {
        let idle = self.record.header.modes.iter().find(|mode| mode.sends == Sends::Idle)?;
        let speed = self.relative_to(&idle.mode, WALKS)?;
        let (low, high) = speed.ci;
        let (ratio, ci) = (1.0 / speed.ratio, (1.0 / high, 1.0 / low));
        let ratios = speed.ratios.iter().map(|ratio| 1.0 / ratio).collect();
        Some(Versus { ratio, ci, ratios, ..speed })
    }

    /// What part it has of the gain of what copies nothing in its cell, kernel and stack of servers,
    /// relative to plain sends; none where that may be within what counts as equal.
    #[must_use]
    pub fn part_of_ceiling(&self) -> Option<f64> {
        let header = &self.record.header;
        let mode = header.mode(self.mode).filter(|mode| mode.sends == Sends::Hinted)?;
        let plain = header.beside(mode, Sends::Plain)?;
        let gain = |name: &str| self.versus_in_cell(name, &plain.mode);
        let copies_nothing = header.modes.iter().filter(|other| {
            other.sends == Sends::CopiesNothing
                && (other.kernel, &other.stack) == (mode.kernel, &mode.stack)
        });
        let ceilings = copies_nothing.filter_map(|other| gain(&other.mode));
        let ceiling = ceilings.max_by(|a, b| a.ratio.total_cmp(&b.ratio))?;
        if ceiling.ci.0 <= 1.0 + BAR {
            return None;
        }
        Some((gain(self.mode)?.ratio - 1.0) / (ceiling.ratio - 1.0))
    }

    fn versus_in_cell(&self, mode: &str, other: &str) -> Option<Versus> {
        versus(self.record, self.cell.cell, mode, other, THROUGHPUT)
    }

    /// The median of a hardware event per so many bytes of payload, and whether it is scaled, since
    /// its counter took turns.
    #[must_use]
    pub fn event(&self, name: &str, per_bytes: f64) -> Option<(f64, bool)> {
        let median = self.median_of(|sample| {
            let count = *sample.counters.get(name)? as f64;
            (sample.bytes > 0).then(|| count * per_bytes / sample.bytes as f64)
        });
        let mark = format!("{name}{COUNTED_PERMILLE}");
        let is_scaled = self.samples.iter().any(|sample| sample.counters.contains_key(&mark));
        Some((median?, is_scaled))
    }

    fn median_of(&self, figure: impl Fn(&Sample) -> Option<f64>) -> Option<f64> {
        let figures: Vec<f64> = self.samples.iter().filter_map(|sample| figure(sample)).collect();
        (!figures.is_empty()).then(|| median(&figures))
    }
}
