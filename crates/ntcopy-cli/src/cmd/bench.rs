//! `ntcopy bench`.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use ntcopy_bench::experiment::unix::Settings;
use ntcopy_bench::experiment::{EXPERIMENTS, Mode};
use ntcopy_bench::guest::{self, GuestError, Inside, Request};
use ntcopy_bench::plan::{self, Plan, PlanError};
use ntcopy_bench::record::{FILE_NAME, Record};
use ntcopy_bench::run::{self, Failure, Fault, RigOptions, Stop};
use ntcopy_bench::sample::{self, MeasureError, Options, Outcome, Progress, WriteError};
use ntcopy_bench::units::Bytes;
use ntcopy_bench::{machine, verdict};
use ntcopy_kernel::Kind;

use super::{NOT_AVAILABLE, WRONG_BYTE};

/// Measure: run an experiment, write its record, and say what it shows.
#[derive(clap::Subcommand)]
#[command(about = "Measure: run an experiment, write its record, and say what it shows")]
pub enum Args {
    /// Unix stream socket: a parent sends, a child splices socket -> pipe -> /dev/null.
    Unix(Box<UnixArgs>),
    /// Print every experiment with its defaults.
    List,
    /// The reading process of an experiment; not for people.
    #[command(hide = true)]
    Reader,
}

const EXAMPLES: &str = "\
Examples:
  ntcopy bench unix --kernel um --sockets 1,8,64      where does the hint pay?
  ntcopy bench unix --kernel um --published           the three published configurations
  ntcopy bench unix --sockets 1,8 --quick --json      on this kernel, quickly, for programs

With --sockets a round is: fill every socket with one object, then drain them all, so the bytes
in flight are exactly sockets x object. Without it, sender and reader run freely on one socket.

Modes: copy (a plain send, the baseline), nt (MSG_NTCOPY, obeyed), vmsplice (no copy at all; its
buffer must not be touched again until the reader is done with it).

Sizes take KiB, MiB or GiB; lists are separated by commas.
Exit codes: 0 done; 1 a run failed; 2 usage; 3 not available here; 4 a byte was wrong.";

/// Arguments of `bench unix`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, args_override_self = true)]
pub struct UnixArgs {
    /// Kernel to measure in: host, or one that `ntcopy kernel` builds and boots
    #[arg(long, value_name = "KERNEL", default_value = "host")]
    kernel: String,
    /// CPUs of a booted kernel [default: 1 with --sockets, 2 without]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=2))]
    kernel_cpus: Option<u32>,
    /// Modes to compare with copy
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    modes: Vec<Mode>,
    /// Rounds over so many sockets in flight
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    sockets: Vec<u32>,
    /// The three published configurations, on the CPUs that are here
    #[arg(long, conflicts_with_all = ["sockets", "object", "dataset", "pipe", "sndbuf"])]
    published: bool,
    /// Object sizes [default: 1MiB]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    object: Vec<Bytes>,
    /// Sizes of the data set that objects are taken from [default: 256MiB with --sockets, else
    /// one object]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    dataset: Vec<Bytes>,
    /// Size of the reader's pipe [default: 512KiB; with --sockets one object, as far as allowed]
    #[arg(long, value_name = "SIZE")]
    pipe: Option<Bytes>,
    /// Send buffer [default: 512KiB; with --sockets what takes a whole object]
    #[arg(long, value_name = "SIZE")]
    sndbuf: Option<Bytes>,
    /// Sends in a free-running sample [default: as many as fill its time, at most 100000]
    #[arg(long, value_name = "N", conflicts_with = "sockets")]
    iterations: Option<u64>,
    /// CPU of the sender and CPU of the reader, or one for both [default: the first two]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    cpus: Vec<u32>,
    /// Interleaved groups of samples, at least 5 [default: 15, with --quick 5]
    #[arg(long, value_name = "N")]
    pairs: Option<u32>,
    /// Fewer and shorter samples
    #[arg(long)]
    quick: bool,
    /// Address family
    #[arg(long, value_name = "FAMILY", default_value = "unix", value_parser = ["unix"])]
    family: String,
    /// Directory of the record [default: ~/.local/share/ntcopy/records/ID]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print one JSON object instead of the table
    #[arg(long)]
    json: bool,
    /// Print the experiment's defaults and stop
    #[arg(long)]
    list: bool,
    /// Measure under a debug kernel or an emulator too; the record says that it is not a timing
    #[arg(long)]
    allow_not_a_timing: bool,
    /// Seconds without a byte moving after which a run has failed
    #[arg(long, value_name = "SECONDS", default_value = "30",
          value_parser = clap::value_parser!(u64).range(1..))]
    patience: u64,
    /// Write the record and print nothing: for the inside of a booted kernel.
    #[arg(long, hide = true)]
    measure_only: bool,
    /// Cause a fault, to see that it is noticed: for tests.
    #[arg(long, hide = true, value_parser = ["wrong-byte"])]
    inject: Option<String>,
}

impl UnixArgs {
    fn settings(&self) -> Settings {
        let sizes = |sizes: &[Bytes]| sizes.iter().map(|size| size.0).collect();
        Settings {
            modes: self.modes.clone(),
            object_bytes: sizes(&self.object),
            dataset_bytes: sizes(&self.dataset),
            sockets: self.sockets.clone(),
            published: self.published,
            pipe_bytes: self.pipe.map(|size| size.0),
            sndbuf_bytes: self.sndbuf.map(|size| size.0),
            iterations: self.iterations,
            cpus: self.cpus.clone(),
            pairs: self.pairs,
            quick: self.quick,
        }
    }
}

/// The arguments that lead to the reading process.
pub fn reader_args() -> Vec<String> {
    ["bench", "reader"].map(str::to_owned).into()
}

/// Runs it.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args {
        Args::Unix(args) if args.list => {
            list("unix");
            Ok(ExitCode::SUCCESS)
        }
        Args::Unix(args) if args.kernel == "host" => on_this_kernel(&args),
        Args::Unix(args) => in_a_booted_kernel(&args),
        Args::List => {
            EXPERIMENTS.iter().for_each(|experiment| list(experiment.name));
            Ok(ExitCode::SUCCESS)
        }
        Args::Reader => Ok(run::reader::main()),
    }
}

fn list(name: &str) {
    for experiment in EXPERIMENTS.iter().filter(|experiment| experiment.name == name) {
        // A reader that has closed its end wants no more.
        let _ = writeln!(std::io::stdout(), "{}", experiment.defaults.trim_end());
    }
}

fn on_this_kernel(args: &UnixArgs) -> anyhow::Result<ExitCode> {
    let cpus = run::cpus()?;
    let plan = match plan::plan(&args.settings(), &cpus) {
        Ok(plan) => plan,
        Err(error) => return Ok(usage(&error)),
    };
    let not_a_timing = machine::not_a_timing();
    if let Some(why) = not_a_timing.as_ref().filter(|_| !args.allow_not_a_timing) {
        return Ok(not_available(&format!(
            "what is measured here is not a timing ({why}); --allow-not-a-timing measures all the \
             same, and marks the record"
        )));
    }
    let options = Options {
        out: args.out.clone(),
        command: guest::command_line(),
        not_a_timing,
        rig: RigOptions {
            reader_args: reader_args(),
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
        Ok(outcome) => conclude(args, &outcome),
        Err(MeasureError::Start(Failure::Limit(why))) => Ok(not_available(&why)),
        Err(error) => Err(error.into()),
    }
}

fn in_a_booted_kernel(args: &UnixArgs) -> anyhow::Result<ExitCode> {
    let kernel = match Kind::parse(&args.kernel) {
        Ok(kernel) => kernel,
        Err(error) => return Ok(ExitCode::from(failed(error))),
    };
    // A round hands over, so one CPU will do; a free run keeps two busy.
    let kernel_cpus = args.kernel_cpus.unwrap_or(if args.sockets.is_empty() { 2 } else { 1 });
    let inside = plan::Cpus { allowed: (0..kernel_cpus).collect(), sharing_l2: None };
    let plan = match plan::plan(&args.settings(), &inside) {
        Ok(plan) => plan,
        Err(error) => return Ok(usage(&error)),
    };
    let command = guest::command_line();
    let place = match &args.out {
        Some(out) => out.clone(),
        None => sample::default_place(&sample::new_id(&command))
            .context("neither XDG_DATA_HOME nor HOME names a directory: say --out DIR")?,
    };
    let place = std::path::absolute(&place).context("--out")?;
    if place.join(FILE_NAME).exists() {
        return Err(WriteError::Exists(place.join(FILE_NAME)).into());
    }
    caveats(&plan);
    let request = Request {
        kernel,
        kernel_cpus,
        plan: &plan,
        place: place.clone(),
        args: std::env::args_os().skip(1).collect(),
        command,
    };
    let (code, stopped) = match guest::measure(&request) {
        Ok(inside) => (complained(&inside), None),
        Err(error) => {
            let stopped = match error {
                GuestError::Interrupted(signal) => Some(signal),
                _ => None,
            };
            (failed(error), stopped)
        }
    };
    // What was measured is there, however it ended. Without a record the
    // inside, or the error, has said why.
    if !place.join(FILE_NAME).exists() {
        return Ok(ExitCode::from(code));
    }
    let judged = conclude(args, &Outcome { place, stopped })?;
    // A kernel that fell over must not pass for a success.
    Ok(if judged == ExitCode::SUCCESS { ExitCode::from(code) } else { judged })
}

/// The inside's exit code; faults of the kernel itself are printed and count as failure.
fn complained(inside: &Inside) -> u8 {
    for line in &inside.complaints {
        eprintln!("ntcopy: the kernel under test complained: {line}");
    }
    if inside.code == 0 { u8::from(!inside.complaints.is_empty()) } else { inside.code }
}

/// Says why a kernel could not be built, booted or kept alive.
fn failed(error: GuestError) -> u8 {
    let code = error.exit_code();
    super::fail(&error.into());
    code
}

/// What a user of the measured modes has to know.
fn caveats(plan: &Plan) {
    for caveat in plan.modes.iter().filter_map(|mode| mode.caveat()) {
        eprintln!("note: {caveat}");
    }
}

/// Reads the record back, prints what it says, and gives the exit code.
fn conclude(args: &UnixArgs, outcome: &Outcome) -> anyhow::Result<ExitCode> {
    let record = Record::read(&outcome.place)?;
    if !args.measure_only {
        let text = if args.json {
            format!("{:#}\n", ntcopy_report::json::object(&record))
        } else {
            table(&record)
        };
        match std::io::stdout().write_all(text.as_bytes()) {
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => {}
            result => result.context("standard output")?,
        }
        eprintln!("record: {}", outcome.place.display());
    }
    Ok(exit_code(args, &record, outcome.stopped))
}

fn table(record: &Record) -> String {
    let sentences = verdict::sentences(record).join("\n");
    format!("{}\n{sentences}\n", ntcopy_report::table::terminal(record))
}

fn exit_code(args: &UnixArgs, record: &Record, stopped: Option<i32>) -> ExitCode {
    if let Some(signal) = stopped {
        return signalled(signal);
    }
    let asked = |mode: &str| args.modes.iter().any(|asked| asked.as_str() == mode);
    if record.errors.iter().any(|error| error.wrong_byte) {
        ExitCode::from(WRONG_BYTE)
    } else if !record.errors.is_empty() || !record.complete {
        ExitCode::FAILURE
    } else if record.unavailable.iter().any(|line| asked(&line.mode)) {
        ExitCode::from(NOT_AVAILABLE)
    } else {
        ExitCode::SUCCESS
    }
}

/// The exit code of a program that a signal ended, as shells have it.
pub fn signalled(signal: i32) -> ExitCode {
    ExitCode::from(u8::try_from(128 + signal).unwrap_or(u8::MAX))
}

fn usage(error: &PlanError) -> ExitCode {
    eprintln!("ntcopy: {error}");
    ExitCode::from(2)
}

/// Says why it cannot be done here, and gives the exit code for that.
pub fn not_available(why: &str) -> ExitCode {
    eprintln!("ntcopy: not available: {why}");
    ExitCode::from(NOT_AVAILABLE)
}
