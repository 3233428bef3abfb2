//! `ntcopy bench http`: client, proxy and backend, in this kernel or in a booted one.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use ntcopy_bench::experiment::http::{HttpMode, NAME, Rate, Scheme, Settings, Stack, Transport};
use ntcopy_bench::guest::{self, Needs, Request};
use ntcopy_bench::machine;
use ntcopy_bench::plan::Cpus;
use ntcopy_bench::plan::http::{self, HttpPlan};
use ntcopy_bench::record::{Record, Unavailable};
use ntcopy_bench::run::{self, Failure, Stop};
use ntcopy_bench::sample::bulk::Options;
use ntcopy_bench::sample::{self, MeasureError, Progress};
use ntcopy_bench::units::Bytes;
use ntcopy_kernel::{Kind, Machine};

use super::args::Common;
use super::{go, not_available, pin, signalled};

const EXAMPLES: &str = "\
Examples:
  ntcopy bench http --kernel um                          storaged and proxyd, in the kernel with the flag
  ntcopy bench http --quick                              on this kernel, in a minute
  ntcopy bench http --stack haproxy+nginx,storaged+proxyd --modes copy
  ntcopy bench http --scheme tls --object 64KiB,1MiB --connections 64

A client asks a proxy, which asks a backend. Each combination of objects and connections is measured
twice. Without a pause, every connection asks anew as soon as it is answered: how much goes through,
and what it costs each process in CPU time. On a schedule, requests come at an offered rate whether or
not others have been answered, the same in every mode: how long does an answer take, from when its
request was due?

Modes: copy (plain sends, the baseline), nt (hinted, obeyed), adaptive (hinted, the kernel decides),
sendfile (the backend copies nothing); storaged+proxyd also has vmsplice and auto. nginx and HAProxy
get the hint from `ntcopy run`. The daemons are started in a folder of their own, and end with the
measurement.

With several stacks a mode is called STACK:MODE, and the first stack's copy is the baseline.

Sizes take KiB, MiB or GiB; lists are separated by commas.
Exit codes: 0 done; 1 a run failed; 2 usage; 3 not available here; 4 a byte was wrong.";

/// Arguments of `bench http`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, args_override_self = true)]
pub struct HttpArgs {
    #[command(flatten)]
    pub common: Common,
    /// Proxy and backend: storaged+proxyd, haproxy+nginx, nginx+nginx [default: storaged+proxyd]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    stack: Vec<Stack>,
    /// Modes to compare with copy [default: nt,adaptive,sendfile]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    modes: Vec<HttpMode>,
    /// Between proxy and backend: unix, tcp [default: unix]
    #[arg(long, value_name = "HOW")]
    transport: Option<Transport>,
    /// Between client and proxy: plain, tls, ktls, h3 [default: plain]
    #[arg(long, value_name = "HOW")]
    scheme: Option<Scheme>,
    /// Object sizes [default: 64KiB,1MiB,4MiB; with --quick 1MiB]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    object: Vec<Bytes>,
    /// Connections of the client [default: 1,16,64; with --quick 1,64]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    connections: Vec<u32>,
    /// Sizes of the data set that objects are taken from, in turns [default: 256MiB]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    data_set: Vec<Bytes>,
    /// Threads of the proxy, and as many of the backend [default: 1]
    #[arg(long, value_name = "N")]
    workers: Option<u32>,
    /// Offered when latencies are measured: a part of what the baseline does without a pause,
    /// requests a second, or off [default: 0.7]
    #[arg(long, value_name = "FRACTION|REQ/S")]
    rate: Option<Rate>,
    /// CPUs of client, proxy and backend, or one for all [default: wherever the system likes]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    cpus: Vec<u32>,
    /// The backend's send buffers [default: the system's]
    #[arg(long, value_name = "SIZE")]
    sndbuf: Option<Bytes>,
}

impl HttpArgs {
    fn settings(&self) -> Settings {
        let sizes = |sizes: &[Bytes]| sizes.iter().map(|size| size.0).collect();
        Settings {
            stacks: self.stack.clone(),
            modes: self.modes.clone(),
            transport: self.transport,
            scheme: self.scheme,
            object_bytes: sizes(&self.object),
            connections: self.connections.clone(),
            dataset_bytes: sizes(&self.data_set),
            workers: self.workers,
            rate: self.rate,
            cpus: self.cpus.clone(),
            sndbuf_bytes: self.sndbuf.map(|size| size.0),
            pairs: self.common.pairs,
            quick: self.common.quick,
        }
    }

    /// The plan for a kernel with these CPUs, or the exit code for settings that cannot be.
    fn plan(&self, cpus: &Cpus) -> Result<HttpPlan, ExitCode> {
        http::plan(&self.settings(), cpus).map_err(|error| {
            eprintln!("ntcopy: {error}");
            ExitCode::from(2)
        })
    }
}

/// CPUs of a booted kernel: its processes take turns, and what one of them costs then shows.
const KERNEL_CPUS: u32 = 1;

/// Runs it.
pub fn run(args: &HttpArgs) -> anyhow::Result<ExitCode> {
    if args.common.list {
        super::list(NAME);
        return Ok(ExitCode::SUCCESS);
    }
    if args.common.kernel == "host" { on_this_kernel(args) } else { in_a_booted_kernel(args) }
}

fn on_this_kernel(args: &HttpArgs) -> anyhow::Result<ExitCode> {
    let common = &args.common;
    let plan = match args.plan(&run::cpus()?) {
        Ok(plan) => plan,
        Err(code) => return Ok(code),
    };
    let not_a_timing = machine::not_a_timing();
    if let Some(why) = not_a_timing.as_ref().filter(|_| !common.allow_not_a_timing) {
        return Ok(not_available(&format!(
            "what is measured here is not a timing ({why}); --allow-not-a-timing measures all the \
             same, and marks the record"
        )));
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
    match sample::http::measure(&plan, machine, &options, &stop, &mut progress) {
        Ok(outcome) => conclude(args, &outcome.place, outcome.stopped),
        Err(MeasureError::Start(Failure::Limit(why))) => Ok(not_available(&why)),
        Err(MeasureError::Start(Failure::Stopped(signal))) => Ok(signalled(signal)),
        Err(error) => Err(error.into()),
    }
}

fn in_a_booted_kernel(args: &HttpArgs) -> anyhow::Result<ExitCode> {
    let kernel = match Kind::parse(&args.common.kernel) {
        Ok(kernel) => kernel,
        Err(error) => return Ok(ExitCode::from(go::failed(error))),
    };
    if kernel.machine() == Machine::Qemu && !args.common.allow_not_a_timing {
        return Ok(not_available(&format!(
            "{} runs in an emulator, and what is measured there is not a timing: --kernel um, or \
             --allow-not-a-timing to see the experiment run",
            kernel.name()
        )));
    }
    let inside = Cpus { allowed: (0..KERNEL_CPUS).collect(), sharing_l2: None };
    let plan = match args.plan(&inside) {
        Ok(plan) => plan,
        Err(code) => return Ok(code),
    };
    let place = go::place(&args.common, NAME)?;
    let request = Request {
        kernel,
        kernel_cpus: KERNEL_CPUS,
        pin: pin(&args.common, false)?,
        needs: Needs::of_http(&plan),
        place: place.clone(),
        args: std::env::args_os().skip(1).collect(),
        command: guest::command_line(),
    };
    let (code, stopped) = go::measured(&request);
    go::judged(&place, code, || conclude(args, &place, stopped))
}

/// Reads the record back, prints what it says, and gives the exit code.
fn conclude(args: &HttpArgs, place: &Path, stopped: Option<i32>) -> anyhow::Result<ExitCode> {
    let record = Record::read(place)?;
    if !args.common.measure_only {
        go::say(&record, args.common.json, place)?;
    }
    // A stack that was named and is not installed, or a mode that was named.
    let is_asked = |line: &Unavailable| {
        let (stack, mode) = line.mode.rsplit_once(':').unwrap_or(("", &line.mode));
        let names_mode = args.modes.iter().any(|asked| asked.as_str() == mode);
        let names_stack = args.modes.is_empty()
            && mode == HttpMode::Copy.as_str()
            && args.stack.iter().any(|asked| asked.as_str() == stack);
        names_mode || names_stack
    };
    Ok(go::judge(&record, stopped, &is_asked))
}
