//! `ntcopy bench pages --form fork`: the fork() loop, in this kernel or in a booted one.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use ntcopy_bench::experiment::pages::{ForkMode, NAME};
use ntcopy_bench::guest::{self, Needs, Request};
use ntcopy_bench::machine;
use ntcopy_bench::plan::bulk::{self, ForkPlan, Room};
use ntcopy_bench::run::{self, Stop};
use ntcopy_bench::sample::bulk::Options;
use ntcopy_bench::sample::{self, Progress};
use ntcopy_kernel::{Kind, Machine};
use ntcopy_record::{Record, Unavailable};

use super::super::{go, not_a_clock, not_available, pin};
use super::PagesArgs;

/// Runs it.
pub fn run(args: &PagesArgs, modes: &[ForkMode]) -> anyhow::Result<ExitCode> {
    if args.common.list {
        super::super::list(NAME);
        return Ok(ExitCode::SUCCESS);
    }
    if args.common.kernel == "host" {
        on_this_kernel(args, modes)
    } else {
        in_a_booted_kernel(args, modes)
    }
}

/// The plan for a machine, or the exit code for settings that cannot be.
fn plan(args: &PagesArgs, modes: &[ForkMode], room: &Room) -> Result<ForkPlan, ExitCode> {
    bulk::plan_fork(&args.fork_settings(modes.to_vec()), room).map_err(|error| {
        eprintln!("ntcopy: {error}");
        ExitCode::from(2)
    })
}

fn on_this_kernel(args: &PagesArgs, modes: &[ForkMode]) -> anyhow::Result<ExitCode> {
    let common = &args.common;
    let plan = match plan(args, modes, &run::bulk::room()?) {
        Ok(plan) => plan,
        Err(code) => return Ok(code),
    };
    let not_a_timing = machine::not_a_timing();
    if let Some(why) = not_a_timing.as_ref().filter(|_| !common.allow_not_a_timing) {
        return Ok(not_a_clock(why));
    }
    let options = Options {
        out: common.out.clone(),
        command: guest::command_line(),
        not_a_timing,
        worker_args: Vec::new(),
        patience: Duration::from_secs(common.patience),
        spoil: common.inject.is_some(),
    };
    let stop = Stop::on_signals().context("cannot watch for signals")?;
    let mut progress = if common.measure_only { Progress::none() } else { Progress::on_stderr() };
    let machine = machine::describe();
    let outcome = sample::fork::measure(&plan, machine, &options, &stop, &mut progress)?;
    conclude(args, modes, &outcome.place, outcome.stopped)
}

fn in_a_booted_kernel(args: &PagesArgs, modes: &[ForkMode]) -> anyhow::Result<ExitCode> {
    let kernel = match Kind::parse(&args.common.kernel) {
        Ok(kernel) => kernel,
        Err(error) => return Ok(ExitCode::from(go::failed(error))),
    };
    if kernel.machine() == Machine::Qemu {
        return Ok(not_available(&format!(
            "{} keeps pages of 4 KiB temporal whatever it is told, so there is nothing to compare: \
             --kernel um",
            kernel.name()
        )));
    }
    let inside = Room { cpus: vec![0], available_bytes: u64::MAX, llc_bytes: 0 };
    let plan = match plan(args, modes, &inside) {
        Ok(plan) => plan,
        Err(code) => return Ok(code),
    };
    let place = go::place(&args.common, NAME)?;
    let request = Request {
        kernel,
        kernel_cpus: 1,
        pin: pin(&args.common, true)?,
        needs: Needs::of_forks(&plan),
        place: place.clone(),
        args: std::env::args_os().skip(1).collect(),
        command: guest::command_line(),
    };
    let (code, stopped) = go::measured(&request);
    go::judged(&place, code, || conclude(args, modes, &place, stopped))
}

/// Reads the record back, prints what it says, and gives the exit code.
fn conclude(
    args: &PagesArgs,
    modes: &[ForkMode],
    place: &Path,
    stopped: Option<i32>,
) -> anyhow::Result<ExitCode> {
    let record = Record::read(place)?;
    if !args.common.measure_only {
        go::say(&record, args.common.form(), place)?;
    }
    let named = |mode: &str| modes.iter().any(|asked| asked.as_str() == mode);
    let is_asked = |line: &Unavailable| named(&line.mode);
    Ok(go::judge(&record, stopped, &is_asked))
}
