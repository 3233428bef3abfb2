//! A record on disk, and what can be said of it.
//!
//! A record is the seam between measuring and judging. This crate has its types and its format
//! (`docs/reference/record.md`), and pure functions of records: [`stats`], [`judge`], [`verdict`],
//! [`compare`] and [`advice`] need neither the machine nor the code that measured. [`units`] are
//! those of records and command lines; [`mod@file`] reads what somebody else wrote, and [`foreign`] makes
//! it safe to print.

pub mod advice;
pub mod compare;
pub mod file;
pub mod foreign;
pub mod judge;
pub mod lists;
pub mod params;
pub mod random;
mod record;
pub mod stats;
pub mod units;
pub mod verdict;

#[cfg(any(test, feature = "testing"))]
pub use record::testing;
pub use record::{
    COUNTED_PERMILLE, Cache, Cell, Counted, CpuList, End, ExperimentKind, FILE_NAME, FORMAT,
    HardwareCounter, Header, Kernel, Line, Look, LookEnd, MISSES_PERMILLE, Machine, Mode,
    NoCpuList, NumaNode, Params, ReadError, Record, RunError, Sample, Sends, SharedCaches,
    Topology, Unavailable, add_counts, add_series, beside, is_counting_mark, number, word,
};
