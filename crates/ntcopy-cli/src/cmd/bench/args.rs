//! What every experiment takes on the command line.

use std::path::PathBuf;
use std::time::Duration;

use crate::cmd::kernel::KernelName;

/// How much is sampled.
#[derive(clap::Args, Clone, Copy)]
pub struct Extent {
    /// Interleaved groups of samples, or repetitions, at least 5 [default: see --list]
    #[arg(long, value_name = "N")]
    pub pairs: Option<u32>,
    #[arg(long, value_name = "SECONDS", help = format!(
        "Seconds, all cells together, in which a cell is sampled beyond --pairs until it is a win, a \
         loss or equal [default: {}; none with --pairs or --quick]",
        DEFAULT_BUDGET.as_secs()
    ))]
    pub budget: Option<u32>,
    /// Fewer cells, fewer and shorter samples
    #[arg(long)]
    pub quick: bool,
}

const DEFAULT_BUDGET: Duration = Duration::from_secs(60);
pub const PATIENCE: Duration = Duration::from_secs(60);

impl Extent {
    /// How long to sample at most; none: a number of pairs that is set.
    pub fn budget(&self) -> Option<Duration> {
        match self.budget {
            Some(seconds) => Some(Duration::from_secs(seconds.into())),
            None => (!self.quick && self.pairs.is_none()).then_some(DEFAULT_BUDGET),
        }
    }
}

/// Where something is measured, and what is said of it.
#[derive(clap::Args, Clone)]
pub struct Place {
    /// Kernel to measure in: host, or one that is booted for it; auto is kvm where KVM runs guests
    /// and ntcopy kernel build has made its kernel, else um. See ntcopy kernel build --help
    #[arg(long, value_name = "KERNEL", default_value = "host",
          value_parser = KernelName(&["host", "auto"]))]
    pub kernel: String,
    /// Folder of the record [default: ~/.local/share/ntcopy/records/ID]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Print one JSON object instead of the table
    #[arg(long)]
    pub json: bool,
    /// Measure under a debug kernel or an emulator too; the record says that it is not a timing
    #[arg(long, hide = true)]
    pub allow_not_a_timing: bool,
    /// Write the record and print nothing: for the inside of a booted kernel.
    #[arg(long, hide = true)]
    pub measure_only: bool,
}

impl Place {
    /// Chooses the kernel that `auto` is, and says which.
    pub fn choose(&mut self) -> Result<(), ntcopy_kernel::Error> {
        if self.kernel == "auto" {
            let (kind, why) = ntcopy_kernel::boot::best()?;
            eprintln!("kernel: {kind} ({why})");
            self.kernel = kind.to_string();
        }
        Ok(())
    }
}

/// What every experiment takes. Its help is in that of `ntcopy bench`, once.
#[derive(clap::Args)]
#[command(mut_args(|arg| arg.global(true)))]
pub struct Common {
    #[command(flatten)]
    pub place: Place,
    #[command(flatten)]
    pub extent: Extent,
    /// Print the experiment's defaults and stop
    #[arg(long)]
    pub list: bool,
    /// Seconds without progress after which a run has failed: for tests.
    #[arg(long, hide = true, value_name = "SECONDS", default_value_t = PATIENCE.as_secs(),
          value_parser = clap::value_parser!(u64).range(1..))]
    pub patience: u64,
    /// Cause a fault, to see that it is noticed: for tests.
    #[arg(long, hide = true, value_parser = ["wrong-byte"])]
    pub inject: Option<String>,
}
