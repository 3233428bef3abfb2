//! `ntcopy footprint`: how much of a cache a call displaces.

mod calibrate;

use std::process::ExitCode;

use ntcopy_bench::experiments::footprint::{Call, FootprintPlan, Level, TABLE};
use ntcopy_bench::sample::Needs;
use ntcopy_record::{ExperimentKind, Unavailable};

use super::bench::{IsAsked, Place, Runner};

/// Repetitions.
const ROUNDS: u32 = 63;
const QUICK_ROUNDS: u32 = 21;
/// Memory of a booted kernel beside its own: buffers of source and destination, a file of the same,
/// and the lines that are primed.
const MEMORY_BYTES: u64 = 768 << 20;

const HELP: &str = "\
Examples:
  ntcopy footprint                                  a table of calls, 128 KiB each
  ntcopy footprint copy:256KiB copy-nt:256KiB fill:1MiB
  ntcopy footprint --kernel um send:128KiB send-hinted:128KiB

A set of lines is walked until the cache holds it, the call is made, and each line is loaded with \
the clock running: one that takes longer than a hit was displaced. No counter and no privilege is \
needed. The results are equivalent lines read: the number of lines that one would have to read to \
displace as many. A curve of lines read is taken in the same rounds; lines flushed and lines \
written past the caches say how far the instrument is off.

Sources and destinations are taken from 64 MiB in turns, and are cold. A call that displaces all \
that was primed is reported as at least N lines: ask for fewer bytes then.

Exit codes: 0 done; 1 failed; 2 usage; 3 not available here, or a call is not.";

#[derive(clap::Args)]
#[command(
    about = "How much cache does a call displace? Without a counter",
    after_help = HELP,
    args_override_self = true,
    args_conflicts_with_subcommands = true
)]
pub struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
    /// Calls, as copy:1MiB; --list prints them [default: all of them, 128 KiB each]
    #[arg(value_name = "CALL")]
    calls: Vec<Call>,
    /// Print the calls and stop
    #[arg(long)]
    list: bool,
    /// Fewer repetitions, and the L2 alone
    #[arg(long)]
    quick: bool,
    #[command(flatten)]
    place: Place,
}

#[derive(clap::Subcommand)]
enum Verb {
    Calibrate(calibrate::Args),
}

pub fn run(mut args: Args) -> anyhow::Result<ExitCode> {
    if let Some(Verb::Calibrate(args)) = args.verb {
        return calibrate::run(args);
    }
    if args.list {
        for kind in TABLE {
            println!("{:<12} {}", kind.as_str(), kind.what());
        }
        return Ok(ExitCode::SUCCESS);
    }
    args.place.choose()?;
    let runner = Runner::from(&args.place);
    let is_asked = |line: &Unavailable| args.calls.iter().any(|call| call.to_string() == line.mode);
    if args.place.kernel == "host" {
        runner.measure(&plan(&args)?, &is_asked)
    } else {
        in_a_booted_kernel(&runner, &is_asked)
    }
}

fn plan(args: &Args) -> anyhow::Result<FootprintPlan> {
    let cpu = ntcopy_bench::cpu::detect();
    let l2 = cpu.caches.iter().find(|cache| cache.level == 2 && cache.kind.name() != "instruction");
    let calls = match args.calls.is_empty() {
        true => TABLE.iter().map(|kind| kind.by_default()).collect(),
        false => args.calls.clone(),
    };
    let levels = if args.quick { vec![Level::L2] } else { Level::ALL.to_vec() };
    let allowed = ntcopy_bench::run::cpus()?.allowed;
    Ok(FootprintPlan {
        calls,
        levels,
        rounds: if args.quick { QUICK_ROUNDS } else { ROUNDS },
        cpu: allowed.last().copied().unwrap_or(0),
        cache_bytes: [l2.map_or(1 << 20, |cache| cache.size_bytes), cpu.llc_bytes()],
    })
}

fn in_a_booted_kernel(runner: &Runner, is_asked: IsAsked<'_>) -> anyhow::Result<ExitCode> {
    let kernel = runner.kernel("which has no caches to displace")?;
    let needs =
        Needs { samples: 0, memory_bytes: MEMORY_BYTES, sysctls: Vec::new(), longest: None };
    let request = runner.request(kernel, needs, &ExperimentKind::Footprint)?;
    runner.boot(&request, None, is_asked)
}
