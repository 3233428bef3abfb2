//! Small requests beside large ones, in a program of another project.
//!
//! One client multigets hot keys at random moments, and fetches large values beside that, at an
//! offered rate or without a pause. It is one thread and drops large values unread, in the socket.
//! The program runs as it is, hinted, and in the ways in which its users keep large values from
//! small ones today.

mod capacity;
mod client;
mod command;
mod connection;
mod files;
mod measure;
mod plan;
mod rates;
mod rows;
mod server;
mod traffic;
mod wire;

pub use self::plan::{
    App, AppCell, AppMode, DEFAULTS_TOML, Data, Hinting, Plan, Settings, defaults, plan,
};
pub use self::rates::{LargeRate, Time};

use ntcopy_record::Record;

/// What multigets the other boots are offered, a second, by the record of the first: the same, or,
/// for searches, what makes the same rates.
pub fn settled_per_s(first: &Record) -> Option<u64> {
    let params = &first.cells.first()?.params;
    let number = |name: &str| params.get(name).and_then(serde_json::Value::as_u64);
    let per_1000_s = number(param::OFFERED_REQUESTS)
        .or_else(|| number(param::LOWEST_REQUESTS).map(capacity::Grid::full_per_1000_s))?;
    Some((per_1000_s / 1000).max(1))
}

mod param {
    pub const APP: &str = "app";
    pub const VERSION: &str = "app_version";
    /// `open`: large values come at an offered rate; `closed`: without a pause.
    pub const FORM: &str = "form";
    /// Connections that fetch large values.
    pub const CONNECTIONS: &str = "connections";
    /// What they are offered, as it was asked for.
    pub const LARGE_RATE: &str = "large_rate";
    /// The same in bytes per second, in form `open`.
    pub const OFFERED_BYTES: &str = "offered_bytes_per_s";
    pub const LARGE_BYTES: &str = "large_bytes";
    pub const DATASET_BYTES: &str = "dataset_bytes";
    /// Bytes of a piece of one in mode `chunked`.
    pub const CHUNK_BYTES: &str = "chunk_bytes";
    pub const SMALL_BYTES: &str = "small_bytes";
    pub const SMALL_KEYS: &str = "small_keys";
    pub const MULTIGET: &str = "multiget_keys";
    /// The multigets offered in 1000 s.
    pub const OFFERED_REQUESTS: &str = "offered_requests_per_1000_s";
    /// Connections that multigets go over.
    pub const SMALL_CONNECTIONS: &str = "small_connections";
    /// What p99 may be at most, nanoseconds, where the most multigets are searched for.
    pub const P99_LIMIT_NS: &str = "p99_limit_ns";
    /// The multigets of such a search's lowest rate in 1000 s.
    pub const LOWEST_REQUESTS: &str = "lowest_requests_per_1000_s";
    pub const SERVER_CPU: &str = "server_cpu";
    pub const CLIENT_CPU: &str = "client_cpu";
}
