//! What samples are measured by: a row for each metric. More is better in all of them.

use super::{median, sample};
use ntcopy_record::{ExperimentKind, Sample};

/// Whole throughput: payload bytes by the time from first byte offered to last taken.
pub const THROUGHPUT: &str = "throughput";
/// Payload bytes by the time spent in the sends alone.
pub const SEND_THROUGHPUT: &str = "send_throughput";
/// The median of another program's walks: walks per second.
pub const WALKS: &str = "walks";
/// One divided by the time that 99 in 100 of its walks did not exceed.
pub const WALKS_P99: &str = "walks_p99";
/// Payload bytes by the CPU time of proxy and backend, of client and server where there are only
/// these, or of a program that was measured as it is.
pub const PER_CPU: &str = "bytes_per_cpu_s";
/// One divided by the time that half of the answers did not exceed.
pub const P50: &str = "p50_rate";
/// One divided by the time that 99 in 100 answers did not exceed.
pub const P99: &str = "p99_rate";
/// What a turn of a program took, or printed. Not of single samples.
pub const TURNS: &str = "turns";
/// Bytes that a call moves for a byte of the cache that it displaces. Not of single samples.
pub const DISPLACED: &str = "displaced";

/// A figure of an experiment's sample.
type Of = fn(&ExperimentKind, &Sample) -> Option<f64>;

/// A metric's row.
pub struct Metric {
    pub name: &'static str,
    pub words: &'static str,
    /// A sample's figure; none where it has none.
    figure: Of,
    /// Whether it is judged: the part of a whole is no result of its own.
    pub is_whole: bool,
}

/// In the order in which results come.
pub const METRICS: [Metric; 9] = [
    whole(THROUGHPUT, "throughput", throughput),
    Metric { is_whole: false, ..whole(SEND_THROUGHPUT, "throughput of the sends", of_sends) },
    whole(WALKS, "other programs' speed", |_, sample| Some(1e9 / walk_ns(sample)?)),
    whole(WALKS_P99, "other programs' speed at the 99th percentile", |_, sample| {
        Some(1e9 / sample::quantile_ns(&sample::walks(sample)?, 0.99)?)
    }),
    whole(PER_CPU, "bytes per CPU second", per_cpu),
    whole(P50, "the median of latency", |_, sample| Some(1e9 / latency_ns(sample, 0.5)?)),
    whole(P99, "the 99th percentile of latency", |_, s| Some(1e9 / latency_ns(s, 0.99)?)),
    whole(TURNS, "the program's own figure", |_, _| None),
    whole(DISPLACED, "bytes moved for a byte of the cache displaced", |_, _| None),
];

const fn whole(name: &'static str, words: &'static str, figure: Of) -> Metric {
    Metric { name, words, figure, is_whole: true }
}

/// A metric in words, by its name.
#[must_use]
pub fn words(name: &str) -> &str {
    METRICS.iter().find(|metric| metric.name == name).map_or(name, |metric| metric.words)
}

/// One sample's figure by a metric; none if it was not clocked, or nothing was moved.
#[must_use]
pub fn rate(experiment: &ExperimentKind, sample: &Sample, metric: &str) -> Option<f64> {
    let metric = METRICS.iter().find(|row| row.name == metric)?;
    (metric.figure)(experiment, sample)
}

fn bytes_by(sample: &Sample, ns: u64) -> Option<f64> {
    (ns > 0 && sample.bytes > 0).then(|| sample.bytes as f64 * 1e9 / ns as f64)
}

/// What a schedule offers is no throughput, and its CPU time is that of waiting; large values
/// beside it are one. Latencies are kept of what came on a schedule.
fn is_offered(experiment: &ExperimentKind, sample: &Sample) -> bool {
    *experiment != ExperimentKind::App && sample.series.contains_key("latency_ns")
}

fn throughput(experiment: &ExperimentKind, sample: &Sample) -> Option<f64> {
    bytes_by(sample, sample.elapsed_ns).filter(|_| !is_offered(experiment, sample))
}

fn of_sends(_: &ExperimentKind, sample: &Sample) -> Option<f64> {
    bytes_by(sample, *sample.phases_ns.get("send")?)
}

fn per_cpu(experiment: &ExperimentKind, sample: &Sample) -> Option<f64> {
    bytes_by(sample, servers_cpu_ns(experiment, sample)?)
}

/// CPU time of whoever serves, nanoseconds; none if it was not taken.
fn servers_cpu_ns(experiment: &ExperimentKind, sample: &Sample) -> Option<u64> {
    let processes: &[&str] = match experiment {
        // Messages there and back come on no schedule, though their latencies are kept alike.
        ExperimentKind::Pingpong => &["client_cpu", "server_cpu"],
        _ if is_offered(experiment, sample) => return None,
        ExperimentKind::App => &["server_cpu"],
        ExperimentKind::Http => &["proxy_cpu", "backend_cpu"],
        _ => &["client_cpu", "server_cpu"],
    };
    sample::cpu_ns(sample, processes)
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
