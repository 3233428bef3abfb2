//! Experiment `pages`: its defaults, what a user may set, and the plan of it.
//!
//! It has two forms: a buffer that is cleared or copied page by page, here, and loops of forks, in
//! [`fork`].

pub mod fork;

use std::time::Duration;

use ntcopy_record::ExperimentKind;
use serde::Deserialize;

use super::Asked;
use super::plan::{BulkCell, BulkPlan, Resources, check_pages, ways};
use super::task::{Action, PAGE_BYTES, PageWay, Pages, ReadBack, Task};
use crate::experiment::{reads_defaults, size};
use crate::plan::error::check_pairs;
use crate::plan::{PlanError, or};

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Defaults {
    pub pairs: u32,
    pub pages: PagesDefaults,
    pub fork: fork::ForkDefaults,
}

/// The defaults of `--form pages`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PagesDefaults {
    pub baseline: String,
    pub peers: Vec<String>,
    pub actions: Vec<Action>,
    pub read_back: Vec<ReadBack>,
    pub buffer_bytes: Vec<u64>,
    pub beyond_llcs: u64,
    pub most_beyond_bytes: u64,
    pub warm_up_ms: u64,
    pub sample_ms: u64,
}

reads_defaults!("pages.toml");

/// What is measured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Form {
    #[default]
    Pages,
    Fork,
}

/// What a user asks for; what is left open comes from [`defaults`].
#[derive(clap::Args, Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// pages (the routines, in user space) or fork (the fork() loop)
    #[arg(long, value_name = "FORM", default_value = "pages")]
    pub form: Form,
    /// Form pages: ways to compare with rep-b; form fork: modes to compare with temporal [default of
    /// fork: nt,nt-copy]
    #[arg(long, value_name = "LIST", value_delimiter = ',', hide_possible_values = true,
          value_parser = mode_names())]
    pub modes: Vec<String>,
    /// Form pages: what is done with each page [default: both]
    #[arg(long = "action", value_name = "LIST", value_delimiter = ',')]
    pub actions: Vec<Action>,
    /// Form pages: what is read afterwards [default: each]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub read_back: Vec<ReadBack>,
    /// Sizes of the buffer, whole pages of 4 KiB [default: see --list]
    #[arg(long = "buffer", value_name = "LIST", value_delimiter = ',', value_parser = size)]
    pub buffer_bytes: Vec<u64>,
    #[arg(from_global)]
    pub pairs: Option<u32>,
    #[arg(from_global)]
    pub quick: bool,
}

/// The modes of both forms, for the command line.
fn mode_names() -> clap::builder::PossibleValuesParser {
    let of_pages = PageWay::ALL.iter().map(|way| way.as_str());
    of_pages.chain(fork::ForkMode::ALL.iter().map(|mode| mode.as_str())).collect::<Vec<_>>().into()
}

impl Asked for Settings {
    const EXPERIMENT: ExperimentKind = ExperimentKind::Pages;

    fn plan(&self, resources: &Resources) -> Result<BulkPlan, PlanError> {
        let all = defaults(self.quick);
        let defaults = &all.pages;
        let buffers = buffers(self, resources)?;
        let any = Task::Pages { action: Action::Copy, read_back: ReadBack::None };
        let ways = ways(&defaults.baseline, &or(&self.modes, &defaults.peers), any)?;
        let mut plan = BulkPlan::new(ExperimentKind::Pages, ways, Pages::Huge, resources);
        plan.pairs = check_pairs(self.pairs.unwrap_or(all.pairs))?;
        plan.sample = Duration::from_millis(defaults.sample_ms);
        plan.warm_up = Duration::from_millis(defaults.warm_up_ms);
        for action in or(&self.actions, &defaults.actions) {
            for read_back in or(&self.read_back, &defaults.read_back) {
                for size_bytes in buffers.iter().copied() {
                    let source = if action == Action::Copy { size_bytes } else { 0 };
                    let task = Task::Pages { action, read_back };
                    plan.add(BulkCell::new(task, size_bytes, 1), source, size_bytes, resources);
                }
            }
        }
        Ok(plan)
    }

    fn named(&self) -> &[String] {
        &self.modes
    }
}

/// The sizes of the buffer: those that were asked for; or the default ones, and one beyond the
/// last-level cache.
fn buffers(settings: &Settings, resources: &Resources) -> Result<Vec<u64>, PlanError> {
    let defaults = &defaults(settings.quick).pages;
    let mut buffers = or(&settings.buffer_bytes, &defaults.buffer_bytes);
    if settings.buffer_bytes.is_empty() && !settings.quick {
        let beyond = (defaults.beyond_llcs * resources.llc_bytes).min(defaults.most_beyond_bytes);
        let beyond = beyond.next_multiple_of(PAGE_BYTES);
        if !buffers.contains(&beyond) && beyond > 0 {
            buffers.push(beyond);
        }
    }
    check_pages(&buffers)?;
    Ok(buffers)
}

#[cfg(test)]
mod tests {
    use super::fork::{ForkMode, User};
    use super::*;
    use crate::experiments::bulk::plan::test_resources;

    const GIB: u64 = 1 << 30;

    #[test]
    fn pages_are_asked_about_within_l1_within_l2_and_beyond_the_last_level_cache() {
        let plan = Settings::default().plan(&test_resources(1, 64 * GIB)).unwrap();
        // Two actions, three ways to read back; three sizes and twice the 32 MiB of the cache.
        assert_eq!(plan.cells.len(), 2 * 3 * 4);
        assert_eq!(plan.ways[0].to_string(), "rep-b");
        assert_eq!((plan.source_bytes, plan.destination_bytes), (64 << 20, 64 << 20));
        let measured = |action| {
            let task = |cell: &&BulkCell| matches!(cell.task, Task::Pages { action: a, .. } if a == action);
            let cell = plan.cells.iter().find(task).unwrap();
            plan.ways.iter().filter(|way| cell.not_for(**way).is_none()).count()
        };
        assert_eq!((plan.ways.len(), measured(Action::Clear), measured(Action::Copy)), (8, 6, 8));
    }

    #[test]
    fn a_copy_that_does_not_fit_is_left_out_and_the_clear_is_not() {
        let settings = Settings { buffer_bytes: vec![512 << 20], ..Default::default() };
        let plan = settings.plan(&test_resources(1, GIB)).unwrap();
        let (kept, left): (Vec<&BulkCell>, Vec<&BulkCell>) =
            plan.cells.iter().partition(|cell| cell.left_out.is_none());
        assert_eq!((kept.len(), left.len()), (3, 3));
        assert_eq!((plan.source_bytes, plan.destination_bytes), (0, 512 << 20));
    }

    #[test]
    fn forks_have_the_sizes_of_2004_and_every_mode_beside_the_baseline() {
        let plan = fork::plan(&Settings::default()).unwrap();
        assert_eq!(plan.modes, [ForkMode::Temporal, ForkMode::Nt, ForkMode::NtCopy]);
        assert_eq!(plan.cells.len(), 8 * 2 * 2);
        let sizes = |user| plan.cells.iter().filter(move |cell| cell.user == user);
        assert_eq!(sizes(User::Parent).map(|cell| cell.buffer_bytes).max(), Some(327_680));
        assert_eq!(sizes(User::Child).map(|cell| cell.buffer_bytes).min(), Some(PAGE_BYTES));
        assert_eq!(plan.samples(), 32 * 3 * 15);
        assert_eq!(plan.memory_bytes(), 2 * 327_680);
    }

    #[test]
    fn half_a_page_is_no_buffer() {
        for bytes in [0, 6000] {
            let settings = Settings { buffer_bytes: vec![bytes], ..Default::default() };
            let error = fork::plan(&settings).unwrap_err().to_string();
            assert!(error.contains("--buffer"), "{error}");
            assert_eq!(settings.plan(&test_resources(1, GIB)).unwrap_err().to_string(), error);
        }
    }
}
