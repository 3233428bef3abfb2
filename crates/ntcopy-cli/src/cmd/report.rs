//! `ntcopy report`: reads records, writes what they say. Measures nothing.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::error::ErrorKind;
use ntcopy_record::Record;
use ntcopy_record::{compare, verdict};
use ntcopy_report::compare::Side;
use ntcopy_report::{csv, decision, json, page, splice, table};

use super::colour;

/// Arguments.
#[derive(clap::Args)]
#[command(
    about = "Make a page, a table or JSON from records",
    long_about = "Make a page, a table or JSON from records. Without an option, the table and \
                  the verdict of each record are printed. Nothing is measured: the same records \
                  always give the same output.",
    after_help = "Examples:\n  ntcopy report records/2026-11-21-unix --out report.html\n  ntcopy \
                  report A B C --out all.html\n  ntcopy report records/2026-11-21 --csv      every \
                  record in that folder\n  ntcopy report --compare A B --out compare.html\n  ntcopy \
                  report A --splice README.md"
)]
pub struct Args {
    /// Records, or folders with records in them
    #[arg(required_unless_present = "compare", value_name = "RECORD")]
    records: Vec<PathBuf>,
    /// Hold two records, or folders of records, against each other, on one page
    #[arg(long, num_args = 2, value_names = ["A", "B"], requires = "out",
          conflicts_with = "records")]
    compare: Vec<PathBuf>,
    /// Write one self-contained HTML page with all the records
    #[arg(long, value_name = "FILE.html", group = "form")]
    out: Option<PathBuf>,
    /// Print the record's table as Markdown
    #[arg(long, group = "form")]
    markdown: bool,
    /// Replace what stands between <!-- table:begin --> and <!-- table:end --> in FILE by the
    /// record's table
    #[arg(long, value_name = "FILE", group = "form")]
    splice: Option<PathBuf>,
    /// Print the record's results as one JSON object
    #[arg(long, group = "form")]
    json: bool,
    /// Print the results as comma-separated values, a line a result
    #[arg(long, group = "form")]
    csv: bool,
}

/// Runs it.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    if let (Some(out), [a, b]) = (&args.out, args.compare.as_slice()) {
        return compared(a, b, out);
    }
    let mut records = Vec::new();
    for place in &args.records {
        records.extend(super::records::read(place)?);
    }
    let is_for_one = args.markdown || args.json || args.splice.is_some();
    if is_for_one && records.len() > 1 {
        let message = format!(
            "--markdown, --splice and --json take one record, and these are {}; --out and --csv \
             take any number\n",
            records.len()
        );
        clap::Error::raw(ErrorKind::WrongNumberOfValues, message).exit();
    }
    if let Some(out) = &args.out {
        write_page(&records, out)?;
    } else if args.csv {
        print!("{}", csv::of(&records.iter().collect::<Vec<&Record>>()));
    } else if let (Some(document), [record]) = (&args.splice, records.as_slice()) {
        splice_into(document, &table::markdown(record))?;
    } else {
        for record in &records {
            let text = if args.markdown {
                table::markdown(record)
            } else if args.json {
                format!("{}\n", serde_json::to_string_pretty(&json::object(record))?)
            } else {
                colour::of(&plain(record, records.len() > 1))
            };
            print!("{text}");
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Table and verdict.
fn plain(record: &Record, named: bool) -> String {
    let mut text = if named { format!("== {}\n", record.header.id) } else { String::new() };
    text.push_str(&table::terminal(record));
    text.push('\n');
    text.push_str(&table::bars(record));
    for sentence in verdict::sentences(record) {
        text.push_str(&sentence);
        text.push('\n');
    }
    if named {
        text.push('\n');
    }
    text
}

/// The page of two sides.
fn compared(a: &Path, b: &Path, out: &Path) -> anyhow::Result<ExitCode> {
    let (in_a, in_b) = (super::records::read(a)?, super::records::read(b)?);
    let comparison = compare::compare(&in_a, &in_b);
    let (a_place, b_place) = (a.display().to_string(), b.display().to_string());
    let a = Side { place: &a_place, records: &in_a };
    let b = Side { place: &b_place, records: &in_b };
    replace(out, &page::compare::html(&a, &b, &comparison, &command_line()), 0o666)?;
    Ok(ExitCode::SUCCESS)
}

fn write_page(records: &[Record], out: &Path) -> anyhow::Result<()> {
    replace(out, &page::html(records, &command_line()), 0o666)?;
    // What the page says first, for whoever is not going to open it.
    let decisions = decision::all(records);
    for decision in &decisions {
        eprintln!("{}", decision.text(decisions.len() > 1));
    }
    Ok(())
}

/// The command line, for a page to state.
pub fn command_line() -> Vec<String> {
    let mut command: Vec<String> =
        std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    if let Some(program) = command.first_mut() {
        // Where the program lies says nothing to whoever reads the page.
        *program = "ntcopy".to_owned();
    }
    command
}

fn splice_into(document: &Path, table: &str) -> anyhow::Result<()> {
    let name = document.display();
    let before = fs::read_to_string(document).with_context(|| format!("cannot read {name}"))?;
    let mode = fs::metadata(document).map_or(0o666, |data| data.permissions().mode() & 0o7777);
    let after = splice::splice(&before, table).with_context(|| format!("in {name}"))?;
    if after == before {
        return Ok(());
    }
    replace(document, &after, mode)
}

/// Writes a file whole or not at all; a device or a pipe is written to as it is.
pub fn replace(path: &Path, text: &str, mode: u32) -> anyhow::Result<()> {
    let context = || format!("cannot write {}", path.display());
    // Through a link, so that the link stays one.
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    if fs::metadata(path).is_ok_and(|data| !data.is_file()) {
        return fs::write(path, text).with_context(context);
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let mut file = tempfile::Builder::new()
        .permissions(fs::Permissions::from_mode(mode))
        .tempfile_in(folder.unwrap_or(Path::new(".")))
        .with_context(context)?;
    file.write_all(text.as_bytes()).with_context(context)?;
    file.persist(path).with_context(context)?;
    Ok(())
}
