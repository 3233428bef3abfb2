//! A record on disk: its types and its format (`docs/reference/record.md`).
//!
//! A record is the seam between measuring and judging. [`units`] are those of records and command
//! lines; [`mod@file`] reads what somebody else wrote, and [`foreign`] makes it safe to print;
//! [`folder`] is where the user's records are.

pub mod file;
pub mod folder;
pub mod foreign;
pub mod lists;
mod record;
pub mod units;

#[cfg(any(test, feature = "testing"))]
pub use record::testing;
pub use record::{
    COUNTED_PERMILLE, Cache, Cell, Counted, CpuList, End, ExperimentKind, FILE_NAME, FORMAT,
    HardwareCounter, Header, Kernel, Line, Look, LookEnd, MISSES_PERMILLE, Machine, Mode,
    NoCpuList, NumaNode, Params, ReadError, Record, RunError, Sample, Sends, SharedCaches,
    Topology, Unavailable, add_counts, add_series, beside, is_counting_mark, number, word,
};
