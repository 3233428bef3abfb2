//! `ntcopy survey report`: reads a store's summaries, says what they come to by CPU model.

use std::path::PathBuf;
use std::process::ExitCode;

use ntcopy_survey::analysis::analyse;
use ntcopy_survey::page;
use ntcopy_survey::summary::Summary;

use super::StoreArg;
use crate::cmd::{not_available, report};

const HELP: &str = "\
A CPU model is a CPUID signature: vendor, family, model, stepping. Figures are medians over
machines, with 95 % intervals over machines from six on, of five and fewer with what they span; *
marks fewer than five.
Machines that behave unlike their model are named, with what their records say differs, and left out
of its figures.

Exit codes: 0 done; 1 failed; 2 usage; 3 not available here, with the reason.";

#[derive(clap::Args)]
#[command(
    about = "What a survey came to: by CPU model, and which machines are unlike theirs",
    after_help = HELP
)]
pub struct Args {
    /// Write one self-contained HTML page
    #[arg(long, value_name = "FILE.html", value_parser = report::page_file)]
    out: Option<PathBuf>,
}

pub fn run(asked: &StoreArg, args: &Args) -> anyhow::Result<ExitCode> {
    let records = asked.open_existing()?.records(asked.fleet.as_deref())?;
    let summaries: Vec<Summary> = records.into_iter().map(|record| record.summary).collect();
    let analysis = analyse(&summaries);
    if analysis.machines == 0 {
        let why = "the store holds no record that counts; see `ntcopy survey list`";
        return Err(not_available(why));
    }
    if let Some(out) = &args.out {
        report::replace(out, page::html(&analysis, &report::command_line()), 0o666)?;
    } else if asked.json {
        println!("{:#}", serde_json::to_value(&analysis)?);
    } else {
        print!("{}", page::terminal(&analysis));
    }
    Ok(ExitCode::SUCCESS)
}
