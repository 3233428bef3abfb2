//! Experiments with processes of their own: from a plan to a record, in this kernel or in a booted
//! one.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use ntcopy_bench::guest::{self, Needs, Request};
use ntcopy_bench::machine;
use ntcopy_bench::plan::{Cpus, PlanError};
use ntcopy_bench::run::{self, Failure, Stop};
use ntcopy_bench::sample::bulk::Options;
use ntcopy_bench::sample::{MeasureError, Outcome, Progress};
use ntcopy_kernel::{Kind, Machine};
use ntcopy_record::{Machine as MachineFacts, Record, Unavailable};

use super::against::Boots;
use super::args::Common;
use super::{go, not_a_clock, not_available, pin, signalled};

/// Measures a plan, and writes its record.
pub type Measure<P> =
    fn(&P, MachineFacts, &Options, &Stop, &mut Progress) -> Result<Outcome, MeasureError>;

/// What is to be measured.
pub struct Whole<'a, P> {
    /// What every experiment takes.
    pub common: &'a Common,
    /// The experiment's name.
    pub name: &'static str,
    /// CPUs of a booted kernel.
    pub kernel_cpus: u32,
    /// Whether all of a booted kernel is put on one CPU of the host, if --pin does not say.
    pub on_one_cpu: bool,
    /// The arguments of this program that lead to the other process, if it is this program.
    pub worker_args: Vec<String>,
    /// Two kernels that are booted in turns instead of one, if that is asked for.
    pub boots: Option<Boots<'a>>,
    /// Makes the plan for a kernel with these CPUs.
    pub plan: &'a dyn Fn(&Cpus) -> Result<P, PlanError>,
    /// What the plan needs of a kernel that is booted for it.
    pub needs: fn(&P) -> Needs,
    /// Measures it.
    pub measure: Measure<P>,
    /// Whether somebody asked for what was not to be had.
    pub is_asked: &'a dyn Fn(&Unavailable) -> bool,
}

impl<P> Whole<'_, P> {
    /// Runs it.
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        if self.common.list {
            super::list(self.name);
            return Ok(ExitCode::SUCCESS);
        }
        // The inside of a boot measures what it is told, whatever that is compared with.
        let refused = self.boots.as_ref().filter(|_| !self.common.measure_only);
        if let Some(code) = refused.and_then(Boots::refused) {
            return Ok(code);
        }
        if self.common.kernel == "host" { self.on_this_kernel() } else { self.in_a_booted_kernel() }
    }

    /// The plan, or the exit code for settings that cannot be.
    fn planned(&self, cpus: &Cpus) -> Result<P, ExitCode> {
        (self.plan)(cpus).map_err(|error| {
            eprintln!("ntcopy: {error}");
            ExitCode::from(2)
        })
    }

    fn on_this_kernel(&self) -> anyhow::Result<ExitCode> {
        let common = self.common;
        let plan = match self.planned(&run::cpus()?) {
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
            worker_args: self.worker_args.clone(),
            patience: Duration::from_secs(common.patience),
            spoil: common.inject.is_some(),
        };
        let stop = Stop::on_signals().context("cannot watch for signals")?;
        let mut progress =
            if common.measure_only { Progress::none() } else { Progress::on_stderr() };
        let machine = machine::describe();
        match (self.measure)(&plan, machine, &options, &stop, &mut progress) {
            Ok(outcome) => self.conclude(&outcome.place, outcome.stopped),
            Err(MeasureError::Start(Failure::Limit(why))) => Ok(not_available(&why)),
            Err(MeasureError::Start(Failure::Stopped(signal))) => Ok(signalled(signal)),
            Err(error) => Err(error.into()),
        }
    }

    fn in_a_booted_kernel(&self) -> anyhow::Result<ExitCode> {
        let kernel = match Kind::parse(&self.common.kernel) {
            Ok(kernel) => kernel,
            Err(error) => return Ok(ExitCode::from(go::failed(error))),
        };
        if kernel.machine() == Machine::Qemu && !self.common.allow_not_a_timing {
            return Ok(not_available(&format!(
                "{} runs in an emulator, and what is measured there is not a timing: --kernel um, \
                 or --allow-not-a-timing to see the experiment run",
                kernel.name()
            )));
        }
        if let Some(code) = self.boots.as_ref().and_then(|_| Boots::refused_kernel(kernel)) {
            return Ok(code);
        }
        let inside = Cpus { allowed: (0..self.kernel_cpus).collect(), sharing_l2: None };
        let plan = match self.planned(&inside) {
            Ok(plan) => plan,
            Err(code) => return Ok(code),
        };
        let place = go::place(self.common, self.name)?;
        let request = Request {
            kernel,
            kernel_cpus: self.kernel_cpus,
            pin: pin(self.common, self.on_one_cpu)?,
            needs: (self.needs)(&plan),
            place: place.clone(),
            args: std::env::args_os().skip(1).collect(),
            command: guest::command_line(),
        };
        let (code, stopped) = match &self.boots {
            Some(boots) => boots.measured(&request)?,
            None => go::measured(&request),
        };
        go::judged(&place, code, || self.conclude(&place, stopped))
    }

    /// Reads the record back, prints what it says, and gives the exit code.
    fn conclude(&self, place: &Path, stopped: Option<i32>) -> anyhow::Result<ExitCode> {
        let record = Record::read(place)?;
        if !self.common.measure_only {
            go::say(&record, self.common.form(), place)?;
        }
        Ok(go::judge(&record, stopped, self.is_asked))
    }
}
