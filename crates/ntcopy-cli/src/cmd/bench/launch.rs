//! Measures a plan in this kernel or in a booted one, and prints what the record says.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use ntcopy_bench::alone::Alone;
use ntcopy_bench::experiments::bulk::pages::fork::ForkMode;
use ntcopy_bench::guest::blocks::{self, BlocksError};
use ntcopy_bench::guest::{self, GuestError, Request};
use ntcopy_bench::machine;
use ntcopy_bench::plan::{Cpus, PlanError};
use ntcopy_bench::run::{self, Stop};
use ntcopy_bench::sample::{
    self, Bootable, Experiment, MeasureError, Needs, Options, Outcome, Progress,
};
use ntcopy_judge::{Judged, judge};
use ntcopy_kernel::Kind;
use ntcopy_kernel::boot::HostCpus;
use ntcopy_record::{ExperimentKind, FILE_NAME, Record, Sends, Unavailable, beside};

use super::against::KernelPair;
use super::args::{Common, PATIENCE, Place};
use super::boot::{self, measured, record_dir};
use super::{not_a_clock, on_one_cpu};
use crate::cmd::{
    NOT_AVAILABLE, NOT_REACHED, UNRESOLVED, WRONG_BYTE, not_available, report, signal_code,
    unmeasured, usage,
};

/// Whether a mode that is not available was asked for by name.
pub type IsAsked<'a> = &'a dyn Fn(&Unavailable) -> bool;

/// CPUs of a booted kernel, and where they are on the host.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum KernelCpus {
    /// One, on one CPU of the host.
    OnePinned,
    /// This number, where the host puts them.
    Free(u32),
    /// Two, each on one of the host's with an L2 of its own.
    OwnCaches,
}

impl KernelCpus {
    /// The last if it is asked for, or else these.
    pub fn or_own_caches(self, is_asked: bool) -> KernelCpus {
        if is_asked { KernelCpus::OwnCaches } else { self }
    }

    /// Their number, and the host's CPUs.
    fn on_host(self, kernel: Kind) -> anyhow::Result<(u32, HostCpus)> {
        Ok(match self {
            KernelCpus::OnePinned => (1, on_one_cpu()?),
            KernelCpus::Free(count) => (count, HostCpus::Any),
            KernelCpus::OwnCaches => (2, HostCpus::with_own_caches(2, kernel)?),
        })
    }
}

/// An experiment that is measured in this kernel or in a booted one.
pub struct Launch<'a, P> {
    pub common: &'a Common,
    pub experiment: ExperimentKind,
    pub kernel_cpus: KernelCpus,
    /// The arguments of this program that lead to the other process, if it is this program.
    pub worker_args: Vec<String>,
    /// Two kernels that are booted in turns instead of one, if that is asked for.
    pub against: Option<KernelPair<'a>>,
    /// Makes the plan for a kernel with these CPUs.
    pub plan: &'a dyn Fn(&Cpus) -> Result<P, PlanError>,
    /// Whether a mode that is not available was asked for by name.
    pub is_asked: IsAsked<'a>,
}

impl<P: Bootable> Launch<'_, P> {
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        if self.common.list {
            super::list(&self.experiment);
            return Ok(ExitCode::SUCCESS);
        }
        // Inside a boot the plan is measured as it is; the comparison is made outside.
        if let Some(kernels) = self.against.as_ref().filter(|_| !self.common.place.measure_only) {
            kernels.check()?;
        }
        if self.common.place.kernel != "host" {
            return self.in_a_booted_kernel();
        }
        if self.kernel_cpus == KernelCpus::OwnCaches && !self.common.place.measure_only {
            return Err(usage("--own-caches is for a booted kernel: --kernel um"));
        }
        let plan = (self.plan)(&run::cpus()?).map_err(usage)?;
        self.runner().measure(&plan, self.is_asked)
    }

    fn runner(&self) -> Runner {
        let mut runner = Runner::from(self.common);
        runner.options.worker_args.clone_from(&self.worker_args);
        // Where two kernels are compared each boot is one pair, so there is no budget for one.
        runner.options.budget = runner.options.budget.filter(|_| self.against.is_none());
        runner
    }

    fn in_a_booted_kernel(&self) -> anyhow::Result<ExitCode> {
        let runner = self.runner();
        let kernel = runner.kernel(NO_TIMING)?;
        if self.against.is_some() {
            KernelPair::check_kernel(kernel)?;
        }
        let (kernel_cpus, host_cpus) = self.kernel_cpus.on_host(kernel)?;
        let inside = Cpus { allowed: (0..kernel_cpus).collect(), sharing_l2: None };
        let plan = (self.plan)(&inside).map_err(usage)?;
        let needs = plan.needs().with_budget(runner.options.budget);
        let mut request = runner.request(kernel, needs, &self.experiment)?;
        (request.kernel_cpus, request.host_cpus) = (kernel_cpus, host_cpus);
        say_caveats(plan.caveats());
        runner.boot(&request, self.against.as_ref(), self.is_asked)
    }
}

/// Why an emulator's kernel is refused.
pub const NO_TIMING: &str = "and what is measured there is not a timing";

/// Measures a plan, here or in a booted kernel.
pub struct Runner {
    pub place: Place,
    pub options: Options,
    /// The user's own bar for a program's turns: the exit code says whether it is reached.
    pub at_least: Option<f64>,
}

impl From<&Place> for Runner {
    fn from(place: &Place) -> Runner {
        let options = Options {
            out: place.out.clone(),
            command: guest::command_line(),
            not_a_timing: machine::not_a_timing(),
            worker_args: Vec::new(),
            patience: Duration::ZERO,
            budget: None,
            spoil: false,
        };
        Runner { place: place.clone(), options, at_least: None }
    }
}

impl From<&Common> for Runner {
    fn from(common: &Common) -> Runner {
        let mut runner = Runner::from(&common.place);
        runner.options.patience = Duration::from_secs(common.patience);
        runner.options.budget = common.extent.budget();
        runner.options.spoil = common.inject.is_some();
        runner
    }
}

impl Runner {
    /// Measures in this kernel, into this folder.
    pub fn here(out: PathBuf) -> Runner {
        let place = Place {
            kernel: "host".to_owned(),
            out: Some(out),
            json: false,
            allow_not_a_timing: false,
            measure_only: false,
        };
        let mut runner = Runner::from(&place);
        runner.options.patience = PATIENCE;
        runner
    }

    /// Says who else measures on this machine; nothing inside a kernel that this program booted,
    /// where nobody is seen, and whoever booted it looks.
    fn alone(&self) -> Option<Alone> {
        (!self.place.measure_only).then(|| {
            let alone = Alone::claim();
            if let Some(who) = beside(&alone.others()) {
                eprintln!("note: {who}: neither record will count; measure one after the other");
            }
            alone
        })
    }

    /// Measures in this kernel, and says what the record shows.
    pub fn measure(
        &self,
        plan: &impl Experiment,
        is_asked: IsAsked<'_>,
    ) -> anyhow::Result<ExitCode> {
        let stop = Stop::on_signals().context("cannot watch for signals")?;
        let outcome = self.record(plan, &stop)?;
        self.conclude(&outcome.place, outcome.stopped, is_asked)
    }

    /// Measures in this kernel, and notes in the record who else measured.
    pub fn record(&self, plan: &impl Experiment, stop: &Stop) -> anyhow::Result<Outcome> {
        let options = &self.options;
        if let Some(why) = options.not_a_timing.as_ref().filter(|_| !self.place.allow_not_a_timing)
        {
            return Err(not_a_clock(why));
        }
        let is_silent = self.place.measure_only;
        let alone = self.alone();
        let progress = &mut if is_silent { Progress::none() } else { Progress::on_stderr() };
        if !is_silent {
            say_caveats(plan.caveats());
        }
        let machine = machine::describe();
        let measured = plan.measure(sample::Context { machine, options, stop, progress });
        let outcome = measured.map_err(|error| match error {
            MeasureError::Start(failure) => unmeasured(failure),
            error => error.into(),
        })?;
        note_beside(&outcome.place, alone)?;
        Ok(outcome)
    }

    /// To run again in a booted kernel of one CPU, on one of the host's.
    pub fn request(
        &self,
        kernel: Kind,
        needs: Needs,
        experiment: &ExperimentKind,
    ) -> anyhow::Result<Request> {
        Ok(Request {
            kernel,
            kernel_cpus: 1,
            host_cpus: on_one_cpu()?,
            needs,
            place: record_dir(self.place.out.as_deref(), experiment)?,
            writable: Vec::new(),
            scratch: Vec::new(),
            args: std::env::args_os().skip(1).collect(),
            command: guest::command_line(),
        })
    }

    /// The kernel to boot, unless it is an emulator's, for the reason `why`.
    pub fn kernel(&self, why: &str) -> anyhow::Result<Kind> {
        let kernel = Kind::parse(&self.place.kernel)?;
        if kernel.is_emulated() && !self.place.allow_not_a_timing {
            let name = kernel.name();
            return Err(not_available(format!("{name} runs in an emulator, {why}: --kernel um")));
        }
        Ok(kernel)
    }

    /// Measures in a booted kernel, in which this program runs again, or in two that are booted in
    /// turns, and says what the record shows.
    pub fn boot(
        &self,
        request: &Request,
        against: Option<&KernelPair<'_>>,
        is_asked: IsAsked<'_>,
    ) -> anyhow::Result<ExitCode> {
        let alone = self.alone();
        let (code, stopped) = match against {
            Some(kernels) => kernels.measured(request)?,
            None => measured(request),
        };
        self.booted(request, alone, code, stopped, is_asked)
    }

    /// Measures pairs, each in a kernel that is booted for it, and says what the record shows.
    pub fn boot_blocks(
        &self,
        request: &Request,
        pairs: u32,
        block: fn(u32) -> [OsString; 2],
    ) -> anyhow::Result<ExitCode> {
        let alone = self.alone();
        let stop = &Stop::on_signals().context("cannot watch for signals")?;
        let progress = &mut Progress::on_stderr();
        let options = &Options { out: Some(request.place.clone()), ..self.options.clone() };
        let machine = machine::describe();
        let context = sample::Context { machine, options, stop, progress };
        let (code, stopped) = outcome_of(blocks::measure(request, context, pairs, block))?;
        self.booted(request, alone, code, stopped, &|_| false)
    }

    fn booted(
        &self,
        request: &Request,
        alone: Option<Alone>,
        code: u8,
        stopped: Option<i32>,
        is_asked: IsAsked<'_>,
    ) -> anyhow::Result<ExitCode> {
        // Without a record the inside, or the error, has said why.
        if !request.place.join(FILE_NAME).exists() {
            return Ok(ExitCode::from(code));
        }
        note_beside(&request.place, alone)?;
        let judged = self.conclude(&request.place, stopped, is_asked)?;
        // A kernel that fell over must not pass for a success.
        Ok(if judged == ExitCode::SUCCESS && code != 0 { ExitCode::from(code) } else { judged })
    }

    /// Reads the record back, prints what it says, and gives the exit code.
    fn conclude(
        &self,
        place: &Path,
        stopped: Option<i32>,
        is_asked: IsAsked<'_>,
    ) -> anyhow::Result<ExitCode> {
        let asked = &self.place;
        let record = Record::read(place)?;
        let judged = judge(&record);
        // Inside a booted kernel it is for the program that booted it to say.
        if !asked.measure_only {
            say(&judged, asked, place);
        }
        if let Some(line) = lacks_hints(&record).filter(|_| !asked.measure_only) {
            // Of sends the reason names the kernel that has them.
            let is_told = record.machine.kernel_kind != "host"
                || record.header.sends(&line.mode) == Sends::Hinted;
            let other = if is_told { "" } else { "; --kernel um measures in a kernel that has it" };
            eprintln!("ntcopy: no hinted mode could be measured: {}{other}", line.why);
        }
        let code = exit_code(&record, stopped, is_asked);
        match self.at_least {
            Some(bar) if code == ExitCode::SUCCESS => Ok(reached(&judged, bar)),
            _ => Ok(code),
        }
    }
}

fn note_beside(place: &Path, alone: Option<Alone>) -> anyhow::Result<()> {
    let others = alone.map(|alone| alone.others()).filter(|others| !others.is_empty());
    others.map_or(Ok(()), |others| Ok(sample::note_beside(place, others)?))
}

/// The exit code of boots, and the signal that ended them.
fn outcome_of(
    measured: Result<blocks::Measured, BlocksError>,
) -> anyhow::Result<(u8, Option<i32>)> {
    match measured {
        Ok(done) => Ok((boot::complained(0, &done.complaints), done.outcome.stopped)),
        Err(BlocksError::Guest(GuestError::Interrupted(signal))) => Ok((1, Some(signal))),
        Err(BlocksError::Guest(error)) => Ok((boot::failed(error), None)),
        Err(BlocksError::NothingMeasured(code)) => Ok((code, None)),
        Err(BlocksError::Measure(MeasureError::Start(failure))) => Err(unmeasured(failure)),
        Err(error) => Err(error.into()),
    }
}

/// Says what a user of the measured modes has to know.
fn say_caveats(caveats: Vec<String>) {
    caveats.iter().for_each(|caveat| eprintln!("note: {caveat}"));
}

/// Why no hinted mode was measured, if some were to be.
fn lacks_hints(record: &Record) -> Option<&Unavailable> {
    // Pages that the kernel copies have a setting in the place of a hint.
    let of_pages = [ForkMode::Nt, ForkMode::NtCopy].map(ForkMode::as_str);
    let is_hinted =
        |mode: &str| record.header.sends(mode) == Sends::Hinted || of_pages.contains(&mode);
    let missing =
        record.unavailable.iter().find(|line| line.cell.is_none() && is_hinted(&line.mode));
    let is_measured = record.samples.iter().any(|sample| is_hinted(&sample.mode));
    missing.filter(|_| !is_measured)
}

/// Prints what a record says, and where it is.
fn say(record: &Judged, asked: &Place, place: &Path) {
    if asked.json {
        println!("{:#}", ntcopy_report::json::object(record));
        complain(record);
    } else {
        print!("{}", report::text(record));
    }
    eprintln!("record: {}", place.display());
}

/// Says what failed, where no table does.
pub fn complain(record: &Judged) {
    for error in &record.errors {
        eprintln!("ntcopy: mode {} failed: {}", error.mode, error.what);
    }
}

/// Whether hinted turns are at least so good relative to plain ones, as an exit code.
fn reached(record: &Judged, bar: f64) -> ExitCode {
    let (words, code) = match record.outcome.as_ref().and_then(|outcome| outcome.reaches(bar)) {
        Some(true) => ("reached", 0),
        Some(false) => ("not reached", NOT_REACHED),
        None => ("unresolved", UNRESOLVED),
    };
    eprintln!("{bar}x is {words}");
    ExitCode::from(code)
}

fn exit_code(record: &Record, stopped: Option<i32>, is_asked: IsAsked<'_>) -> ExitCode {
    if let Some(signal) = stopped {
        return ExitCode::from(signal_code(signal));
    }
    let Record { samples, unavailable, .. } = record;
    let is_bare = samples.is_empty() && !unavailable.is_empty();
    if record.errors.iter().any(|error| error.wrong_byte) {
        ExitCode::from(WRONG_BYTE)
    } else if !record.errors.is_empty() || !record.complete {
        ExitCode::FAILURE
    } else if is_bare || unavailable.iter().any(is_asked) || lacks_hints(record).is_some() {
        ExitCode::from(NOT_AVAILABLE)
    } else {
        ExitCode::SUCCESS
    }
}
