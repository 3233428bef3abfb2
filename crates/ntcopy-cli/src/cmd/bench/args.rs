//! What every experiment takes on the command line.

use std::path::PathBuf;
use std::time::Duration;

/// Where a booted kernel is put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pin {
    /// All of it on one CPU of the host.
    Cpu(usize),
    /// Wherever the host likes.
    None,
}

impl std::str::FromStr for Pin {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "none" => Ok(Pin::None),
            cpu => cpu.parse().map(Pin::Cpu).map_err(|_| "a CPU's number, or none".to_owned()),
        }
    }
}

/// How much is sampled.
#[derive(clap::Args, Clone, Copy)]
pub struct Extent {
    /// Interleaved groups of samples, or repetitions, at least 5 [default: see --list]
    #[arg(long, value_name = "N")]
    pub pairs: Option<u32>,
    /// Seconds, all cells together, in which a cell is sampled beyond --pairs until it is a win, a
    /// loss or equal [default: 60; none with --pairs or --quick]
    #[arg(long, value_name = "SECONDS")]
    pub budget: Option<u32>,
    /// Fewer and shorter samples
    #[arg(long)]
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

/// What every experiment takes.
#[derive(clap::Args)]
pub struct Common {
    /// Kernel to measure in: host, or one that `ntcopy kernel` builds and boots
    #[arg(long, value_name = "KERNEL", default_value = "host")]
    pub kernel: String,
    /// CPU of the host that all of a booted kernel is put on, or none [default: the first; none
    /// for the free-running form]
    #[arg(long, value_name = "CPU")]
    pub pin: Option<Pin>,
    #[command(flatten)]
    pub extent: Extent,
    /// Directory of the record [default: ~/.local/share/ntcopy/records/ID]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Print one JSON object instead of the table
    #[arg(long)]
    pub json: bool,
    /// Print the experiment's defaults and stop
    #[arg(long)]
    pub list: bool,
    /// Measure under a debug kernel or an emulator too; the record says that it is not a timing
    #[arg(long, hide = true)]
    pub allow_not_a_timing: bool,
    /// Seconds without a byte moving after which a run has failed
    #[arg(long, hide = true, value_name = "SECONDS", default_value = "30",
          value_parser = clap::value_parser!(u64).range(1..))]
    pub patience: u64,
    /// Write the record and print nothing: for the inside of a booted kernel.
    #[arg(long, hide = true)]
    pub measure_only: bool,
    /// Cause a fault, to see that it is noticed: for tests.
    #[arg(long, hide = true, value_parser = ["wrong-byte"])]
    pub inject: Option<String>,
}
