//! Experiment `order`: its defaults, what a user may set, and the plan of it.

use std::time::Duration;

use ntcopy_record::ExperimentKind;
use serde::Deserialize;

use crate::experiments::bulk::plan::{BulkCell, BulkPlan, Resources, check_sizes, ways};
use crate::experiments::bulk::task::{ELEMENT_BYTES, MatrixTask, Pages, Task};
use crate::plan::error::check_pairs;
use crate::plan::{PlanError, or};

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Defaults {
    pub baseline: String,
    pub peers: Vec<String>,
    pub side: Vec<u64>,
    pub tasks: Vec<MatrixTask>,
    pub sample_ms: u64,
    pub pairs: u32,
}

crate::experiment::reads_defaults!("order");

/// What a user asks for; what is left open comes from [`defaults`].
#[derive(clap::Args, Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// Walks to compare with row [default: all]
    #[arg(long, value_name = "LIST", value_delimiter = ',',
          value_parser = Task::Matrix(MatrixTask::Sum).way_names())]
    pub modes: Vec<String>,
    /// Rows, and columns
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub side: Vec<u64>,
    /// What is done with each matrix
    #[arg(long = "task", value_name = "LIST", value_delimiter = ',')]
    pub tasks: Vec<MatrixTask>,
    /// Pages of the memory
    #[arg(long, value_name = "KIND", default_value = "huge")]
    pub pages: Pages,
    #[arg(from_global)]
    pub pairs: Option<u32>,
    #[arg(from_global)]
    pub quick: bool,
}

pub fn plan(settings: &Settings, resources: &Resources) -> Result<BulkPlan, PlanError> {
    let defaults = defaults(settings.quick);
    let sides = or(&settings.side, &defaults.side);
    if sides.contains(&0) {
        return Err(PlanError::zero("side"));
    }
    let bytes = |side: &u64| side.saturating_mul(*side).saturating_mul(ELEMENT_BYTES);
    check_sizes(&sides.iter().map(bytes).collect::<Vec<u64>>())?;
    let tasks = or(&settings.tasks, &defaults.tasks);
    let peers = or(&settings.modes, &defaults.peers);
    let ways = ways(&defaults.baseline, &peers, Task::Matrix(MatrixTask::Sum))?;
    let mut plan = BulkPlan::new(ExperimentKind::Order, ways, settings.pages, resources);
    plan.pairs = check_pairs(settings.pairs.unwrap_or(defaults.pairs))?;
    plan.sample = Duration::from_millis(defaults.sample_ms);
    for size_bytes in sides.iter().map(bytes) {
        for task in &tasks {
            let cell = BulkCell::new(Task::Matrix(*task), size_bytes, 1);
            plan.add(cell, size_bytes, size_bytes, resources);
        }
    }
    Ok(plan)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::bulk::plan::{side, test_resources};

    const GIB: u64 = 1 << 30;

    #[test]
    fn a_sum_has_no_non_temporal_form() {
        let plan = plan(&Settings::default(), &test_resources(1, 64 * GIB)).unwrap();
        let task = Task::Matrix(MatrixTask::Sum);
        let sum = plan.cells.iter().find(|cell| cell.task == task).unwrap();
        let measured = plan.ways.iter().filter(|way| sum.not_for(**way).is_none()).count();
        assert_eq!(measured, 2);
        assert_eq!(side(sum.size_bytes), 1000);
    }
}
