//! What the record says of a cell, and of a sample.

use std::collections::BTreeMap;

use ntcopy_record::Params;
use serde_json::Value;

use super::capacity::Grid;
use super::plan::{AppCell, AppMode, Plan};
use super::traffic::Window;
use crate::run::ns;

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
    let mut params = Params::new();
    let mut put = |name: &str, value: Value| params.insert(name.to_owned(), value);
    put("app", plan.app.as_str().into());
    put("app_version", version.into());
    put("form", form.into());
    put("connections", cell.connections.into());
    put("large_rate", cell.rate.asked().into());
    put("large_bytes", data.large_bytes.into());
    put("dataset_bytes", (data.large_bytes * data.large_values).into());
    put("small_bytes", data.small_bytes.into());
    put("small_keys", data.small_keys.into());
    put("multiget_keys", data.multiget.into());
    put("small_connections", plan.small_connections.into());
    put("server_cpu", server_cpu.into());
    put("client_cpu", client_cpu.into());
    let per_1000_s = offered.small_per_1000_s;
    if let Some(limit) = plan.capacity {
        let lowest = Grid { full_per_1000_s: per_1000_s }.lowest();
        put("p99_limit_ns", ns(limit.0).into());
        put("lowest_requests_per_1000_s", lowest.into());
    } else {
        put("offered_requests_per_1000_s", per_1000_s.into());
    }
    if plan.modes.contains(&AppMode::Chunked) {
        put("chunk_bytes", data.chunk_bytes.into());
    }
    if let Some(rate) = offered.large_per_1000_s {
        let bytes_per_s = (rate as f64 / 1000.0 * data.large_bytes as f64).round() as u64;
        put("offered_bytes_per_s", bytes_per_s.into());
    }
    params
}

/// Answers, and what was due of large values.
pub fn series(window: &Window, due: Option<u64>) -> BTreeMap<String, Vec<u64>> {
    let answers = window.answers.as_ref();
    let mut series = answers.map(|answers| answers.series("latency_ns")).unwrap_or_default();
    series.insert("multigets".to_owned(), vec![window.answered]);
    series.extend(due.map(|bytes| ("offered_bytes".to_owned(), vec![bytes])));
    series
}
