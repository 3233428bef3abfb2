//! The engine: experiment → plan → run → sample → stats → verdict.
//!
//! Each stage uses only the stages before it. [`record`] is the seam between
//! measuring and judging: [`sample`] measures, by means of [`run`], and writes
//! a record; [`stats`], [`verdict`], [`advice`] and [`compare`] are pure functions of records.
//! [`machine`] describes the machine, [`hardware`] has its counters, [`guest`] takes a whole measurement into
//! a kernel that this program boots. [`experiments`] has those that are whole in a folder each.
//! [`durable`] makes folders that outlast a loss of power.

pub mod advice;
pub mod calibrate;
pub mod compare;
pub mod durable;
pub mod experiment;
pub mod experiments;
pub mod guest;
pub mod hardware;
pub mod machine;
pub mod plan;
mod random;
pub mod record;
pub mod run;
pub mod sample;
pub mod stats;
mod tcp;
pub mod units;
pub mod verdict;
