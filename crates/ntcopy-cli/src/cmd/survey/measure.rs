//! `ntcopy survey measure`: what runs on a node.

use std::io;
use std::process::ExitCode;

use anyhow::Context as _;
use ntcopy_bench::run::Stop;
use ntcopy_kernel::temporary::Folder;
use ntcopy_survey::engine::{NodeFacts, node};

use super::{AskArgs, StoreArg};
use crate::cmd::{PARTIAL, WRONG_BYTE, signal_code};

const HELP: &str = "\
Standard output carries the records, packed and with their digests, as lines of text; progress goes
to standard error. The lines are in docs/reference/record.md.

Exit codes: 0 done; 1 failed; 2 usage; 4 a byte was wrong; 5 some experiments failed.";

#[derive(clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// This node's name in the fleet [default: the host's name]
    #[arg(long, value_name = "NAME")]
    node: Option<String>,
    #[command(flatten)]
    ask: AskArgs,
}

pub fn run(asked: &StoreArg, args: &Args) -> anyhow::Result<ExitCode> {
    let stop = Stop::on_signals().context("cannot watch for signals")?;
    let program = std::env::current_exe().context("where is this program?")?;
    let folder = Folder::new("ntcopy-survey-")?;
    let host = || rustix::system::uname().nodename().to_string_lossy().into_owned();
    let facts =
        NodeFacts { fleet: asked.fleet().to_owned(), node: args.node.clone().unwrap_or_else(host) };
    let ask = args.ask.ask();
    let cancelled = || stop.signal().is_some();
    let mut out = io::stdout().lock();
    let tally = node::measure(&program, &ask, &facts, folder.path(), &cancelled, &mut out)
        .context("the records cannot be sent")?;
    Ok(ExitCode::from(match (stop.signal(), tally) {
        (Some(signal), _) => signal_code(signal),
        (None, tally) if tally.wrong_byte > 0 => WRONG_BYTE,
        (None, tally) if tally.failed == 0 => 0,
        (None, tally) if tally.answered > 0 => PARTIAL,
        (None, _) => 1,
    }))
}
