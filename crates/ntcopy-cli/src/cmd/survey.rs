//! `ntcopy survey`: the same experiments on every machine of a fleet, and what they say of its CPU
//! models.

mod add;
mod list;
mod measure;
mod report;
mod run;

use std::path::PathBuf;
use std::process::ExitCode;

use ntcopy_record::lists::unique;
use ntcopy_survey::engine::{Ask, DEFAULT_EXPERIMENTS, EXPERIMENTS};
use ntcopy_survey::store::{self, Store};

use crate::cmd::kernel::KernelName;

const HELP: &str = "\
Examples:
  ntcopy survey run --on ssh --nodes web7,web8     measure two machines, and keep the records
  ntcopy survey report                             what their CPU models gain
  ntcopy survey export --out records               the records, for ntcopy advise and report

A survey is a SQLite file. docs/reference/record.md has the rest.";

#[derive(clap::Args)]
#[command(
    about = "Measure a fleet, by its own scheduler, and say what its CPU models gain",
    after_help = HELP
)]
pub struct Args {
    #[command(flatten)]
    store: StoreArg,
    #[command(subcommand)]
    verb: Verb,
}

/// What of a survey is to be done.
#[derive(clap::Subcommand)]
enum Verb {
    /// Measure every node that has not been, and store the records as they come
    Run(Box<run::Args>),
    /// Per CPU model: from which size it gains, and which machines are unlike their model
    Report(report::Args),
    /// Store records that are here already
    Add(add::Args),
    /// The records that there are
    List,
    /// Write records out of the store into folders
    Export(list::ExportArgs),
    /// What runs on a node: measures, and prints the records for `survey run`
    Measure(measure::Args),
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let store = &args.store;
    match args.verb {
        Verb::Run(args) => run::run(store, &args),
        Verb::Report(args) => report::run(store, &args),
        Verb::Add(args) => add::run(store, &args),
        Verb::List => list::list(store),
        Verb::Export(args) => list::export(store, &args),
        Verb::Measure(args) => measure::run(store, &args),
    }
}

/// What every command of a survey takes. Its help is in that of `ntcopy survey`, once.
#[derive(clap::Args)]
pub struct StoreArg {
    /// The survey's SQLite file [default: what NTCOPY_SURVEY_STORE says, or
    /// ~/.local/share/ntcopy/survey.sqlite]
    #[arg(long, global = true, value_name = "FILE")]
    store: Option<String>,
    /// The fleet, in a file that has several [default: all, or local where records are stored]
    #[arg(long, global = true, value_name = "NAME")]
    fleet: Option<String>,
    /// Print one JSON object
    #[arg(long, global = true)]
    json: bool,
}

impl StoreArg {
    fn place(&self) -> anyhow::Result<PathBuf> {
        Ok(self.store.as_deref().map_or_else(store::default_place, store::place)?)
    }

    /// The fleet that records are stored for.
    fn fleet(&self) -> &str {
        self.fleet.as_deref().unwrap_or("local")
    }

    /// Opens it; makes it if it is not there.
    fn open(&self) -> anyhow::Result<Store> {
        Ok(Store::open(&self.place()?)?)
    }

    /// Opens it if it is there.
    fn open_existing(&self) -> anyhow::Result<Store> {
        Ok(Store::open_existing(&self.place()?)?)
    }
}

/// What is asked of a node.
#[derive(clap::Args, Clone)]
pub struct AskArgs {
    /// Experiments; the default ones need no kernel of ours
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = EXPERIMENTS,
          default_values = &EXPERIMENTS[..DEFAULT_EXPERIMENTS])]
    experiments: Vec<String>,
    /// Fewer and shorter samples
    #[arg(long)]
    quick: bool,
    /// Kernel to measure in, as `ntcopy bench` takes it: one that the nodes have built
    #[arg(long, value_name = "KERNEL", value_parser = KernelName(&["host", "auto"]))]
    kernel: Option<String>,
}

impl AskArgs {
    fn ask(&self) -> Ask {
        let experiments = unique(self.experiments.iter().cloned());
        let kernel = self.kernel.clone().filter(|kernel| kernel != "host");
        Ask { experiments, quick: self.quick, kernel }
    }
}
