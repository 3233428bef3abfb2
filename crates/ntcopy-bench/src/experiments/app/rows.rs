//! What the record says of a cell, and of a sample.

use std::collections::BTreeMap;

use ntcopy_record::Params;

use super::capacity::Grid;
use super::param;
use super::plan::{AppCell, AppMode, Plan};
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
    let mut params = Params::from([
        (param::APP.to_owned(), plan.app.as_str().into()),
        (param::VERSION.to_owned(), version.into()),
        (param::FORM.to_owned(), form.into()),
        (param::CONNECTIONS.to_owned(), cell.connections.into()),
        (param::LARGE_RATE.to_owned(), cell.rate.asked().into()),
        (param::LARGE_BYTES.to_owned(), data.large_bytes.into()),
        (param::DATASET_BYTES.to_owned(), (data.large_bytes * data.large_values).into()),
        (param::SMALL_BYTES.to_owned(), data.small_bytes.into()),
        (param::SMALL_KEYS.to_owned(), data.small_keys.into()),
        (param::MULTIGET.to_owned(), data.multiget.into()),
        (param::SMALL_CONNECTIONS.to_owned(), plan.small_connections.into()),
        (param::SERVER_CPU.to_owned(), server_cpu.into()),
        (param::CLIENT_CPU.to_owned(), client_cpu.into()),
    ]);
    let per_1000_s = offered.small_per_1000_s;
    if let Some(limit) = plan.capacity {
        let limit_ns = limit.0.as_nanos() as u64;
        let lowest = Grid { full_per_1000_s: per_1000_s }.lowest();
        params.insert(param::P99_LIMIT_NS.to_owned(), limit_ns.into());
        params.insert(param::LOWEST_REQUESTS.to_owned(), lowest.into());
    } else {
        params.insert(param::OFFERED_REQUESTS.to_owned(), per_1000_s.into());
    }
    if plan.modes.contains(&AppMode::Chunked) {
        params.insert(param::CHUNK_BYTES.to_owned(), data.chunk_bytes.into());
    }
    if let Some(rate) = offered.large_per_1000_s {
        let bytes_per_s = (rate as f64 / 1000.0 * data.large_bytes as f64).round() as u64;
        params.insert(param::OFFERED_BYTES.to_owned(), bytes_per_s.into());
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
