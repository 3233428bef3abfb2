//! What is measured, and how it is shown: a row for each metric; and the figures of a mode's samples in a
//! cell, of which each is none where it was not measured.

use std::collections::BTreeMap;

use super::sample::{self, Times, pooled, quantile_ns};
use super::{ByPair, Halves, LINE_BYTES, halves, median};
use crate::experiments::{self, BesideLatencies, Experiment, experiment};
use ntcopy_record::{
    COUNTED_PERMILLE, Counted, ExperimentKind, Params, Sample, add_counts, is_counting_mark, number,
};

/// How a figure is computed.
#[derive(Clone, Copy)]
enum Of {
    /// Of each sample; the median counts.
    Sample(fn(&ExperimentKind, &Sample) -> Option<f64>),
    /// Of what all samples of a mode in a cell say, and the cell's parameters.
    Mode(fn(&Figures, &Params) -> Option<f64>),
}

/// What a metric is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// Modes are compared by it; more is better in all of these.
    Judged,
    /// They are, but the part of a whole is no result of its own.
    Part,
    /// They are compared by what is no figure of single samples.
    Own,
    /// It is shown.
    Shown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    More,
    Less,
}

/// How many digits are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Digits {
    /// Three or four, whatever the size.
    Few,
    /// No fraction.
    Whole,
    /// So many of the fraction.
    Fixed(usize),
    /// A part, in percent.
    Percent,
}

/// A metric's row.
pub struct Metric {
    /// What programs call it.
    pub name: &'static str,
    pub words: &'static str,
    pub used: Use,
    pub better: Better,
    /// What stands above a column, and beside an axis; nothing where it is not shown by itself.
    pub head: &'static str,
    pub unit: &'static str,
    pub digits: Digits,
    of: Of,
}

impl Metric {
    /// One sample's figure; none if it was not clocked, or nothing was moved.
    #[must_use]
    pub fn rate(&self, experiment: &ExperimentKind, sample: &Sample) -> Option<f64> {
        match self.of {
            Of::Sample(of) => of(experiment, sample),
            Of::Mode(_) => None,
        }
    }
}

macro_rules! metrics {
    ($($(#[$doc:meta])* $id:ident = $name:literal, $words:literal, $used:ident $better:ident,
        $head:literal, $unit:literal, $digits:expr, $of:ident($figure:expr);)+) => {
        $($(#[$doc])* pub const $id: &str = $name;)+

        /// In the order in which results come.
        pub const METRICS: &[Metric] = &[$(Metric {
            name: $name, words: $words, used: Use::$used, better: Better::$better,
            head: $head, unit: $unit, digits: $digits, of: Of::$of($figure),
        }),+];
    };
}

use Digits::{Few, Fixed, Percent, Whole};

metrics! {
    /// Payload bytes by the time from first byte offered to last taken.
    THROUGHPUT = "throughput", "throughput", Judged More, "", "GB/s", Few, Sample(throughput);
    /// Payload bytes by the time spent in the sends alone.
    SEND_THROUGHPUT = "send_throughput", "throughput of the sends", Part More, "", "", Few, Sample(of_sends);
    /// The median of another program's walks: walks per second.
    WALKS = "walks", "other programs' speed", Judged More, "", "", Few,
        Sample(|_, sample| Some(1e9 / walk_ns(sample)?));
    /// One divided by the time that 99 in 100 of its walks did not exceed.
    WALKS_P99 = "walks_p99", "other programs' speed at the 99th percentile", Judged More, "", "", Few,
        Sample(|_, sample| Some(1e9 / sample::quantile_ns(&sample::walks(sample)?, 0.99)?));
    /// Payload bytes by the CPU time of proxy and backend, of client and server where there are only
    /// these, or of a program that was measured as it is.
    PER_CPU = "bytes_per_cpu_s", "bytes per CPU second", Judged More, "", "GB per CPU second", Few, Sample(per_cpu);
    /// One divided by the time that half of the answers did not exceed.
    P50 = "p50_rate", "the median of latency", Judged More, "", "", Few,
        Sample(|_, sample| Some(1e9 / latency_ns(sample, 0.5)?));
    /// One divided by the time that 99 in 100 answers did not exceed.
    P99 = "p99_rate", "the 99th percentile of latency", Judged More, "", "", Few,
        Sample(|_, sample| Some(1e9 / latency_ns(sample, 0.99)?));
    /// What a turn of a program took, or printed.
    TURNS = "turns", "the program's own figure", Own More, "", "", Few, Sample(turn);
    /// Bytes that a call moves for a byte of the cache that it displaces.
    DISPLACED = "displaced", "bytes moved for a byte of the cache displaced", Own More, "", "", Few, Sample(|_, _| None);

    GB_PER_S = "gb_per_s", "throughput", Shown More, "GB/s", "GB/s", Few,
        Mode(|mode, _| Some(mode.median(THROUGHPUT)? / 1e9));
    SEND_SHARE = "send_share", "part of the time in the sends", Shown More, "in sends", "", Percent,
        Sample(|_, sample| Some(*sample.phases_ns.get("send")? as f64 / sample.elapsed_ns as f64));
    /// Part of the hinted bytes that went past the caches.
    NONTEMPORAL = "nontemporal_part", "non-temporal part", Shown More, "NT", "", Percent,
        Mode(|mode, _| mode.counted?.bypassed_part());
    ANSWERED = "transactions_per_s", "transactions per second", Shown More, "per second", "per second", Whole,
        Sample(|_, sample| Some(sample::answered(sample)? * 1e9 / sample.elapsed_ns.max(1) as f64));
    PROXY_CPU = "proxy_cpu_s_per_gb", "CPU time of the proxy", Shown Less, "proxy", "CPU s/GB", Fixed(3),
        Sample(|_, sample| cpu_s_per_gb(sample, &["proxy_cpu"]));
    BACKEND_CPU = "backend_cpu_s_per_gb", "CPU time of the backend", Shown Less, "backend", "CPU s/GB", Fixed(3),
        Sample(|_, sample| cpu_s_per_gb(sample, &["backend_cpu"]));
    CLIENT_CPU = "client_cpu_s_per_gb", "CPU time of the client", Shown Less, "client", "CPU s/GB", Fixed(3),
        Sample(|_, sample| cpu_s_per_gb(sample, &["client_cpu"]));
    SERVERS_CPU = "servers_cpu_s_per_gb", "CPU time of proxy and backend for 10^9 bytes", Shown Less, "", "CPU s/GB", Fixed(3),
        Sample(|_, sample| cpu_s_per_gb(sample, &["proxy_cpu", "backend_cpu"]));
    PROGRAM_CPU = "cpu_s_per_gb", "CPU time of the program", Shown Less, "CPU s/GB", "CPU s/GB", Fixed(3),
        Sample(|_, sample| cpu_s_per_gb(sample, &["server_cpu"]));
    CLIENT_CPU_US = "client_cpu_us", "CPU time of the client", Shown Less, "client us", "CPU us", Fixed(2),
        Sample(|_, sample| cpu_us_each(sample, &["client_cpu"]));
    SERVER_CPU_US = "server_cpu_us", "CPU time of the server", Shown Less, "server us", "CPU us", Fixed(2),
        Sample(|_, sample| cpu_us_each(sample, &["server_cpu"]));
    BOTH_CPU_US = "both_cpu_us", "CPU time of client and server for a transaction", Shown Less, "", "CPU us", Fixed(2),
        Sample(|_, sample| cpu_us_each(sample, &["client_cpu", "server_cpu"]));
    LINE_P50_NS = "line_p50_ns", "time of a line of the hot set", Shown Less, "p50 ns", "ns per line", Fixed(1),
        Mode(|mode, _| mode.line_ns(0.5));
    LINE_P99_NS = "line_p99_ns", "time of a line of the hot set, 99th percentile", Shown Less, "p99 ns", "ns per line", Fixed(1),
        Mode(|mode, _| mode.line_ns(0.99));
    MEAN_US = "mean_us", "mean of latency", Shown Less, "mean us", "us", Few, Mode(|mode, _| Some(mode.mean_ns()? / 1e3));
    P50_US = "p50_us", "median of latency", Shown Less, "p50 us", "us", Few, Mode(|mode, _| quantile_us(mode, 0.5));
    P90_US = "p90_us", "90th percentile of latency", Shown Less, "p90 us", "us", Few, Mode(|mode, _| quantile_us(mode, 0.9));
    P95_US = "p95_us", "95th percentile of latency", Shown Less, "p95 us", "us", Few, Mode(|mode, _| quantile_us(mode, 0.95));
    P99_US = "p99_us", "99th percentile of latency", Shown Less, "p99 us", "us", Few, Mode(|mode, _| quantile_us(mode, 0.99));
    P999_US = "p99.9_us", "99.9th percentile of latency", Shown Less, "p99.9 us", "us", Few, Mode(|mode, _| quantile_us(mode, 0.999));
    FORK_US = "fork_us", "time of a fork", Shown Less, "us per fork", "us per fork", Fixed(1),
        Mode(|mode, params| Some(number(params, "size_bytes")? as f64 / mode.median(THROUGHPUT)? * 1e6));
}

/// Where a metric is in [`METRICS`].
pub(crate) fn place(name: &str) -> Option<usize> {
    METRICS.iter().position(|metric| metric.name == name)
}

/// A metric's row, by its name.
#[must_use]
pub fn metric(name: &str) -> Option<&'static Metric> {
    Some(&METRICS[place(name)?])
}

/// A metric in words, by its name.
#[must_use]
pub fn words(name: &str) -> &str {
    metric(name).map_or(name, |metric| metric.words)
}

/// One sample's figure by a metric; none if it was not clocked, or nothing was moved.
#[must_use]
pub fn rate(experiment: &ExperimentKind, sample: &Sample, metric: &str) -> Option<f64> {
    METRICS[place(metric)?].rate(experiment, sample)
}

fn quantile_us(mode: &Figures, part: f64) -> Option<f64> {
    Some(mode.quantile_ns(part)? / 1e3)
}

/// A turn's own figure, whichever way is better.
fn turn(kind: &ExperimentKind, sample: &Sample) -> Option<f64> {
    super::turns::figure(sample).filter(|_| experiment(kind).of == experiments::Of::Turns)
}

fn cpu_s_per_gb(sample: &Sample, processes: &[&str]) -> Option<f64> {
    // Nanoseconds for a byte are seconds for 10^9 of them.
    let ns = sample::cpu_ns(sample, processes)? as f64;
    (sample.bytes > 0).then(|| ns / sample.bytes as f64)
}

fn cpu_us_each(sample: &Sample, processes: &[&str]) -> Option<f64> {
    Some(sample::cpu_ns(sample, processes)? as f64 / 1e3 / sample::answered(sample)?)
}

fn bytes_by(sample: &Sample, ns: u64) -> Option<f64> {
    (ns > 0 && sample.bytes > 0).then(|| sample.bytes as f64 * 1e9 / ns as f64)
}

fn throughput(kind: &ExperimentKind, sample: &Sample) -> Option<f64> {
    let counts = experiment(kind).beside_latencies == BesideLatencies::All;
    let counts = counts || !has_latencies(sample);
    bytes_by(sample, sample.elapsed_ns).filter(|_| counts)
}

fn has_latencies(sample: &Sample) -> bool {
    sample.series.contains_key("latency_ns")
}

fn of_sends(_: &ExperimentKind, sample: &Sample) -> Option<f64> {
    bytes_by(sample, *sample.phases_ns.get("send")?)
}

fn per_cpu(kind: &ExperimentKind, sample: &Sample) -> Option<f64> {
    let Experiment { serving, beside_latencies, .. } = experiment(kind);
    let counts = beside_latencies != BesideLatencies::Nothing || !has_latencies(sample);
    bytes_by(sample, sample::cpu_ns(sample, serving).filter(|_| counts)?)
}

/// The time that this part of the answers did not exceed.
fn latency_ns(sample: &Sample, part: f64) -> Option<f64> {
    sample::quantile_ns(&sample::latencies(sample)?, part).filter(|ns| *ns > 0.0)
}

/// The median walk through a hot set.
fn walk_ns(sample: &Sample) -> Option<f64> {
    let walks = sample.series.get("walk_ns").filter(|walks| !walks.is_empty())?;
    Some(median(&walks.iter().map(|ns| *ns as f64).collect::<Vec<f64>>()))
}

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
        for metric in METRICS {
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
        let mut figures = Figures {
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
        for (at, metric) in METRICS.iter().enumerate() {
            if let Of::Mode(of) = metric.of {
                figures.medians[at] = of(&figures, params).map(|figure| (figure, samples.len()));
            }
        }
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

    pub(super) fn mean_ns(&self) -> Option<f64> {
        let sum: f64 = self.latencies.iter().map(|(ns, count)| *ns as f64 * *count as f64).sum();
        (self.answers() > 0).then(|| sum / self.answers() as f64)
    }

    #[must_use]
    pub fn answers(&self) -> u64 {
        self.latencies.iter().map(|(_, count)| count).sum()
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
