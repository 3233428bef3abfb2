//! `ntcopy report`: reads records, writes what they say. Measures nothing.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, ensure};
use clap::error::ErrorKind;
use ntcopy_bench::machine;
use ntcopy_judge::{Judged, compare};
use ntcopy_report::compare::{Side, object, terminal};
use ntcopy_report::{json, page, summary, table, verdict};

use super::{NOT_AVAILABLE, sources};
use crate::say::sentences;

const EXAMPLES: &str = "\
Examples:
  ntcopy report                                the tables of what ntcopy advise goes by here
  ntcopy report --out report.html              a page of it, which says what ntcopy advise says
  ntcopy report A --against B                  two machines, two dates, two versions

With --against the same cells of both sides are set side by side, with the ratio of their ratios. \
Each ratio was measured interleaved on its own side, so the speed of the machine is not in it. What \
differs between the machines comes first. Where a side has a cell several times, the newest counts.

Without RECORD it takes what ntcopy advise takes: the records of this machine's CPU in the store, the \
newest first; --json and --markdown print the newest alone. What in a folder is no record is named \
and left out.

Exit codes: 0 done; 1 failed; 2 usage; 3 the two sides have nothing in common.";

#[derive(clap::Args)]
#[command(
    about = "Make a table, a page or JSON from records, or compare two sets of them",
    long_about = "Make a table, a page or JSON from records, or compare two sets of them. Nothing \
                  is measured: the same records always give the same output.",
    after_help = EXAMPLES
)]
pub struct Args {
    /// Records, or folders with records in them [default: those of this machine's CPU in
    /// ~/.local/share/ntcopy/records]
    #[arg(value_name = "RECORD")]
    records: Vec<PathBuf>,
    /// Compare with these records, or folders of records
    #[arg(long, value_name = "RECORD", num_args = 1.., conflicts_with = "markdown")]
    against: Vec<PathBuf>,
    /// Write one self-contained HTML page
    #[arg(long, value_name = "FILE.html", group = "form", value_parser = page_file)]
    out: Option<PathBuf>,
    /// Print the record's table as Markdown
    #[arg(long, group = "form")]
    markdown: bool,
    /// Print one JSON object: of one record, or of the comparison
    #[arg(long, group = "form")]
    json: bool,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let mut records = match args.records.as_slice() {
        [] => of_this_machine()?,
        places => sources::all(places)?,
    };
    if !args.against.is_empty() {
        return compared(&args, &records);
    }
    if (args.markdown || args.json) && args.records.is_empty() {
        records.truncate(1);
    }
    if (args.markdown || args.json) && records.len() > 1 {
        let message = format!(
            "--markdown and --json take one record, and these are {}; --out takes any \
             number\n",
            records.len()
        );
        clap::Error::raw(ErrorKind::WrongNumberOfValues, message).exit();
    }
    if let Some(out) = &args.out {
        write_page(&records, out)?;
    } else {
        for record in &records {
            if args.markdown {
                print!("{}", table::markdown(record));
            } else if args.json {
                println!("{}", serde_json::to_string_pretty(&json::object(record))?);
            } else {
                let text = text(record);
                match records.len() {
                    1 => print!("{text}"),
                    _ => println!("== {}\n{text}", record.header.id),
                }
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Those that `ntcopy advise` goes by, and a line that says which these are.
fn of_this_machine() -> anyhow::Result<Vec<Judged>> {
    let machine = machine::describe();
    let (records, listed) = sources::counted(sources::read(&[])?, &machine);
    let origin = sources::origin(&[], &listed, &machine);
    ensure!(
        !records.is_empty(),
        "{origin}: ntcopy bench makes one, and ntcopy report RECORD takes those of other machines"
    );
    eprintln!("ntcopy: {origin}");
    Ok(records)
}

/// A record's tables, and what they come to.
pub fn text(record: &Judged) -> String {
    let sentences = sentences(&verdict::sentences(record));
    format!("{}\n{sentences}", table::terminal(record))
}

/// A page's file, whose ending says so; what is no file, such as `/dev/stdout`, has none.
pub fn page_file(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    let is_page = path.extension().is_some_and(|ending| ending == "html" || ending == "htm");
    let is_other = || fs::metadata(&path).is_ok_and(|data| !data.is_file() && !data.is_dir());
    if is_page || is_other() {
        return Ok(path);
    }
    Err("a page's name ends in .html or .htm; --markdown and --json print the other forms"
        .to_owned())
}

/// The records beside those of `--against`.
fn compared(args: &Args, records: &[Judged]) -> anyhow::Result<ExitCode> {
    let others = sources::all(&args.against)?;
    let comparison = compare::compare(records, &others);
    let (a_place, b_place) = (names(&args.records), names(&args.against));
    let a = Side { place: &a_place, records };
    let b = Side { place: &b_place, records: &others };
    if let Some(out) = &args.out {
        replace(out, page::compare::html(&a, &b, &comparison, &command_line()), 0o666)?;
        return Ok(ExitCode::SUCCESS);
    }
    if args.json {
        println!("{:#}", object(&a, &b, &comparison));
    } else {
        print!("{}", terminal(&a, &b, &comparison));
    }
    let is_empty = comparison.cells.is_empty();
    Ok(if is_empty { ExitCode::from(NOT_AVAILABLE) } else { ExitCode::SUCCESS })
}

/// The places of a side, as they were typed.
fn names(places: &[PathBuf]) -> String {
    let names: Vec<String> = places.iter().map(|place| place.display().to_string()).collect();
    names.join(" ")
}

fn write_page(records: &[Judged], out: &Path) -> anyhow::Result<()> {
    let summaries = summary::summaries(records);
    replace(out, page::html(records, &summaries, &command_line()), 0o666)?;
    // What the page says first, for whoever is not going to open it.
    for summary in &summaries {
        if summaries.len() > 1 {
            eprintln!("{}", summary.cpu);
        }
        summary.lines().iter().for_each(|line| eprintln!("{line}"));
    }
    eprintln!("page:    {}", out.display());
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

/// The mode of a file that others read whatever the umask.
pub const READABLE: u32 = 0o644;

/// Writes a file whole or not at all; a device or a pipe is written to as it is.
pub fn replace(path: &Path, bytes: impl AsRef<[u8]>, mode: u32) -> anyhow::Result<()> {
    let context = || format!("cannot write {}", path.display());
    // Through a link, so that the link stays one.
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    if fs::metadata(path).is_ok_and(|data| !data.is_file()) {
        return fs::write(path, bytes).with_context(context);
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let mut file = tempfile::Builder::new()
        .permissions(fs::Permissions::from_mode(mode))
        .tempfile_in(folder.unwrap_or(Path::new(".")))
        .with_context(context)?;
    if mode == READABLE {
        let exact = fs::Permissions::from_mode(mode);
        file.as_file().set_permissions(exact).with_context(context)?;
    }
    file.write_all(bytes.as_ref()).with_context(context)?;
    file.persist(path).with_context(context)?;
    Ok(())
}
