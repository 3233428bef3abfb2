//! `ntcopy bench http`: client, proxy and backend, in this kernel or in a booted one.

use std::process::ExitCode;

use ntcopy_bench::experiments::http::{self, HttpMode, Settings, Stack};
use ntcopy_record::{ExperimentKind, Mode, Unavailable};

use super::against::AgainstArgs;
use super::args::Common;
use super::launch::{KernelCpus, Launch};
use crate::cmd::usage;

pub const EXAMPLES: &str = "\
Examples:
  ntcopy bench http --kernel um                   storaged and proxyd, in the kernel with the flag
  ntcopy bench http --kernel um --against stock --sndbuf 4MiB     relative to a stock kernel
  ntcopy bench http --kernel um --against stock --modes hinted,sendfile   and the ceiling
  ntcopy bench http --quick                       on this kernel, in a minute
  ntcopy bench http --stack haproxy+nginx,storaged+proxyd --modes plain
  ntcopy bench http --stack haproxy+nginx,storaged+proxyd --modes sendfile --baseline sendfile
  ntcopy bench http --kernel um --stack haproxy+nginx --nginx-buffer 1MiB    files read, not sendfile
  ntcopy bench http --kernel um --stack haproxy+storaged          HAProxy before a hinted backend
  ntcopy bench http --kernel um --stack haproxy+backend.c         the same, examples/backend.c
  ntcopy bench http --transport tcp --object 64KiB,1MiB --connections 64

A client asks a proxy, which asks a backend. Each cell is measured twice. Without a pause, every \
connection asks again as soon as it is answered: how much goes through, and what CPU time it costs \
each process. On a schedule, requests come at an offered rate, the same in every mode, whether or \
not others have been answered: how long does an answer take, from the moment its request was due?

Modes: plain (the baseline), hinted, sendfile (the backend copies nothing); storaged also has auto. backend.c is \
examples/backend.c, which the system's C compiler makes here. nginx as the backend, and its \
proxy, get the hint from `ntcopy run`; before the others a proxy is as it is. Proxies and backends \
are started again for each pair, because which memory a process got changes its speed by a few \
percent, in any mode.

With --against connections ask without a pause, because a rate would be another one in each boot.

With several stacks a mode is called STACK:MODE. The baseline is the first stack's plain, or what \
--baseline says, and the offered rate is a part of what the baseline does without a pause.";

#[derive(clap::Args)]
pub struct HttpArgs {
    #[command(flatten)]
    pub settings: Settings,
    #[command(flatten)]
    against: AgainstArgs,
}

pub fn run(common: &Common, args: &HttpArgs) -> anyhow::Result<ExitCode> {
    let is_asked = |line: &Unavailable| is_asked(&args.settings, line);
    if args.against.kernel().is_some() && args.settings.stacks.len() > 1 {
        return Err(usage("--against compares two kernels, and --stack can name one stack then"));
    }
    let settings = args.against.settings(&args.settings, &args.settings.modes, Settings::one_boot);
    let launch = Launch {
        common,
        experiment: ExperimentKind::Http,
        // Its processes take turns, and what one of them costs then shows.
        kernel_cpus: KernelCpus::Free(1),
        worker_args: Vec::new(),
        against: args.against.boots(
            common,
            &args.settings.modes,
            http::defaults(common.extent.quick).pairs,
        ),
        plan: &|cpus| http::plan(&settings, cpus),
        is_asked: &is_asked,
    };
    launch.run()
}

/// Whether what is not available is a mode that was named, or all of a stack that was.
fn is_asked(settings: &Settings, line: &Unavailable) -> bool {
    let is = |stack: &Stack, mode: HttpMode| {
        line.mode == Mode::named(mode.as_str()).of_stack(stack.as_str()).mode
    };
    let is_mode = |mode: HttpMode| {
        line.mode == mode.as_str() || Stack::ALL.iter().any(|stack| is(stack, mode))
    };
    let baseline = settings.baseline.unwrap_or(HttpMode::Plain);
    match settings.modes.as_slice() {
        [] => settings.stacks.iter().any(|stack| is(stack, baseline)),
        modes => modes.iter().any(|mode| is_mode(*mode)),
    }
}
