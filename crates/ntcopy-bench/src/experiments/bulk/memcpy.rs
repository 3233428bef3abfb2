//! Experiment `memcpy`: its defaults, what a user may set, and the plan of it.

use std::time::Duration;

use ntcopy_record::ExperimentKind;
use ntcopy_record::units::Bytes;
use serde::Deserialize;

use super::Asked;
use super::plan::{BulkCell, BulkPlan, Resources, check_sizes, threads, ways};
use super::run::tuned_threshold_bytes;
use super::task::{Heat, PAGE_BYTES, Pages, ReadBack, Task};
use crate::c_library::Libc;
use crate::experiment::{LINE_BYTES, one_of, size};
use crate::plan::error::check_pairs;
use crate::plan::{PlanError, or};

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Defaults {
    pub baseline: String,
    pub peers: Vec<String>,
    pub size_bytes: Vec<u64>,
    pub threads: Vec<u32>,
    pub region_llcs: u64,
    pub least_region_bytes: u64,
    pub most_warm_up_bytes: u64,
    pub warm_up_ms: u64,
    pub sample_ms: u64,
    pub pairs: u32,
}

crate::experiment::reads_defaults!("memcpy.toml");

pub const EXAMPLES: &str = "\
Examples:
  ntcopy bench memcpy --quick                            20 cells, about a minute
  ntcopy bench memcpy                                    all of them, about a quarter of an hour
  ntcopy bench memcpy --size 256MiB --source cold --destination cold --threads 1
  ntcopy bench memcpy --size 16MiB --modes ours,avx512-nt+t0,movdir64b+t0
  ntcopy bench memcpy --offset 0,15,33 --read-back none,all --modes ours

Hot: the same buffer in every call. Cold: the next one in a region of four times the last-level \
cache (--region). Where the destination is cold, mode stream says the region's size as the total, \
as a program does that streams.

Modes beside libc: libc-tuned (glibc with the threshold that CPUID's cache size asks for), libpmem2, \
llvm-libc and rte-memcpy (if they are there: scripts/copy-peers.sh), ours, stream (ours, in pieces of 64 KiB), and every path of the library by its \
name. libc, as it is, is what all are compared with.";

/// What a user asks for; what is left open comes from [`defaults`].
#[derive(clap::Args, Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// Ways to compare with libc
    #[arg(long, value_name = "LIST", value_delimiter = ',', hide_possible_values = true,
          value_parser = Task::copy(Heat::Cold, Heat::Cold).way_names())]
    pub modes: Vec<String>,
    /// Bytes of a call
    #[arg(long = "size", value_name = "LIST", value_delimiter = ',', value_parser = size)]
    pub size_bytes: Vec<u64>,
    /// Where the source was before a call [default: both]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub source: Vec<Heat>,
    /// Where the destination was before a call [default: both]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub destination: Vec<Heat>,
    /// How far into a cache line sources begin that destinations begin with [default: 0]
    #[arg(long = "offset", value_name = "LIST", value_delimiter = ',', value_parser = size)]
    pub offset_bytes: Vec<u64>,
    /// What is read of a destination, once it is copied [default: none]
    #[arg(long, value_name = "LIST", value_delimiter = ',',
          value_parser = one_of(&[ReadBack::None, ReadBack::All], |what| what.as_str()))]
    pub read_back: Vec<ReadBack>,
    /// Threads that copy at once, each on its CPU, as far as there are CPUs
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub threads: Vec<u32>,
    /// Memory that a cold side walks through [default: four times the last-level cache]
    #[arg(long = "region", value_name = "SIZE", value_parser = size)]
    pub region_bytes: Option<u64>,
    /// The corrected threshold of libc-tuned [default: three quarters of CPUID's level-3 cache]
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
    const EXPERIMENT: ExperimentKind = ExperimentKind::Memcpy;

    fn plan(&self, resources: &Resources) -> Result<BulkPlan, PlanError> {
        let own = |libc: &Libc| libc.memcpy_nt_threshold_bytes;
        plan(self, resources, tuned_threshold_bytes(self.tuned_threshold_bytes, own))
    }

    fn named(&self) -> &[String] {
        &self.modes
    }
}

/// Makes the plan. `tuned_threshold_bytes` is the C library's corrected threshold, where there is
/// one.
fn plan(
    settings: &Settings,
    resources: &Resources,
    tuned_threshold_bytes: Option<u64>,
) -> Result<BulkPlan, PlanError> {
    let defaults = defaults(settings.quick);
    let sizes = or(&settings.size_bytes, &defaults.size_bytes);
    check_sizes(&sizes)?;
    let threads = threads(&settings.threads, &defaults.threads, resources)?;
    let any = Task::copy(Heat::Cold, Heat::Cold);
    let ways = ways(&defaults.baseline, &or(&settings.modes, &defaults.peers), any)?;
    let region = settings.region_bytes.unwrap_or_else(|| {
        (defaults.region_llcs * resources.llc_bytes).max(defaults.least_region_bytes)
    });
    if region == 0 {
        return Err(PlanError::zero("region"));
    }
    let mut plan = BulkPlan::new(ExperimentKind::Memcpy, ways, settings.pages, resources);
    plan.pairs = check_pairs(settings.pairs.unwrap_or(defaults.pairs))?;
    plan.sample = Duration::from_millis(defaults.sample_ms);
    plan.warm_up = Duration::from_millis(defaults.warm_up_ms);
    plan.cold_warm_up_bytes = resources.llc_bytes.min(defaults.most_warm_up_bytes).min(region);
    plan.tuned_threshold_bytes = tuned_threshold_bytes;
    let tasks = tasks(settings)?;
    for threads in threads {
        for task in tasks.iter().copied() {
            for size_bytes in sizes.iter().copied() {
                let slots = u64::from(threads) * size_bytes.next_multiple_of(LINE_BYTES);
                let cell = BulkCell::new(task, size_bytes, threads);
                let [source, destination] = sides(task, slots, region);
                plan.add(cell, source, destination, resources);
            }
        }
    }
    Ok(plan)
}

/// Every kind of copy that is asked for.
fn tasks(settings: &Settings) -> Result<Vec<Task>, PlanError> {
    if let Some(bytes) = settings.offset_bytes.iter().find(|bytes| **bytes >= PAGE_BYTES) {
        return Err(format!("--offset {}: less than a page of 4 KiB", Bytes(*bytes)).into());
    }
    let mut tasks = Vec::new();
    for read_back in or(&settings.read_back, &[ReadBack::None]) {
        for offset_bytes in or(&settings.offset_bytes, &[0]) {
            for source in or(&settings.source, &[Heat::Hot, Heat::Cold]) {
                for destination in or(&settings.destination, &[Heat::Hot, Heat::Cold]) {
                    let offset_bytes = offset_bytes as u32;
                    tasks.push(Task::Copy { source, destination, offset_bytes, read_back });
                }
            }
        }
    }
    Ok(tasks)
}

/// The memory of source and destination, where hot ones take `slots` bytes.
fn sides(task: Task, slots: u64, region: u64) -> [u64; 2] {
    let Task::Copy { source, destination, offset_bytes, .. } = task else { return [0, 0] };
    let side = |heat| if heat == Heat::Hot { slots } else { slots.max(region) };
    let before = u64::from(offset_bytes).next_multiple_of(LINE_BYTES);
    [before + side(source), side(destination)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::bulk::plan::test_resources;
    use crate::experiments::bulk::task::Way;

    const GIB: u64 = 1 << 30;

    #[test]
    fn memcpy_takes_every_combination_that_the_issue_names() {
        let plan = plan(&Settings::default(), &test_resources(2, 64 * GIB), None).unwrap();
        assert_eq!(plan.cells.len(), 10 * 2 * 2 * 2);
        assert_eq!(plan.ways[0], Way::Libc);
        assert!(plan.cells.iter().all(|cell| cell.left_out.is_none()));
        // Two threads of 1 GiB each; the region, 4 x 32 MiB raised to 256 MiB, is less.
        assert_eq!((plan.source_bytes, plan.destination_bytes), (2 * GIB, 2 * GIB));
    }

    #[test]
    fn what_does_not_fit_the_memory_is_left_out_and_says_why() {
        let plan = plan(&Settings::default(), &test_resources(1, 4 * GIB), None).unwrap();
        let left_out: Vec<&BulkCell> = plan.cells.iter().filter(|c| c.left_out.is_some()).collect();
        assert!(left_out.len() == 4 && left_out.iter().all(|cell| cell.size_bytes == GIB));
        assert!(left_out[0].left_out.as_ref().unwrap().contains("4096 MiB"), "{left_out:?}");
        assert!(2 * (plan.source_bytes + plan.destination_bytes) <= 3 * GIB);
        assert!(plan.cells.iter().all(|cell| cell.threads == 1), "there is one CPU");
    }

    #[test]
    fn threads_that_were_asked_for_are_not_dropped_without_a_word() {
        let settings = Settings { threads: vec![2], ..Settings::default() };
        let error = plan(&settings, &test_resources(1, GIB), None).unwrap_err();
        assert_eq!(error.to_string(), "--threads 2: this process may run on 1 CPUs");
    }

    #[test]
    fn zeros_and_strangers_are_refused() {
        let refused =
            |settings| plan(&settings, &test_resources(2, GIB), None).unwrap_err().to_string();
        let settings = Settings::default;
        for (settings, words) in [
            (Settings { size_bytes: vec![0], ..settings() }, "--size 0"),
            (Settings { pairs: Some(4), ..settings() }, "at least 5"),
            (Settings { modes: vec!["memcopy".into()], ..settings() }, "--modes memcopy"),
            (Settings { region_bytes: Some(0), ..settings() }, "--region 0"),
            (Settings { offset_bytes: vec![4096], ..settings() }, "--offset 4 KiB: less than"),
        ] {
            let error = refused(settings);
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn offsets_and_reads_are_cells_of_their_own_and_have_the_memory() {
        let settings = Settings {
            size_bytes: vec![1 << 20],
            offset_bytes: vec![0, 15, 33],
            read_back: vec![ReadBack::None, ReadBack::All],
            threads: vec![1],
            source: vec![Heat::Hot],
            destination: vec![Heat::Hot],
            ..Default::default()
        };
        let plan = plan(&settings, &test_resources(1, GIB), None).unwrap();
        let of = |cell: &BulkCell| {
            let params = cell.params(&plan);
            let read_back = params.get("read_back").map(ToString::to_string);
            (params.get("offset_bytes").map(ToString::to_string), read_back)
        };
        let cells: Vec<_> = plan.cells.iter().map(of).collect();
        assert_eq!(cells.len(), 6);
        assert_eq!(cells[0], (None, None), "as in records from before there were any");
        assert_eq!(cells[5], (Some("33".into()), Some("\"all\"".into())));
        assert_eq!((plan.source_bytes, plan.destination_bytes), ((1 << 20) + 64, 1 << 20));
    }

    #[test]
    fn one_piece_is_no_stream_where_it_is_the_whole() {
        let settings = Settings { size_bytes: vec![4096, 1 << 20], ..Default::default() };
        let plan = plan(&settings, &test_resources(1, 8 * GIB), None).unwrap();
        let streams: Vec<&BulkCell> =
            plan.cells.iter().filter(|cell| cell.not_for(Way::Stream).is_none()).collect();
        assert_eq!(streams.len(), 4 + 2);
        let is_part =
            |cell: &BulkCell| matches!(cell.task, Task::Copy { destination: Heat::Cold, .. });
        assert!(streams.iter().all(|cell| cell.size_bytes == 1 << 20 || is_part(cell)));
    }
}
