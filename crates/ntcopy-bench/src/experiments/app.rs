//! Small requests beside large ones, in a program of another project.
//!
//! One client multigets hot keys at random moments, and fetches large values beside that, at an
//! offered rate or without a pause. It is one thread and drops large values unread, in the socket.
//! The program runs as it is, and hinted.

mod client;
mod command;
mod measure;
mod plan;
mod rates;
mod rows;
mod server;
mod store;
mod traffic;
mod wire;

pub use self::plan::{
    AppCell, AppMode, DEFAULTS_TOML, Data, Hinting, Plan, Settings, defaults, find, plan,
};
pub use self::rates::LargeRate;

use ntcopy_record::{Record, number};

/// What multigets the other boots are offered, a second, by the record of the first: the same.
pub fn settled_per_s(first: &Record) -> Option<u64> {
    let params = &first.cells.first()?.params;
    let per_1000_s = number(params, "offered_requests_per_1000_s")?;
    Some((per_1000_s / 1000).max(1))
}
