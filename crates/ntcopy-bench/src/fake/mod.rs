//! In the place of `run` with the feature `fake-lanes`: what the drivers ask of lanes, as text.
//!
//! The types that stand for processes have the names and methods of the real ones.
#![allow(missing_docs, dead_code, clippy::missing_errors_doc, clippy::must_use_candidate)]

pub mod bulk;
#[path = "../run/failure.rs"]
mod failure;
#[path = "../run/load.rs"]
pub(crate) mod load;
#[path = "../run/meter.rs"]
pub(crate) mod meter;
pub mod net;
mod rig;
#[path = "../run/schedule.rs"]
pub(crate) mod schedule;
pub mod script;
#[path = "../run/setup.rs"]
mod setup;
#[path = "../run/stop.rs"]
mod stop;

pub use failure::Failure;
pub use rig::{Buffer, Rig, family_unavailable, place, preflight, unavailable, unix_now_ns};
pub use setup::{Clocked, Fault, RigOptions};
pub use stop::Stop;
