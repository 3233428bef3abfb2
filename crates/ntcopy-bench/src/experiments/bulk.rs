//! Copies and fills in user space: experiments `memcpy`, `memset`, `order` and `pages`.

pub mod memcpy;
pub mod memset;
pub mod order;
pub mod pages;
pub mod plan;
pub mod run;
mod sample;
pub mod task;

use ntcopy_record::ExperimentKind;

use self::plan::{BulkPlan, Resources};
use crate::plan::PlanError;

/// What is asked of an experiment of this family.
pub trait Asked {
    const EXPERIMENT: ExperimentKind;

    fn plan(&self, resources: &Resources) -> Result<BulkPlan, PlanError>;

    /// The ways that were named.
    fn named(&self) -> &[String];
}
