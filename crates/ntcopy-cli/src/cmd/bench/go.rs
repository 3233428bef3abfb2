//! From a plan to a record, and from a record to what is printed.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use ntcopy_bench::experiment::Mode;
use ntcopy_bench::guest::{self, GuestError, Needs, Request};
use ntcopy_bench::machine;
use ntcopy_bench::plan::{Cpus, Plan, PlanError};
use ntcopy_bench::run::{self, Failure, Fault, RigOptions, Stop};
use ntcopy_bench::sample::{self, MeasureError, Options, Outcome, Progress, WriteError};
use ntcopy_kernel::{Kind, Machine};
use ntcopy_record::verdict;
use ntcopy_record::{FILE_NAME, Record, Unavailable};

use super::args::Common;
use super::{not_a_clock, not_available, signalled};
use crate::cmd::{NOT_AVAILABLE, WRONG_BYTE, colour};

/// What is to be measured, whichever experiment it belongs to.
pub struct Asked<'a> {
    /// What every experiment takes.
    pub common: &'a Common,
    /// The experiment's name.
    pub experiment: &'static str,
    /// The modes that were named.
    pub modes: &'a [Mode],
    /// CPUs of a booted kernel.
    pub kernel_cpus: u32,
    /// The CPU of the host that a booted kernel is put on.
    pub pin: Option<usize>,
    /// Makes the plan for a kernel with these CPUs.
    pub plan: &'a dyn Fn(&Cpus) -> Result<Plan, PlanError>,
}

/// Measures, in this kernel or in a booted one, and says what the record shows.
pub fn run(asked: &Asked<'_>) -> anyhow::Result<ExitCode> {
    if asked.common.list {
        super::list(asked.experiment);
        return Ok(ExitCode::SUCCESS);
    }
    if asked.common.kernel == "host" { on_this_kernel(asked) } else { in_a_booted_kernel(asked) }
}

fn on_this_kernel(asked: &Asked<'_>) -> anyhow::Result<ExitCode> {
    let args = asked.common;
    let plan = match (asked.plan)(&run::cpus()?) {
        Ok(plan) => plan,
        Err(error) => return Ok(usage(&error)),
    };
    let not_a_timing = machine::not_a_timing();
    if let Some(why) = not_a_timing.as_ref().filter(|_| !args.allow_not_a_timing) {
        return Ok(not_a_clock(why));
    }
    let options = Options {
        out: args.out.clone(),
        command: guest::command_line(),
        not_a_timing,
        rig: RigOptions {
            reader_args: super::reader_args(),
            patience: Duration::from_secs(args.patience),
            fault: args.inject.as_ref().map(|_| Fault::WrongByte),
        },
    };
    let stop = Stop::on_signals().context("cannot watch for signals")?;
    let mut progress = if args.measure_only { Progress::none() } else { Progress::on_stderr() };
    if !args.measure_only {
        caveats(&plan);
    }
    match sample::measure(&plan, machine::describe(), &options, &stop, &mut progress) {
        Ok(outcome) => conclude(asked, &outcome),
        Err(MeasureError::Start(Failure::Limit(why))) => Ok(not_available(&why)),
        Err(error) => Err(error.into()),
    }
}

/// What is settled before a kernel is booted.
pub struct Prepared {
    /// The plan as the inside will make it.
    pub plan: Plan,
    /// The kernel.
    pub kernel: Kind,
    /// Where the record goes.
    pub place: PathBuf,
}

/// Looks at all that can be wrong before a kernel is built; gives the exit code if something is.
pub fn prepare(asked: &Asked<'_>) -> anyhow::Result<Result<Prepared, ExitCode>> {
    let kernel = match Kind::parse(&asked.common.kernel) {
        Ok(kernel) => kernel,
        Err(error) => return Ok(Err(ExitCode::from(failed(error)))),
    };
    if kernel.machine() == Machine::Qemu && !asked.common.allow_not_a_timing {
        return Ok(Err(not_available(&format!(
            "{} runs in an emulator, and what is measured there is not a timing: --kernel um, or \
             --allow-not-a-timing to see the experiment run",
            kernel.name()
        ))));
    }
    let inside = Cpus { allowed: (0..asked.kernel_cpus).collect(), sharing_l2: None };
    let plan = match (asked.plan)(&inside) {
        Ok(plan) => plan,
        Err(error) => return Ok(Err(usage(&error))),
    };
    let place = place(asked.common, asked.experiment)?;
    caveats(&plan);
    Ok(Ok(Prepared { plan, kernel, place }))
}

/// What a booted kernel is asked to do.
pub fn request(
    asked: &Asked<'_>,
    kernel: Kind,
    plan: &Plan,
    place: &Path,
    command: Vec<String>,
) -> Request {
    Request {
        kernel,
        kernel_cpus: asked.kernel_cpus,
        pin: asked.pin,
        needs: Needs::of(plan),
        place: place.to_path_buf(),
        args: std::env::args_os().skip(1).collect(),
        command,
    }
}

fn in_a_booted_kernel(asked: &Asked<'_>) -> anyhow::Result<ExitCode> {
    let Prepared { plan, kernel, place } = match prepare(asked)? {
        Ok(prepared) => prepared,
        Err(code) => return Ok(code),
    };
    let request = request(asked, kernel, &plan, &place, guest::command_line());
    let (code, stopped) = measured(&request);
    end(asked, Outcome { place, stopped }, code)
}

/// Says what was measured, however it ended: `code` is how.
pub fn end(asked: &Asked<'_>, outcome: Outcome, code: u8) -> anyhow::Result<ExitCode> {
    judged(&outcome.place, code, || conclude(asked, &outcome))
}

/// Measures in a booted kernel: the exit code of that, and the signal that ended it.
pub fn measured(request: &Request) -> (u8, Option<i32>) {
    match guest::measure(request) {
        Ok(inside) => (complained(inside.code, &inside.complaints), None),
        Err(error) => {
            let stopped = match error {
                GuestError::Interrupted(signal) => Some(signal),
                _ => None,
            };
            (failed(error), stopped)
        }
    }
}

/// What a measurement comes to that ended with `code`, by its record if there is one.
pub fn judged(
    place: &Path,
    code: u8,
    conclude: impl FnOnce() -> anyhow::Result<ExitCode>,
) -> anyhow::Result<ExitCode> {
    // Without a record the inside, or the error, has said why.
    if !place.join(FILE_NAME).exists() {
        return Ok(ExitCode::from(code));
    }
    let judged = conclude()?;
    // A kernel that fell over must not pass for a success.
    Ok(if judged == ExitCode::SUCCESS { ExitCode::from(code) } else { judged })
}

/// Where the record goes; nothing is there yet.
pub fn place(common: &Common, experiment: &str) -> anyhow::Result<PathBuf> {
    place_of(common.out.as_deref(), experiment)
}

/// The same where only `--out` was said, or not.
pub fn place_of(out: Option<&Path>, experiment: &str) -> anyhow::Result<PathBuf> {
    let new_id = || sample::new_id(experiment, &guest::command_line());
    let place = match out {
        Some(out) => out.to_path_buf(),
        None => sample::default_place(&new_id())
            .context("neither XDG_DATA_HOME nor HOME names a directory: say --out DIR")?,
    };
    let place = std::path::absolute(&place).context("--out")?;
    if place.join(FILE_NAME).exists() {
        return Err(WriteError::Exists(place.join(FILE_NAME)).into());
    }
    Ok(place)
}

/// The inside's exit code; faults of the kernel itself are printed and count as failure.
pub fn complained(code: u8, complaints: &[String]) -> u8 {
    for line in complaints {
        eprintln!("ntcopy: the kernel under test complained: {line}");
    }
    if code == 0 { u8::from(!complaints.is_empty()) } else { code }
}

/// Says why a kernel could not be built, booted or kept alive.
pub fn failed(error: GuestError) -> u8 {
    let code = error.exit_code();
    crate::cmd::fail(&error.into());
    code
}

/// What a user of the measured modes has to know.
fn caveats(plan: &Plan) {
    for caveat in plan.modes.iter().filter_map(|mode| mode.caveat()) {
        eprintln!("note: {caveat}");
    }
}

/// Reads the record back, prints what it says, and gives the exit code.
fn conclude(asked: &Asked<'_>, outcome: &Outcome) -> anyhow::Result<ExitCode> {
    let record = Record::read(&outcome.place)?;
    if !asked.common.measure_only {
        say(&record, asked.common.form(), &outcome.place)?;
    }
    let named = |mode: &str| asked.modes.iter().any(|asked| asked.as_str() == mode);
    let is_asked = |line: &Unavailable| line.cell.is_some() || named(&line.mode);
    Ok(judge(&record, outcome.stopped, &is_asked))
}

/// How results are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// For people.
    Table,
    /// One object.
    Json,
    /// A line a result.
    Csv,
}

impl Form {
    /// By the options `--json` and `--csv`, of which one is given at most.
    pub fn of(json: bool, csv: bool) -> Form {
        match (json, csv) {
            (true, _) => Form::Json,
            (_, true) => Form::Csv,
            _ => Form::Table,
        }
    }
}

/// Prints what a record says, and where it is.
pub fn say(record: &Record, form: Form, place: &Path) -> anyhow::Result<()> {
    let text = match form {
        Form::Table => colour::of(&table(record)),
        Form::Json => format!("{:#}\n", ntcopy_report::json::object(record)),
        Form::Csv => ntcopy_report::csv::of(&[record]),
    };
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => {}
        result => result.context("standard output")?,
    }
    eprintln!("record: {}", place.display());
    Ok(())
}

fn table(record: &Record) -> String {
    let sentences = verdict::sentences(record).join("\n");
    let (table, bars) =
        (ntcopy_report::table::terminal(record), ntcopy_report::table::bars(record));
    format!("{table}\n{bars}{sentences}\n")
}

/// The exit code that a record comes to; `is_asked` says whether somebody asked for what was not
/// available.
pub fn judge(
    record: &Record,
    stopped: Option<i32>,
    is_asked: &dyn Fn(&Unavailable) -> bool,
) -> ExitCode {
    if let Some(signal) = stopped {
        return signalled(signal);
    }
    if record.errors.iter().any(|error| error.wrong_byte) {
        ExitCode::from(WRONG_BYTE)
    } else if !record.errors.is_empty() || !record.complete {
        ExitCode::FAILURE
    } else if record.unavailable.iter().any(is_asked) {
        ExitCode::from(NOT_AVAILABLE)
    } else {
        ExitCode::SUCCESS
    }
}

/// Says what cannot be asked for, and gives the exit code for that.
fn usage(error: &PlanError) -> ExitCode {
    eprintln!("ntcopy: {error}");
    ExitCode::from(2)
}
