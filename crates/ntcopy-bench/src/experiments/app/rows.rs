//! What the record says of a cell, and of a sample.

use std::collections::BTreeMap;

use ntcopy_record::Params;

use super::plan::{APP, AppCell, Plan};
use super::traffic::Window;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offered {
    pub small_per_1000_s: u64,
    /// Large values in 1000 s; none: each connection asks without a pause.
    pub large_per_1000_s: Option<u64>,
}

pub fn what(cell: &AppCell) -> String {
    format!("{} connections, {} of large values", cell.connections, cell.rate.asked())
}

pub fn params(plan: &Plan, cell: &AppCell, offered: &Offered, version: &str) -> Params {
    let data = &plan.data;
    let form = if offered.large_per_1000_s.is_some() { "open" } else { "closed" };
    let [server_cpu, client_cpu] = plan.cpus;
    let bytes_per_s = |rate: u64| (rate as f64 / 1000.0 * data.large_bytes as f64).round() as u64;
    crate::plan::params([
        ("app", APP.into()),
        ("app_version", version.into()),
        ("form", form.into()),
        ("connections", cell.connections.into()),
        ("large_rate", cell.rate.asked().into()),
        ("large_bytes", data.large_bytes.into()),
        ("dataset_bytes", (data.large_bytes * data.large_values).into()),
        ("small_bytes", data.small_bytes.into()),
        ("small_keys", data.small_keys.into()),
        ("multiget_keys", data.multiget.into()),
        ("small_connections", plan.small_connections.into()),
        ("server_cpu", server_cpu.into()),
        ("client_cpu", client_cpu.into()),
        ("offered_requests_per_1000_s", offered.small_per_1000_s.into()),
        ("offered_bytes_per_s", offered.large_per_1000_s.map(bytes_per_s).into()),
    ])
}

/// Answers, and what was due of large values.
pub fn series(window: &Window, due: Option<u64>) -> BTreeMap<String, Vec<u64>> {
    let answers = window.answers.as_ref();
    let mut series = answers.map(|answers| answers.series("latency_ns")).unwrap_or_default();
    series.insert("multigets".to_owned(), vec![window.answered]);
    series.extend(due.map(|bytes| ("offered_bytes".to_owned(), vec![bytes])));
    series
}
