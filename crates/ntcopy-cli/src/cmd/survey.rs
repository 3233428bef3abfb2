//! `ntcopy survey`: the same experiments on every machine of a fleet, and what they say of its CPU
//! models.

mod add;
mod gather;
mod list;
mod measure;
mod report;
mod run;
mod say;

use std::process::ExitCode;

use ntcopy_survey::engine::{Ask, DEFAULT_EXPERIMENTS, EXPERIMENTS};
use ntcopy_survey::store::{Place, Store};

/// What of a survey is to be done.
#[derive(clap::Subcommand)]
#[command(about = "Measure a fleet, by its own scheduler, and say what its CPU models want")]
pub enum Args {
    /// Measure every node that has not been, and store the records as they come
    Run(Box<run::Args>),
    /// Per CPU model: from which size it gains, and which machines are unlike their model
    Report(report::Args),
    /// Store what the pods of a Kubernetes Job printed
    Gather(gather::Args),
    /// Store records that are here already, or what `survey measure` printed
    Add(add::Args),
    /// The records that there are
    List(list::ListArgs),
    /// Write records out of the store into folders
    Export(list::ExportArgs),
    /// What runs on a node: measures, and prints the records for `survey run`, `gather` or `add`
    Measure(measure::Args),
}

/// Runs it.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args {
        Args::Run(args) => run::run(&args),
        Args::Report(args) => report::run(args),
        Args::Gather(args) => gather::run(&args),
        Args::Add(args) => add::run(&args),
        Args::List(args) => list::list(&args),
        Args::Export(args) => list::export(&args),
        Args::Measure(args) => measure::run(&args),
    }
}

/// Which store.
#[derive(clap::Args, Clone)]
pub struct StoreArg {
    /// A SQLite file, or a postgresql:// URL [default: what NTCOPY_SURVEY_STORE says, or
    /// ~/.local/share/ntcopy/survey.sqlite]
    #[arg(long, value_name = "FILE|URL")]
    store: Option<String>,
}

impl StoreArg {
    fn place(&self) -> anyhow::Result<Place> {
        Ok(self.store.as_deref().map_or_else(Place::default_place, Place::parse)?)
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
