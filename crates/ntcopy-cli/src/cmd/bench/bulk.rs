//! `ntcopy bench memcpy`, `memset`, `order` and `pages`: copies and fills in user space, on this kernel.

mod args;

use std::process::ExitCode;

use ntcopy::cpu::Cpu;
use ntcopy::libc::{Libc, corrected_threshold_bytes};
use ntcopy_bench::experiments::{memcpy, memset, order};
use ntcopy_bench::plan::PlanError;
use ntcopy_bench::plan::bulk::{BulkPlan, Room};
use ntcopy_bench::run;
use ntcopy_record::{ExperimentKind, Unavailable};

pub use self::args::{MemcpyArgs, MemsetArgs, OrderArgs};
use super::args::Common;
use super::launch::{InThisKernel, usage};
use super::not_available;

/// The arguments that lead to the worker.
pub fn worker_args() -> Vec<String> {
    ["bench", "worker"].map(str::to_owned).into()
}

/// Runs `bench memcpy`.
pub fn memcpy(common: &Common, args: &MemcpyArgs) -> anyhow::Result<ExitCode> {
    let settings = args.settings(common);
    run(common, &ExperimentKind::Memcpy, &args.modes, &|room| {
        let own = |libc: &Libc| libc.memcpy_nt_threshold_bytes;
        let tuned = tuned_threshold_bytes(settings.tuned_threshold_bytes, own);
        memcpy::plan(&settings, room, tuned)
    })
}

/// Runs `bench memset`.
pub fn memset(common: &Common, args: &MemsetArgs) -> anyhow::Result<ExitCode> {
    let settings = args.settings(common);
    run(common, &ExperimentKind::Memset, &args.modes, &|room| {
        let own = |libc: &Libc| libc.memset_nt_threshold_bytes;
        let tuned = tuned_threshold_bytes(settings.tuned_threshold_bytes, own);
        memset::plan(&settings, room, tuned)
    })
}

/// Runs `bench order`.
pub fn order(common: &Common, args: &OrderArgs) -> anyhow::Result<ExitCode> {
    let settings = args.settings(common);
    run(common, &ExperimentKind::Order, &args.modes, &|room| order::plan(&settings, room))
}

/// What was asked for, or what CPUID's cache asks glibc's threshold to be; none where there is no
/// such threshold.
fn tuned_threshold_bytes(asked: Option<u64>, own: fn(&Libc) -> Option<u64>) -> Option<u64> {
    let libc = Libc::detect();
    let from_cpuid = || Cpu::detect().l3_bytes().map(corrected_threshold_bytes);
    asked.or_else(from_cpuid).filter(|bytes| *bytes > 0 && own(&libc).is_some())
}

/// Runs what is measured by a worker: plan, measure, say. `named` are the ways that were asked for.
pub fn run(
    common: &Common,
    experiment: &ExperimentKind,
    named: &[String],
    plan: &dyn Fn(&Room) -> Result<BulkPlan, PlanError>,
) -> anyhow::Result<ExitCode> {
    if common.list {
        super::list(experiment);
        return Ok(ExitCode::SUCCESS);
    }
    if common.kernel != "host" {
        return Ok(usage(format!(
            "--kernel {}: copies and fills are made in user space, where no other kernel changes \
             anything; leave it out",
            common.kernel
        )));
    }
    if let Err(error) = ntcopy::init() {
        return Ok(usage(error));
    }
    let plan = match plan(&run::bulk::room()?) {
        Ok(plan) => plan,
        Err(error) => return Ok(usage(error)),
    };
    if plan.cells.iter().all(|cell| cell.left_out.is_some()) {
        let why = plan.cells.first().and_then(|cell| cell.left_out.clone());
        return Ok(not_available(&why.unwrap_or_else(|| "there is nothing to measure".to_owned())));
    }
    let here = InThisKernel { worker_args: worker_args(), ..common.into() };
    here.measure(&plan, &|line: &Unavailable| named.contains(&line.mode))
}
