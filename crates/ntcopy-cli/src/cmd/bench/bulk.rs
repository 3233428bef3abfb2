//! `ntcopy bench memcpy`, `memset`, `order` and `pages`: copies and fills in user space, on this kernel.

use std::process::ExitCode;

use ntcopy_bench::c_library::{Libc, corrected_threshold_bytes};
use ntcopy_bench::experiments::bulk::plan::{BulkPlan, Resources};
use ntcopy_bench::experiments::bulk::{memcpy, memset, order, run};
use ntcopy_bench::plan::PlanError;
use ntcopy_record::ExperimentKind;

use super::args::Common;
use super::launch::Runner;
use crate::cmd::{not_available, usage};

pub const MEMCPY_EXAMPLES: &str = "\
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

pub const MEMSET_EXAMPLES: &str = "\
Examples:
  ntcopy bench memset --quick
  ntcopy bench memset --size 512MiB --modes x86-64-movnt,clzero,ours
  ntcopy bench memset --value 165                        a value that is not zero
  ntcopy bench memset --modes libc-tuned --libc-threshold 4MiB   glibc with another threshold

Every call fills the same memory, touched before. Functions that `perf bench mem memset` has \
carry its names; libc is what all are compared with.";

pub const ORDER_EXAMPLES: &str = "\
Examples:
  ntcopy bench order --quick
  ntcopy bench order --side 4096,4097 --task write       a power of two, and one more

A square matrix of 8-byte numbers is summed, written and copied: row by row, and column by \
column; with normal stores, and with MOVNTI.";

pub fn memcpy(common: &Common, settings: &memcpy::Settings) -> anyhow::Result<ExitCode> {
    run(common, &ExperimentKind::Memcpy, &settings.modes, &|resources| {
        let own = |libc: &Libc| libc.memcpy_nt_threshold_bytes;
        let tuned = tuned_threshold_bytes(settings.tuned_threshold_bytes, own);
        memcpy::plan(settings, resources, tuned)
    })
}

pub fn memset(common: &Common, settings: &memset::Settings) -> anyhow::Result<ExitCode> {
    run(common, &ExperimentKind::Memset, &settings.modes, &|resources| {
        let own = |libc: &Libc| libc.memset_nt_threshold_bytes;
        let tuned = tuned_threshold_bytes(settings.tuned_threshold_bytes, own);
        memset::plan(settings, resources, tuned)
    })
}

pub fn order(common: &Common, settings: &order::Settings) -> anyhow::Result<ExitCode> {
    run(common, &ExperimentKind::Order, &settings.modes, &|resources| {
        order::plan(settings, resources)
    })
}

/// What was asked for, or what CPUID's cache asks glibc's threshold to be; none where there is no
/// such threshold.
fn tuned_threshold_bytes(asked: Option<u64>, own: fn(&Libc) -> Option<u64>) -> Option<u64> {
    let libc = Libc::detect();
    let from_cpuid = || ntcopy_bench::cpu::detect().l3_bytes().map(corrected_threshold_bytes);
    asked.or_else(from_cpuid).filter(|bytes| *bytes > 0 && own(&libc).is_some())
}

/// Runs what is measured by a worker: plan, measure, say. `named` are the ways that were asked for.
pub fn run(
    common: &Common,
    experiment: &ExperimentKind,
    named: &[String],
    plan: &dyn Fn(&Resources) -> Result<BulkPlan, PlanError>,
) -> anyhow::Result<ExitCode> {
    if common.list {
        super::list(experiment);
        return Ok(ExitCode::SUCCESS);
    }
    if common.place.kernel != "host" {
        return Err(usage(format!(
            "--kernel {}: copies and fills are made in user space, where no other kernel changes \
             anything; leave it out",
            common.place.kernel
        )));
    }
    ntcopy::init().map_err(usage)?;
    let plan = plan(&run::resources()?).map_err(usage)?;
    if plan.cells.iter().all(|cell| cell.left_out.is_some()) {
        let why = plan.cells.first().and_then(|cell| cell.left_out.clone());
        return Err(not_available(why.unwrap_or_else(|| "there is nothing to measure".to_owned())));
    }
    let mut here = Runner::from(common);
    here.options.worker_args = super::process_args("worker");
    here.measure(&plan, &super::names(named))
}
