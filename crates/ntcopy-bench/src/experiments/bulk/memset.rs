//! Experiment `memset`: its defaults, what a user may set, and the plan of it.

use std::time::Duration;

use ntcopy::arch;
use ntcopy_record::ExperimentKind;
use serde::Deserialize;

use super::Asked;
use super::plan::{BulkCell, BulkPlan, Resources, check_sizes, threads, ways};
use super::run::tuned_threshold_bytes;
use super::task::{Heat, Pages, Task, Way};
use crate::c_library::Libc;
use crate::experiment::{LINE_BYTES, size};
use crate::plan::error::check_pairs;
use crate::plan::{PlanError, or};

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Defaults {
    pub baseline: String,
    pub peers: Vec<String>,
    pub size_bytes: Vec<u64>,
    pub threads: Vec<u32>,
    pub value: u8,
    pub warm_up_ms: u64,
    pub sample_ms: u64,
    pub pairs: u32,
}

crate::experiment::reads_defaults!("memset.toml");

pub const EXAMPLES: &str = "\
Examples:
  ntcopy bench memset --quick
  ntcopy bench memset --size 512MiB --modes x86-64-movnt,clzero,ours
  ntcopy bench memset --value 165                        a value that is not zero
  ntcopy bench memset --modes libc-tuned --libc-threshold 4MiB   glibc with another threshold

Every call fills the same memory, touched before. Functions that `perf bench mem memset` has \
carry its names; libc is what all are compared with.";

/// What a user asks for; what is left open comes from [`defaults`].
#[derive(clap::Args, Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// Ways to compare with libc [default: all that the CPU has]
    #[arg(long, value_name = "LIST", value_delimiter = ',', hide_possible_values = true,
          value_parser = Task::Fill { value: 0, destination: Heat::Hot }.way_names())]
    pub modes: Vec<String>,
    /// Bytes of a call
    #[arg(long = "size", value_name = "LIST", value_delimiter = ',', value_parser = size)]
    pub size_bytes: Vec<u64>,
    /// Threads that fill at once, each on its CPU
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub threads: Vec<u32>,
    /// The byte that is stored
    #[arg(long, value_name = "BYTE")]
    pub value: Option<u8>,
    /// The threshold of libc-tuned, glibc 2.40 and later [default: three quarters of CPUID's level-3
    /// cache]
    #[arg(long = "libc-threshold", value_name = "SIZE", value_parser = size)]
    pub tuned_threshold_bytes: Option<u64>,
    /// Pages of the memory
    #[arg(long, value_name = "KIND", default_value = "huge")]
    pub pages: Pages,
    #[arg(from_global)]
    pub pairs: Option<u32>,
    #[arg(from_global)]
    pub quick: bool,
}

impl Asked for Settings {
    const EXPERIMENT: ExperimentKind = ExperimentKind::Memset;

    fn plan(&self, resources: &Resources) -> Result<BulkPlan, PlanError> {
        let own = |libc: &Libc| libc.memset_nt_threshold_bytes;
        plan(self, resources, tuned_threshold_bytes(self.tuned_threshold_bytes, own))
    }

    fn named(&self) -> &[String] {
        &self.modes
    }
}

/// Makes the plan. `tuned_threshold_bytes` is the C library's other threshold, where it has one for
/// memset.
fn plan(
    settings: &Settings,
    resources: &Resources,
    tuned_threshold_bytes: Option<u64>,
) -> Result<BulkPlan, PlanError> {
    let defaults = defaults(settings.quick);
    let sizes = or(&settings.size_bytes, &defaults.size_bytes);
    check_sizes(&sizes)?;
    let threads = threads(&settings.threads, &defaults.threads, resources)?;
    let task =
        Task::Fill { value: settings.value.unwrap_or(defaults.value), destination: Heat::Hot };
    let mut ways = ways(&defaults.baseline, &or(&settings.modes, &defaults.peers), task)?;
    if settings.modes.is_empty() {
        ways.retain(|way| stores(*way, task));
    }
    let mut plan = BulkPlan::new(ExperimentKind::Memset, ways, settings.pages, resources);
    plan.pairs = check_pairs(settings.pairs.unwrap_or(defaults.pairs))?;
    plan.sample = Duration::from_millis(defaults.sample_ms);
    plan.warm_up = Duration::from_millis(defaults.warm_up_ms);
    plan.tuned_threshold_bytes = tuned_threshold_bytes;
    for threads in threads {
        for size_bytes in sizes.iter().copied() {
            let needed = u64::from(threads) * size_bytes.next_multiple_of(LINE_BYTES);
            plan.add(BulkCell::new(task, size_bytes, threads), 0, needed, resources);
        }
    }
    Ok(plan)
}

/// Whether a way stores this value on a CPU that has it: CLZERO and its like store zeros only.
fn stores(way: Way, task: Task) -> bool {
    match (way, task) {
        (Way::Fill(method), Task::Fill { value, .. }) => {
            arch::fill_backend(method).is_some_and(|row| row.can_fill_with(value))
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::bulk::plan::test_resources;

    const GIB: u64 = 1 << 30;

    #[test]
    fn a_value_other_than_zero_leaves_out_what_stores_zeros_only() {
        let settings = Settings { value: Some(7), ..Settings::default() };
        let plan = plan(&settings, &test_resources(1, 64 * GIB), None).unwrap();
        assert!(plan.ways.iter().all(|way| way.to_string() != "clzero"));
        assert!(plan.ways.contains(&Way::Ours));
    }
}
