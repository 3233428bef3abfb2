//! `ntcopy bench memcpy`, `memset`, `order` and `pages`: copies and fills in user space, on this kernel.

mod args;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use ntcopy::cpu::Cpu;
use ntcopy::libc::{Libc, corrected_threshold_bytes};
use ntcopy_bench::experiment::memcpy;
use ntcopy_bench::plan::bulk::{self, BulkPlan, BulkPlanError, Room};
use ntcopy_bench::run::{self, Failure, Stop};
use ntcopy_bench::sample::bulk::{Options, measure};
use ntcopy_bench::sample::{MeasureError, Progress};
use ntcopy_bench::{guest, machine};
use ntcopy_record::{Record, Unavailable};

pub use self::args::{Common, MemcpyArgs, MemsetArgs, OrderArgs};
use super::{go, not_a_clock, not_available};

/// The arguments that lead to the worker.
pub fn worker_args() -> Vec<String> {
    ["bench", "worker"].map(str::to_owned).into()
}

/// Runs `bench memcpy`.
pub fn memcpy(args: &MemcpyArgs) -> anyhow::Result<ExitCode> {
    let settings = args.settings();
    run(&args.common, memcpy::defaults().name.as_str(), &args.modes, &|room| {
        let own = |libc: &Libc| libc.memcpy_nt_threshold_bytes;
        let tuned = tuned_threshold_bytes(settings.tuned_threshold_bytes, own);
        bulk::plan_memcpy(&settings, room, tuned)
    })
}

/// Runs `bench memset`.
pub fn memset(args: &MemsetArgs) -> anyhow::Result<ExitCode> {
    let settings = args.settings();
    run(&args.common, "memset", &args.modes, &|room| {
        let own = |libc: &Libc| libc.memset_nt_threshold_bytes;
        let tuned = tuned_threshold_bytes(settings.tuned_threshold_bytes, own);
        bulk::plan_memset(&settings, room, tuned)
    })
}

/// Runs `bench order`.
pub fn order(args: &OrderArgs) -> anyhow::Result<ExitCode> {
    let settings = args.settings();
    run(&args.common, "order", &args.modes, &|room| bulk::plan_order(&settings, room))
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
    args: &Common,
    experiment: &str,
    named: &[String],
    plan: &dyn Fn(&Room) -> Result<BulkPlan, BulkPlanError>,
) -> anyhow::Result<ExitCode> {
    if args.list {
        super::list(experiment);
        return Ok(ExitCode::SUCCESS);
    }
    if let Err(error) = ntcopy::init() {
        eprintln!("ntcopy: {error}");
        return Ok(ExitCode::from(2));
    }
    let plan = match plan(&run::bulk::room()?) {
        Ok(plan) => plan,
        Err(error) => {
            eprintln!("ntcopy: {error}");
            return Ok(ExitCode::from(2));
        }
    };
    if plan.cells.iter().all(|cell| cell.left_out.is_some()) {
        let why = plan.cells.first().and_then(|cell| cell.left_out.clone());
        return Ok(not_available(&why.unwrap_or_else(|| "there is nothing to measure".to_owned())));
    }
    let not_a_timing = machine::not_a_timing();
    if let Some(why) = not_a_timing.as_ref().filter(|_| !args.allow_not_a_timing) {
        return Ok(not_a_clock(why));
    }
    say_what_is_left_out(&plan);
    let options = Options {
        out: args.out.clone(),
        command: guest::command_line(),
        not_a_timing,
        worker_args: worker_args(),
        patience: Duration::from_secs(args.patience),
        spoil: args.inject.is_some(),
    };
    let stop = Stop::on_signals().context("cannot watch for signals")?;
    let mut progress = Progress::on_stderr();
    let outcome = match measure(&plan, machine::describe(), &options, &stop, &mut progress) {
        Ok(outcome) => outcome,
        Err(MeasureError::Start(Failure::Limit(why))) => return Ok(not_available(&why)),
        Err(MeasureError::Start(Failure::Stopped(signal))) => return Ok(super::signalled(signal)),
        Err(error) => return Err(error.into()),
    };
    let record = Record::read(&outcome.place)?;
    go::say(&record, args.form(), &outcome.place)?;
    let is_asked = |line: &Unavailable| named.contains(&line.mode);
    Ok(go::judge(&record, outcome.stopped, &is_asked))
}

fn say_what_is_left_out(plan: &BulkPlan) {
    let left_out: Vec<&str> =
        plan.cells.iter().filter_map(|cell| cell.left_out.as_deref()).collect();
    if let Some(why) = left_out.first() {
        let (count, all) = (left_out.len(), plan.cells.len());
        eprintln!("note: {count} of {all} cells are left out; the first one {why}");
    }
}
