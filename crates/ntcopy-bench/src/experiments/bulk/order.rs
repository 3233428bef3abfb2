//! Experiment `order`: its defaults, what a user may set, and the plan of it.

use std::time::Duration;

use ntcopy_record::ExperimentKind;
use serde::Deserialize;

use super::Asked;
use super::plan::{BulkCell, BulkPlan, Resources, check_sizes, ways};
use super::task::{ELEMENT_BYTES, MatrixTask, Pages, Task};
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

crate::experiment::reads_defaults!("order.toml");

pub const EXAMPLES: &str = "\
Examples:
  ntcopy bench order --quick
  ntcopy bench order --side 4096,4097 --task write       a power of two, and one more

A square matrix of 8-byte numbers is summed, written and copied: row by row, and column by \
column; with normal stores, and with MOVNTI.";

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

impl Asked for Settings {
    const EXPERIMENT: ExperimentKind = ExperimentKind::Order;

    fn plan(&self, resources: &Resources) -> Result<BulkPlan, PlanError> {
        let defaults = defaults(self.quick);
        let sides = or(&self.side, &defaults.side);
        if sides.contains(&0) {
            return Err(PlanError::zero("side"));
        }
        let bytes = |side: &u64| side.saturating_mul(*side).saturating_mul(ELEMENT_BYTES);
        check_sizes(&sides.iter().map(bytes).collect::<Vec<u64>>())?;
        let tasks = or(&self.tasks, &defaults.tasks);
        let peers = or(&self.modes, &defaults.peers);
        let ways = ways(&defaults.baseline, &peers, Task::Matrix(MatrixTask::Sum))?;
        let mut plan = BulkPlan::new(ExperimentKind::Order, ways, self.pages, resources);
        plan.pairs = check_pairs(self.pairs.unwrap_or(defaults.pairs))?;
        plan.sample = Duration::from_millis(defaults.sample_ms);
        for size_bytes in sides.iter().map(bytes) {
            for task in &tasks {
                let cell = BulkCell::new(Task::Matrix(*task), size_bytes, 1);
                plan.add(cell, size_bytes, size_bytes, resources);
            }
        }
        Ok(plan)
    }

    fn named(&self) -> &[String] {
        &self.modes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::bulk::plan::{side, test_resources};

    const GIB: u64 = 1 << 30;

    #[test]
    fn a_sum_has_no_non_temporal_form() {
        let plan = Settings::default().plan(&test_resources(1, 64 * GIB)).unwrap();
        let task = Task::Matrix(MatrixTask::Sum);
        let sum = plan.cells.iter().find(|cell| cell.task == task).unwrap();
        let measured = plan.ways.iter().filter(|way| sum.not_for(**way).is_none()).count();
        assert_eq!(measured, 2);
        assert_eq!(side(sum.size_bytes), 1000);
    }
}
