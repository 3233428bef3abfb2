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

/// Part of the time that was spent in the sends.
pub const SEND_SHARE: &str = "send_share";
/// Responses per second while the clock ran.
pub const ANSWERED: &str = "transactions_per_s";
/// CPU seconds for 10^9 bytes.
pub const PROXY_CPU: &str = "proxy_cpu_s_per_gb";
pub const BACKEND_CPU: &str = "backend_cpu_s_per_gb";
pub const CLIENT_CPU: &str = "client_cpu_s_per_gb";
pub const SERVERS_CPU: &str = "servers_cpu_s_per_gb";
pub const SERVER_CPU: &str = "cpu_s_per_gb";
/// CPU microseconds for a response.
pub const CLIENT_CPU_US: &str = "client_cpu_us";
pub const SERVER_CPU_US: &str = "server_cpu_us";
pub const BOTH_CPU_US: &str = "both_cpu_us";

/// A figure of an experiment's sample.
type Of = fn(&ExperimentKind, &Sample) -> Option<f64>;

/// What a metric is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// Modes are compared by it, and more is better.
    Judged,
    /// They are, but the part of a whole is no result of its own.
    Part,
    /// They are compared by what is no figure of single samples.
    Own,
    /// Its median is shown.
    Shown,
}

/// A metric's row.
pub struct Metric {
    pub name: &'static str,
    pub words: &'static str,
    /// A sample's figure; none where it has none.
    figure: Of,
    pub used: Use,
}

impl Metric {
    /// One sample's figure; none if it was not clocked, or nothing was moved.
    #[must_use]
    pub fn rate(&self, experiment: &ExperimentKind, sample: &Sample) -> Option<f64> {
        (self.figure)(experiment, sample)
    }
}

/// In the order in which results come.
pub const METRICS: [Metric; 19] = [
    whole(THROUGHPUT, "throughput", throughput),
    Metric { used: Use::Part, ..whole(SEND_THROUGHPUT, "throughput of the sends", of_sends) },
    whole(WALKS, "other programs' speed", |_, sample| Some(1e9 / walk_ns(sample)?)),
    whole(WALKS_P99, "other programs' speed at the 99th percentile", |_, sample| {
        Some(1e9 / sample::quantile_ns(&sample::walks(sample)?, 0.99)?)
    }),
    whole(PER_CPU, "bytes per CPU second", per_cpu),
    whole(P50, "the median of latency", |_, sample| Some(1e9 / latency_ns(sample, 0.5)?)),
    whole(P99, "the 99th percentile of latency", |_, s| Some(1e9 / latency_ns(s, 0.99)?)),
    Metric { used: Use::Own, ..whole(TURNS, "the program's own figure", turn) },
    Metric {
        used: Use::Own,
        ..whole(DISPLACED, "bytes moved for a byte of the cache displaced", |_, _| None)
    },
    shown(SEND_SHARE, |_, sample| {
        Some(*sample.phases_ns.get("send")? as f64 / sample.elapsed_ns as f64)
    }),
    shown(ANSWERED, |_, s| Some(sample::answered(s)? * 1e9 / s.elapsed_ns.max(1) as f64)),
    shown(PROXY_CPU, |_, sample| cpu_s_per_gb(sample, &["proxy_cpu"])),
    shown(BACKEND_CPU, |_, sample| cpu_s_per_gb(sample, &["backend_cpu"])),
    shown(CLIENT_CPU, |_, sample| cpu_s_per_gb(sample, &["client_cpu"])),
    shown(SERVERS_CPU, |_, sample| cpu_s_per_gb(sample, &["proxy_cpu", "backend_cpu"])),
    shown(SERVER_CPU, |_, sample| cpu_s_per_gb(sample, &["server_cpu"])),
    shown(CLIENT_CPU_US, |_, sample| cpu_us_each(sample, &["client_cpu"])),
    shown(SERVER_CPU_US, |_, sample| cpu_us_each(sample, &["server_cpu"])),
    shown(BOTH_CPU_US, |_, sample| cpu_us_each(sample, &["client_cpu", "server_cpu"])),
];

const fn whole(name: &'static str, words: &'static str, figure: Of) -> Metric {
    Metric { name, words, figure, used: Use::Judged }
}

const fn shown(name: &'static str, figure: Of) -> Metric {
    Metric { name, words: name, figure, used: Use::Shown }
}

/// Where a metric is in [`METRICS`].
pub(crate) fn place(name: &str) -> Option<usize> {
    METRICS.iter().position(|metric| metric.name == name)
}

/// A metric in words, by its name.
#[must_use]
pub fn words(name: &str) -> &str {
    METRICS.iter().find(|metric| metric.name == name).map_or(name, |metric| metric.words)
}

/// One sample's figure by a metric; none if it was not clocked, or nothing was moved.
#[must_use]
pub fn rate(experiment: &ExperimentKind, sample: &Sample, metric: &str) -> Option<f64> {
    METRICS[place(metric)?].rate(experiment, sample)
}

/// A turn's own figure, whichever way is better.
fn turn(experiment: &ExperimentKind, sample: &Sample) -> Option<f64> {
    super::turns::figure(sample).filter(|_| *experiment == ExperimentKind::Try)
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
