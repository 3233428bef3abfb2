//! `ntcopy survey`: the same experiments on every machine of a fleet, and what they say of its CPU
//! models.

mod add;
mod list;
mod measure;
mod report;
mod run;

use std::path::PathBuf;
use std::process::ExitCode;

use ntcopy_record::units::Bytes;
use ntcopy_survey::engine::budget::Budget;
use ntcopy_survey::engine::{Ask, DEFAULT_EXPERIMENTS, EXPERIMENTS};
use ntcopy_survey::store::{self, Store};

/// What of a survey is to be done.
#[derive(clap::Subcommand)]
#[command(about = "Measure a fleet, by its own scheduler, and say what its CPU models gain")]
pub enum Args {
    /// Measure every node that has not been, and store the records as they come
    Run(Box<run::Args>),
    /// Per CPU model: from which size it gains, and which machines are unlike their model
    Report(report::Args),
    /// Store records that are here already, or what `survey measure` printed
    Add(add::Args),
    /// The records that there are
    List(list::ListArgs),
    /// Write records out of the store into folders
    Export(list::ExportArgs),
    /// What runs on a node: measures, and prints the records for `survey run` or `add`
    Measure(measure::Args),
}

/// Runs it.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args {
        Args::Run(args) => run::run(&args),
        Args::Report(args) => report::run(&args),
        Args::Add(args) => add::run(&args),
        Args::List(args) => list::list(&args),
        Args::Export(args) => list::export(&args),
        Args::Measure(args) => measure::run(&args),
    }
}

/// Which store.
#[derive(clap::Args, Clone)]
pub struct StoreArg {
    /// A SQLite file [default: what NTCOPY_SURVEY_STORE says, or
    /// ~/.local/share/ntcopy/survey.sqlite]
    #[arg(long, value_name = "FILE")]
    store: Option<String>,
}

impl StoreArg {
    fn place(&self) -> anyhow::Result<PathBuf> {
        Ok(self.store.as_deref().map_or_else(store::default_place, store::place)?)
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

/// How much is taken from nodes.
#[derive(clap::Args, Clone)]
pub struct BudgetArg {
    /// The most that all nodes together may send, packed and unpacked
    #[arg(long, value_name = "SIZE", default_value = "16GiB")]
    max_bytes: Bytes,
}

impl BudgetArg {
    fn budget(&self) -> Budget {
        Budget::new(self.max_bytes.0)
    }
}

/// What is asked of a node.
#[derive(clap::Args, Clone)]
pub struct AskArgs {
    /// Experiments [default: memcpy,memset,retention, which need no kernel of ours]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = EXPERIMENTS)]
    experiments: Vec<String>,
    /// Fewer and shorter samples
    #[arg(long)]
    quick: bool,
    /// Kernel to measure in, as `ntcopy bench` takes it: one that the nodes have built
    #[arg(long, value_name = "KERNEL")]
    kernel: Option<String>,
}

impl AskArgs {
    fn ask(&self) -> Ask {
        let mut experiments = self.experiments.clone();
        if experiments.is_empty() {
            let default = EXPERIMENTS[..DEFAULT_EXPERIMENTS].iter();
            experiments = default.map(|name| (*name).to_owned()).collect();
        }
        let mut seen = Vec::new();
        experiments.retain(|name| {
            let is_new = !seen.contains(name);
            seen.push(name.clone());
            is_new
        });
        let kernel = self.kernel.clone().filter(|kernel| kernel != "host");
        Ask { experiments, quick: self.quick, kernel }
    }
}
