//! `ntcopy ddio`: where devices' writes go on Intel servers, and how much of the cache they get.
//!
//! Everything is read below one root, so that recorded machines are handled by the code that
//! handles the real one. Nothing is written without `--yes`. `docs/reference/hardware.md` says where each
//! register's layout comes from.

mod change;
mod cpu;
mod json;
mod msr;
mod pci;
mod ports;
mod register;
mod root;
mod saved;
mod survey;
mod text;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::error::ErrorKind;

use self::register::Change;
use self::root::Root;
use self::survey::Survey;

const HELP: &str = "\
Examples:
  sudo ntcopy ddio status
  sudo ntcopy ddio ways 4                          what would be written
  sudo ntcopy ddio ways 4 --yes                    writes it
  sudo ntcopy ddio off --port 0000:17:00.0 --yes   for the devices behind that root port
  sudo ntcopy ddio restore --yes                   as it was before the first change

Without --yes nothing is written. What is written lasts until the next boot. In a guest, and on a \
CPU whose registers are not known, nothing is written at all, and the exit code is 3.";

/// Arguments.
#[derive(clap::Args)]
#[command(
    about = "Show and set how Intel servers put devices' writes into the cache",
    long_about = "Show and set how Intel servers put devices' writes into the last-level cache \
                  (Data Direct I/O): the ways that they may allocate in, and the switch of each \
                  root port. AMD and Arm get a word about what they do instead.",
    after_help = HELP
)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
    /// Print one JSON object
    #[arg(long, global = true)]
    json: bool,
    /// Read and write below DIR instead of /: a recorded machine
    #[arg(long, value_name = "DIR", default_value = "/", hide_default_value = true, global = true)]
    sysroot: PathBuf,
}

#[derive(clap::Subcommand)]
enum Verb {
    /// Show CPU, cache ways and root ports
    Status,
    /// Let devices' writes allocate in the N highest ways of the last-level cache
    Ways {
        /// How many ways: 2 or more
        #[arg(value_name = "N", value_parser = parse_ways)]
        ways: u32,
        #[command(flatten)]
        go: Go,
    },
    /// Let devices' writes allocate in the last-level cache
    On(Ports),
    /// Send devices' writes to memory
    Off(Ports),
    /// Write back what was there before the first change since the machine was started
    Restore {
        #[command(flatten)]
        go: Go,
    },
}

#[derive(clap::Args)]
struct Ports {
    /// Only this root port, as `status` names it; may be given more than once [default: every
    /// root port of the CPU]
    #[arg(long = "port", value_name = "ADDRESS")]
    ports: Vec<String>,
    #[command(flatten)]
    go: Go,
}

#[derive(clap::Args)]
struct Go {
    /// Write; without it, say what would be written
    #[arg(long)]
    yes: bool,
}

fn parse_ways(text: &str) -> Result<u32, String> {
    let ways: u32 = text.parse().map_err(|_| format!("`{text}` is not a number of ways"))?;
    if ways < msr::LEAST_WAYS {
        return Err(format!(
            "{ways} is fewer than {}, the least that the hardware takes; `ntcopy ddio off` sends \
             writes past the cache",
            msr::LEAST_WAYS
        ));
    }
    Ok(ways)
}

/// Why nothing was done.
#[derive(Debug, thiserror::Error)]
enum Refusal {
    /// The command line does not fit this machine.
    #[error("{0}")]
    Usage(String),
    /// It is not to be had here.
    #[error("{0}")]
    Unavailable(String),
    /// It was tried, and failed.
    #[error("{0}")]
    Failed(String),
}

/// Runs it.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let root = Root::new(&args.sysroot);
    match act(&args, &root) {
        Ok(code) => Ok(code),
        Err(Refusal::Usage(why)) => {
            clap::Error::raw(ErrorKind::ValueValidation, format!("{why}\n")).exit()
        }
        Err(Refusal::Unavailable(why)) => {
            eprintln!("ntcopy: {why}");
            Ok(ExitCode::from(super::NOT_AVAILABLE))
        }
        Err(Refusal::Failed(why)) => Err(anyhow::anyhow!(why)),
    }
}

fn act(args: &Args, root: &Root) -> Result<ExitCode, Refusal> {
    let survey = Survey::take(root)?;
    let (changes, go) = match &args.verb {
        Verb::Status => return status(args, root, &survey),
        Verb::Ways { ways, go } => (change::ways(&survey, *ways)?, go),
        Verb::On(ports) => (change::switch(&survey, &ports.ports, true)?, &ports.go),
        Verb::Off(ports) => (change::switch(&survey, &ports.ports, false)?, &ports.go),
        Verb::Restore { go } => return restore(args, root, &survey, go),
    };
    if go.yes {
        saved::remember(root, &changes)?;
        change::write(root, &changes)?;
    }
    say(args, &survey, &changes, go.yes)
}

fn status(args: &Args, root: &Root, survey: &Survey) -> Result<ExitCode, Refusal> {
    let saved = saved::read(root)?.is_some();
    let text = if args.json { json::status(survey, saved) } else { text::status(survey, saved) };
    print(&text)?;
    let told = survey.tells_something();
    Ok(if told { ExitCode::SUCCESS } else { ExitCode::from(super::NOT_AVAILABLE) })
}

fn restore(args: &Args, root: &Root, survey: &Survey, go: &Go) -> Result<ExitCode, Refusal> {
    let Some(saved) = saved::read(root)? else {
        return Err(Refusal::Failed(
            "nothing was changed since this machine was started, so there is nothing to restore"
                .to_owned(),
        ));
    };
    survey.writable()?;
    let changes = change::back(root, survey, &saved)?;
    if go.yes {
        change::write(root, &changes)?;
        saved::forget(root)?;
    }
    say(args, survey, &changes, go.yes)
}

fn say(args: &Args, survey: &Survey, changes: &[Change], yes: bool) -> Result<ExitCode, Refusal> {
    let text =
        if args.json { json::changes(changes, yes) } else { text::changes(survey, changes, yes) };
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn print(text: &str) -> Result<(), Refusal> {
    super::report::print(text).map_err(|error| Refusal::Failed(error.to_string()))
}
