//! `ntcopy advise`: reads this machine's records and profile, and says what to set on it.

mod ceiling;
mod here;
mod running;

use std::path::PathBuf;
use std::process::ExitCode;

use ntcopy_judge::Judged;
use ntcopy_judge::advice::{self, Target};
use ntcopy_report::advice as show;
use ntcopy_report::summary;

use super::{not_available, sources};
use crate::say;

const EXAMPLES: &str = "\
Examples:
  ntcopy advise                              what to set here, by this machine's records
  ntcopy advise bench/record/DATE-CPU --json
  ntcopy advise --for AuthenticAMD-26-2-1    by another machine's records, for that machine
  ntcopy advise --pid 4711                   how much a running program has in flight, on any kernel
  ntcopy advise --service nginx --watch      the same for a service, again and again
  ntcopy advise --ceiling                    what there is to gain here at most, on any kernel

Of sends it advises the number from which on no length loses and together they win, by 3 % and with \
the whole interval; the rest where every cell that was measured wins from some size on, or, but for \
thresholds of glibc, where all together win and none loses. Where nothing was measured it names the \
command that does. Without RECORD it goes by the records of this machine's CPU in the store, wherever \
it is called; `ntcopy report --out` makes a page of the same ones. Nothing is changed on this machine.

--pid, --service and --all read the kernel's socket diagnostics and /proc, for ten seconds, and \
change nothing; one's own processes need no root. Of --pid and --service the answer is YES, IN PART, \
NO or UNKNOWN, by the length of the sends: root sees it by the tracepoint sock:sock_send_length \
(Linux 6.3), else the counters tell after `ntcopy set --pid`. What part of the CPU time is the copy, \
root sees by sampling. What is said of bytes in flight is of records with about as much.

--ceiling measures, in some 20 s and without patches, how much faster a chain of client, proxy and
backend gets when the backend copies nothing; a hint gets a part of that. With --pid the chain has
about as much in flight as the program.

Exit codes: 0 done; 1 failed; 2 usage; 3 not available here, with the reason; 4 a byte was wrong.";

#[derive(clap::Args)]
#[command(
    about = "What to set on this machine, by its own records and profile",
    after_help = EXAMPLES
)]
pub struct Args {
    /// Records, or folders with records in them [default: ~/.local/share/ntcopy/records]
    #[arg(value_name = "RECORD")]
    records: Vec<PathBuf>,
    /// Advice for the machine with this CPUID signature, as its records name it, instead of this
    /// machine
    #[arg(long = "for", value_name = "SIGNATURE", conflicts_with = "running")]
    other: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    running: running::Options,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    if args.running.is_wanted() {
        return running::run(&args.running, &args.records, args.json);
    }
    if args.running.ceiling {
        return ceiling::run(&ceiling::Chain::usual(), args.json);
    }
    let found = sources::read(&args.records)?;
    let target = match &args.other {
        Some(signature) => {
            Target::of(sources::machine_of(&found, signature).map_err(not_available)?)
        }
        None => here::this(),
    };
    let (records, listed) = sources::counted(found, &target.machine);
    let references: Vec<&Judged> = records.iter().collect();
    let all = advice::advise(&references, &target);
    let origin = sources::origin(&args.records, &listed, &target.machine);
    let newest = references.first().copied();
    let summary = summary::with(&target.machine, &references, all.clone(), newest);
    let opening = show::Opening { origin: &origin, verdict: &summary.lines() };
    if args.json {
        say::object(&show::object(&all, &target, &listed))?;
    } else {
        print!("{}", show::terminal(&opening, &all, &target, &listed));
    }
    sources::hint(&listed, &target.machine);
    Ok(ExitCode::SUCCESS)
}
