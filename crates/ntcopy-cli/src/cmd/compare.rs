//! `ntcopy compare`: two records, or two folders of records, held against each other.

use std::path::PathBuf;
use std::process::ExitCode;

use ntcopy_record::compare;
use ntcopy_report::compare::{Side, object, terminal};

use super::{NOT_AVAILABLE, colour, records};

const EXAMPLES: &str = "\
Examples:
  ntcopy compare bench/record/A/rounds bench/record/B/rounds
  ntcopy compare bench/record/2026-11-21-A bench/record/2026-12-01-A --json
  ntcopy report --compare A B --out compare.html

The same cells of both sides are held against each other, with the ratio of their ratios: each ratio
was measured interleaved on its own side, so the speed of the machine is not in it. What differs in
the machines comes first. Where several records of a side have the same cell, the newest counts.

Exit codes: 0 done; 1 failed; 2 usage; 3 the two sides have nothing in common.";

/// Arguments.
#[derive(clap::Args)]
#[command(
    about = "Hold two records, or folders of records, against each other, with intervals",
    after_help = EXAMPLES
)]
pub struct Args {
    /// A record, or a folder with records in it
    #[arg(value_name = "A")]
    a: PathBuf,
    /// Another one
    #[arg(value_name = "B")]
    b: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let (in_a, in_b) = (records::read(&args.a)?, records::read(&args.b)?);
    let comparison = compare::compare(&in_a, &in_b);
    let (a_place, b_place) = (args.a.display().to_string(), args.b.display().to_string());
    let a = Side { place: &a_place, records: &in_a };
    let b = Side { place: &b_place, records: &in_b };
    let text = if args.json {
        format!("{:#}\n", object(&a, &b, &comparison))
    } else {
        colour::of(&terminal(&a, &b, &comparison))
    };
    print!("{text}");
    let is_empty = comparison.cells.is_empty();
    Ok(if is_empty { ExitCode::from(NOT_AVAILABLE) } else { ExitCode::SUCCESS })
}
