//! Figures that others published, beside ours and never mixed with them.

use std::sync::LazyLock;

use ntcopy_record::ExperimentKind;
use serde::Deserialize;

const TOML: &str = include_str!("../../../bench/published.toml");

/// A published pair of throughputs. Other kinds of figures in the file belong to experiments
/// that this version does not have.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct Published {
    pub experiment: ExperimentKind,
    pub cpu: String,
    pub label: String,
    /// Normal copies, megabits (10^6) per second.
    pub copy_mbit_per_s: f64,
    /// `MSG_NTCOPY`, megabits (10^6) per second.
    pub nt_mbit_per_s: f64,
}

impl Published {
    /// How much faster `MSG_NTCOPY` was.
    pub fn ratio(&self) -> f64 {
        self.nt_mbit_per_s / self.copy_mbit_per_s
    }
}

/// The published pairs of an experiment, in the file's order.
pub(crate) fn sends(experiment: &ExperimentKind) -> Vec<&'static Published> {
    static ALL: LazyLock<Vec<Published>> = LazyLock::new(|| {
        #[derive(Deserialize)]
        struct File {
            result: Vec<toml::Table>,
        }
        let file: File = toml::from_str(TOML).expect("bench/published.toml parses");
        let pairs = file
            .result
            .into_iter()
            .filter(|row| row.contains_key("copy_mbit_per_s") && row.contains_key("nt_mbit_per_s"));
        pairs.map(|row| row.try_into().expect("a published pair is whole")).collect()
    });
    ALL.iter().filter(|row| row.experiment == *experiment).collect()
}

/// Published fills: `rep stos` against a loop of MOVNTI.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct PublishedFills {
    pub cpu: String,
    /// The function with normal stores.
    pub temporal: String,
    /// Size in MiB; GB/s with normal and with non-temporal stores.
    #[serde(rename = "rows_mb_temporal_gbps_nt_gbps")]
    pub rows: Vec<(u64, f64, f64)>,
}

/// A published pair of walks through a matrix.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct PublishedWalks {
    pub cpu: String,
    /// Row by row, milliseconds.
    pub row_major_ms: f64,
    /// Column by column, milliseconds.
    pub column_major_ms: f64,
}

/// The published fills, in the file's order.
pub(crate) fn fills() -> Vec<PublishedFills> {
    rows_of(ExperimentKind::Memset)
}

pub(crate) fn walks() -> Vec<PublishedWalks> {
    rows_of(ExperimentKind::Order)
}

/// Published loops that clear or copy the pages of a buffer, in a kernel with one routine or
/// another.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct PublishedPages {
    pub cpu: String,
    /// `zero` or `copy`.
    pub operation: String,
    /// Buffer in KiB; seconds with `rep stosd` or `rep movsd`, with MMX and a prefetch and normal
    /// stores, and the same with non-temporal stores.
    #[serde(rename = "rows_kib_slow_apn_apN_seconds")]
    pub rows: Vec<(u64, f64, f64, f64)>,
    /// Buffer in KiB; seconds where pages were cleared with normal stores and copied with
    /// non-temporal ones.
    #[serde(rename = "rows_kib_mixed_seconds", default)]
    pub mixed: Vec<(u64, f64)>,
}

impl PublishedPages {
    /// Seconds where both kinds of stores were mixed.
    pub fn mixed_s(&self, kib: u64) -> Option<f64> {
        self.mixed.iter().find(|row| row.0 == kib).map(|row| row.1)
    }
}

/// The published loops, in the file's order.
pub(crate) fn pages() -> Vec<PublishedPages> {
    rows_of(ExperimentKind::Pages)
}

/// Published requests and responses, with and without `tx-nocache-copy`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct PublishedNet {
    pub cpu: String,
    pub label: String,
    /// Transactions per second with normal copies.
    pub copy_tps: f64,
    /// Percent of the machine's CPU time.
    pub copy_cpu_percent: f64,
    /// Microseconds: 50, 90 and 95 %.
    pub copy_latency_p50_p90_p95_us: [f64; 3],
    pub nt_tps: f64,
    pub nt_cpu_percent: f64,
    pub nt_latency_p50_p90_p95_us: [f64; 3],
}

/// A published distribution of half a round trip, microseconds.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct PublishedHalf {
    pub avg: f64,
    pub std: f64,
    pub min: f64,
    pub p25: f64,
    pub p50: f64,
    pub p75: f64,
    pub p90: f64,
    pub p99: f64,
    pub p99_9: f64,
    pub p99_99: f64,
    pub p99_999: f64,
    pub max: f64,
}

impl PublishedHalf {
    /// Every percentile that was published, with its value.
    pub fn percentiles(&self) -> [(f64, f64); 8] {
        [
            (25.0, self.p25),
            (50.0, self.p50),
            (75.0, self.p75),
            (90.0, self.p90),
            (99.0, self.p99),
            (99.9, self.p99_9),
            (99.99, self.p99_99),
            (99.999, self.p99_999),
        ]
    }
}

/// Published messages there and back, with DDIO off and on.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct PublishedPingPong {
    /// The CPU and the network card that they were measured on.
    pub cpu: String,
    pub message_bytes: u64,
    pub ddio_off: PublishedHalf,
    pub ddio_on: PublishedHalf,
}

pub(crate) fn net() -> Vec<PublishedNet> {
    rows_of(ExperimentKind::Net)
}

pub(crate) fn pingpong() -> Vec<PublishedPingPong> {
    rows_of(ExperimentKind::Pingpong)
}

fn rows_of<T: serde::de::DeserializeOwned>(experiment: ExperimentKind) -> Vec<T> {
    #[derive(Deserialize)]
    struct File {
        result: Vec<toml::Table>,
    }
    let file: File = toml::from_str(TOML).expect("bench/published.toml parses");
    let is_its = |row: &toml::Table| {
        row.get("experiment").and_then(toml::Value::as_str) == Some(experiment.as_str())
    };
    let rows = file.result.into_iter().filter(is_its);
    rows.map(|row| row.try_into().expect("a published row is whole")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_unix_figures_are_there_with_their_ratios() {
        let found = sends(&ExperimentKind::Unix);
        let ratios: Vec<String> = found.iter().map(|p| format!("{:.2}", p.ratio())).collect();
        assert_eq!(ratios, ["1.43", "1.33", "1.32"]);
        assert!(found.iter().all(|published| published.cpu == "AMD EPYC 7662"));
    }

    #[test]
    fn the_published_fills_and_walks_are_there() {
        let fills = fills();
        assert_eq!((fills.len(), fills[0].rows[0]), (3, (16, 17.35, 11.83)));
        assert_eq!(walks()[0].column_major_ms, 94_860.0);
        let pages = pages();
        assert_eq!((pages.len(), pages[1].rows.len()), (2, 7));
        assert_eq!(
            (pages[0].operation.as_str(), pages[0].rows[1]),
            ("zero", (32, 3.938, 3.798, 6.186))
        );
        assert_eq!(pages[1].mixed_s(64), Some(4.926));
        assert_eq!((pages[1].mixed_s(32), pages[0].mixed.len()), (None, 0), "not published");
    }

    #[test]
    fn the_published_transactions_and_messages_are_whole() {
        let net = net();
        assert_eq!((net[0].copy_tps, net[0].nt_tps), (79_571.0, 83_856.0));
        let on = &pingpong()[0].ddio_on;
        let expected = [2.556, 2.566, 2.579, 2.598, 2.666, 3.451, 3.915, 5.152];
        assert_eq!(on.percentiles().map(|(_, us)| us), expected);
    }

    #[test]
    fn an_experiment_without_published_pairs_has_none() {
        assert_eq!(sends(&"no such experiment".into()), Vec::<&Published>::new());
        assert!(sends(&ExperimentKind::Memset).is_empty(), "its figures are of another kind");
    }
}
