//! What every experiment takes on the command line.

use std::path::PathBuf;
use std::time::Duration;

/// How much is sampled.
#[derive(clap::Args, Clone, Copy)]
pub struct Extent {
    /// Interleaved groups of samples, or repetitions, at least 5 [default: see --list]
    #[arg(long, global = true, value_name = "N")]
    pub pairs: Option<u32>,
    /// Seconds, all cells together, in which a cell is sampled beyond --pairs until it is a win, a
    /// loss or equal [default: 60; none with --pairs or --quick]
    #[arg(long, global = true, value_name = "SECONDS")]
    pub budget: Option<u32>,
    /// Fewer cells, fewer and shorter samples
    #[arg(long, global = true)]
    pub quick: bool,
}

const DEFAULT_BUDGET: Duration = Duration::from_secs(60);

impl Extent {
    /// How long to sample at most; none: a number of pairs that is set.
    pub fn budget(&self) -> Option<Duration> {
        match self.budget {
            Some(seconds) => Some(Duration::from_secs(seconds.into())),
            None => (!self.quick && self.pairs.is_none()).then_some(DEFAULT_BUDGET),
        }
    }
}

/// What every experiment takes. Its help is in that of `ntcopy bench`, once.
#[derive(clap::Args)]
pub struct Common {
    /// Kernel to measure in: host, or one that is booted for it, as um; see ntcopy kernel build --help
    #[arg(long, global = true, value_name = "KERNEL", default_value = "host")]
    pub kernel: String,
    #[command(flatten)]
    pub extent: Extent,
    /// Folder of the record [default: ~/.local/share/ntcopy/records/ID]
    #[arg(long, global = true, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Print one JSON object instead of the table
    #[arg(long, global = true)]
    pub json: bool,
    /// Print the experiment's defaults and stop
    #[arg(long, global = true)]
    pub list: bool,
    /// Measure under a debug kernel or an emulator too; the record says that it is not a timing
    #[arg(long, global = true, hide = true)]
    pub allow_not_a_timing: bool,
    /// Seconds without progress after which a run has failed: for tests.
    #[arg(long, global = true, hide = true, value_name = "SECONDS", default_value = "60",
          value_parser = clap::value_parser!(u64).range(1..))]
    pub patience: u64,
    /// Write the record and print nothing: for the inside of a booted kernel.
    #[arg(long, global = true, hide = true)]
    pub measure_only: bool,
    /// Cause a fault, to see that it is noticed: for tests.
    #[arg(long, global = true, hide = true, value_parser = ["wrong-byte"])]
    pub inject: Option<String>,
}
