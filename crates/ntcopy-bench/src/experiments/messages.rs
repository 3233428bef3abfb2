//! Messages between a client and a server: experiments `net` and `pingpong`.

mod mode;
pub mod net;
pub mod pingpong;
pub mod plan;
pub mod run;
mod sample;

use ntcopy_record::{ExperimentKind, Unavailable};

use crate::plan::{Cpus, PlanError};
use crate::sample::Bootable;

pub use mode::NetMode;

/// What is asked of an experiment of this family.
pub trait Asked {
    const EXPERIMENT: ExperimentKind;

    type Plan: Bootable;

    fn plan(&self, cpus: &Cpus) -> Result<Self::Plan, PlanError>;

    /// Whether a mode that is not available was named.
    fn names(&self, missing: &Unavailable) -> bool;
}
