//! `ntcopy stat`: what the kernel did with the hints since it began to count.

mod json;
mod prometheus;
mod text;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::bail;
use ntcopy::socket::Counters;
use ntcopy::{socket, uapi};

/// What a user should know where the kernel's setting is 0.
pub const OFF: &str = "net.core.ntcopy is 0: hints are ignored, and nothing is counted";

const HELP: &str = "\
Examples:
  ntcopy stat                              what was counted so far, and why
  watch ntcopy stat                        the same, again and again
  ntcopy stat --pid $(pidof -s storaged)   in the network namespace of that process
  ntcopy stat --json | jq .nontemporal_share
  ntcopy stat --prometheus                 the counters as Prometheus reads them
  ntcopy stat --prometheus --out /var/lib/prometheus/node-exporter/ntcopy.prom

Every byte that a hinted send accepted is counted once: as non-temporal, or under the reason why \
it was copied normally. The kernel counts per network namespace. The keys of --json are those of \
/proc/net/ntcopy_stat, in bytes; nontemporal_share is null where nothing was hinted.

--prometheus prints ntcopy_hinted_bytes_total by outcome, ntcopy_available and ntcopy_setting. --out \
replaces FILE whole, so that node_exporter's textfile collector never reads half of one; \
ntcopy-stat.timer does so every 15 s. On a kernel without the counters the text says \
ntcopy_available 0.

Ends with 3 on a kernel that does not know MSG_NTCOPY, and has not the module either.";

#[derive(clap::Args)]
#[command(
    about = "Show what the kernel did with the hints",
    long_about = "Show what the kernel did with the hints so far: the hinted bytes, the share of \
                  them that was copied non-temporally, and that of every reason for which the \
                  others were not. Needs no root and changes nothing.",
    after_help = HELP
)]
pub struct Args {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Print Prometheus' text format
    #[arg(long, conflicts_with = "json")]
    prometheus: bool,
    /// With --prometheus: replace FILE by it
    #[arg(long, value_name = "FILE", requires = "prometheus")]
    out: Option<PathBuf>,
    /// Look into the network namespace of this process
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    pid: Option<u32>,
    /// Read the counters from FILE, such as a copy that was kept
    #[arg(long, value_name = "FILE", conflicts_with = "pid")]
    file: Option<PathBuf>,
}

/// Whose counters, and where they are.
struct Source {
    path: PathBuf,
    pid: Option<u32>,
    is_file: bool,
}

impl Source {
    fn new(args: &Args) -> Self {
        let path = match (&args.file, args.pid) {
            (Some(file), _) => file.clone(),
            (None, Some(pid)) => PathBuf::from(format!("/proc/{pid}/net/ntcopy_stat")),
            (None, None) => PathBuf::from(uapi::STAT_PATH),
        };
        Source { path, pid: args.pid, is_file: args.file.is_some() }
    }

    /// `None` where there are no counters to be read.
    fn read(&self) -> anyhow::Result<Option<Counters>> {
        Ok(socket::counters_in(&self.path)?)
    }

    /// Why there is nothing to be read, from the outset.
    fn absence(&self) -> anyhow::Result<ExitCode> {
        if self.is_file {
            bail!("there is no file {}", self.path.display());
        }
        if let Some(pid) = self.pid.filter(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            bail!("there is no process {pid}");
        }
        eprintln!(
            "ntcopy: this kernel does not know MSG_NTCOPY: it has no {}. The module brings it \
             (ntcopy module status); a kernel that has it: ntcopy kernel boot -- COMMAND",
            uapi::STAT_PATH
        );
        Ok(ExitCode::from(super::NOT_AVAILABLE))
    }

    /// The machine's net.core.ntcopy, where it is to be seen; a file may be another machine's.
    fn setting(&self) -> Option<u8> {
        if self.is_file { None } else { socket::sysctl().ntcopy }
    }
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let source = Source::new(&args);
    if args.prometheus {
        return prometheus::run(&args, &source);
    }
    let Some(counters) = source.read()? else {
        return source.absence();
    };
    if source.setting() == Some(uapi::SYSCTL_OFF) {
        eprintln!("ntcopy: {OFF}");
    }
    print!("{}", if args.json { json::totals(&counters) } else { text::totals(&counters) });
    Ok(ExitCode::SUCCESS)
}

/// Bytes that hinted sends accepted: the sum over all that is counted, also under names that only
/// a later kernel knows.
fn hinted_bytes(counters: &Counters) -> u64 {
    counters.as_map().values().fold(0, |sum, bytes| sum.saturating_add(*bytes))
}
