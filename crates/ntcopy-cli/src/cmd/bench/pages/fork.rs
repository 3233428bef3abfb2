//! `ntcopy bench pages --form fork`: the fork() loop, in this kernel or in a booted one.

use std::process::ExitCode;

use ntcopy_bench::experiments::pages::fork::{self, ForkMode, ForkPlan};
use ntcopy_bench::guest::{self, Bootable as _, Request};
use ntcopy_bench::plan::bulk::Room;
use ntcopy_bench::run;
use ntcopy_kernel::{Kind, Machine};
use ntcopy_record::{ExperimentKind, Unavailable};

use super::super::args::Common;
use super::super::boot;
use super::super::launch::{self, InThisKernel};
use super::super::{not_available, on_one_cpu};
use super::PagesArgs;

pub fn run(common: &Common, args: &PagesArgs, modes: &[ForkMode]) -> anyhow::Result<ExitCode> {
    if common.list {
        super::super::list(&ExperimentKind::Pages);
        return Ok(ExitCode::SUCCESS);
    }
    if common.kernel == "host" {
        on_this_kernel(common, args, modes)
    } else {
        in_a_booted_kernel(common, args, modes)
    }
}

/// The plan for a machine, or the exit code for settings that cannot be.
fn plan(
    common: &Common,
    args: &PagesArgs,
    modes: &[ForkMode],
    room: &Room,
) -> Result<ForkPlan, ExitCode> {
    fork::plan(&args.fork_settings(common, modes.to_vec()), room).map_err(|error| {
        eprintln!("ntcopy: {error}");
        ExitCode::from(2)
    })
}

fn on_this_kernel(
    common: &Common,
    args: &PagesArgs,
    modes: &[ForkMode],
) -> anyhow::Result<ExitCode> {
    match plan(common, args, modes, &run::bulk::room()?) {
        Ok(plan) => InThisKernel::from(common).measure(&plan, &|line| names(modes, line)),
        Err(code) => Ok(code),
    }
}

fn in_a_booted_kernel(
    common: &Common,
    args: &PagesArgs,
    modes: &[ForkMode],
) -> anyhow::Result<ExitCode> {
    let kernel = match Kind::parse(&common.kernel) {
        Ok(kernel) => kernel,
        Err(error) => return Ok(ExitCode::from(boot::failed(error))),
    };
    if kernel.machine() == Machine::Qemu {
        return Ok(not_available(&format!(
            "{} keeps pages of 4 KiB temporal whatever is set, so there is nothing to compare: \
             --kernel um",
            kernel.name()
        )));
    }
    let inside = Room { cpus: vec![0], available_bytes: u64::MAX, llc_bytes: 0 };
    let plan = match plan(common, args, modes, &inside) {
        Ok(plan) => plan,
        Err(code) => return Ok(code),
    };
    let place = boot::record_dir(common.out.as_deref(), &ExperimentKind::Pages)?;
    let request = Request {
        kernel,
        kernel_cpus: 1,
        host_cpus: on_one_cpu()?,
        needs: plan.needs(),
        place: place.clone(),
        writable: Vec::new(),
        args: std::env::args_os().skip(1).collect(),
        command: guest::command_line(),
    };
    let (code, stopped) = boot::measured(&request);
    let print = common.into();
    boot::judged(&place, code, || {
        launch::conclude(print, &place, stopped, &|line| names(modes, line))
    })
}

fn names(modes: &[ForkMode], line: &Unavailable) -> bool {
    modes.iter().any(|mode| mode.as_str() == line.mode)
}
