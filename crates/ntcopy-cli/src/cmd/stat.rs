//! `ntcopy stat`: what the kernel did with the hints since it began to count.

mod json;
mod prometheus;
mod rates;
mod text;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::bail;
use ntcopy::socket::Counters;
use ntcopy::{socket, uapi};

/// What a user should know where the kernel's setting is 0.
pub const OFF: &str = "net.core.ntcopy is 0: hints are ignored, and no hinted byte is counted";

const HELP: &str = "\
Examples:
  ntcopy stat                              what was counted so far, and what that says
  ntcopy stat --interval 1                 what was sent in each second, until Ctrl-C
  ntcopy stat --pid $(pidof -s storaged)   in the network namespace of that process
  ntcopy stat --json | jq .hinted_bytes
  ntcopy stat --prometheus                 the counters as Prometheus reads them
  ntcopy stat --prometheus --out /var/lib/prometheus/node-exporter/ntcopy.prom

Three counters, of each network namespace: the bytes that were sent on sockets that opted in; of \
these, the bytes of hinted sends; of these, the bytes of sends of which at least one piece went past \
the caches. The first two tell a number that is too high from a socket that did not opt in, the \
last two that the kernel declined. Rates are of what was sent since the line before. nstat shows the kernel's as TcpExtNtcopyBytes, \
TcpExtNtcopyHintedBytes and TcpExtNtcopyBypassedBytes; the module's are in /proc/net/ntcopy.

--prometheus prints ntcopy_bytes_total, ntcopy_hinted_bytes_total, ntcopy_bypassed_bytes_total, \
ntcopy_available and ntcopy_setting. --out replaces FILE whole, so that node_exporter's textfile \
collector never reads half of one; ntcopy-stat.timer does so every 15 s. On a kernel without the \
counters the text says ntcopy_available 0.

Ends with 3 on a kernel that does not know MSG_NTCOPY, and has not the module either.";

#[derive(clap::Args)]
#[command(
    about = "Show what the kernel did with the hints",
    long_about = "Show what the kernel did with the hints so far: the bytes that were sent on \
                  sockets that opted in, how many of them were hinted, and how many of these went \
                  past the caches. Needs no root and changes nothing.",
    after_help = HELP
)]
pub struct Args {
    /// Print rates each so many seconds, until Ctrl-C
    #[arg(long, value_name = "SECONDS", conflicts_with = "prometheus")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=86_400))]
    interval: Option<u64>,
    /// Print one JSON object, of rates one a line
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
    /// Read the counters from FILE, a copy of /proc/net/netstat or /proc/net/ntcopy
    #[arg(long, value_name = "FILE", conflicts_with = "pid")]
    file: Option<PathBuf>,
}

/// Whose counters.
enum Source {
    Own,
    Process(u32),
    File(PathBuf),
}

impl Source {
    fn new(args: &Args) -> Self {
        match (&args.file, args.pid) {
            (Some(file), _) => Source::File(file.clone()),
            (None, Some(pid)) => Source::Process(pid),
            (None, None) => Source::Own,
        }
    }

    /// `None` where there are no counters to be read.
    fn read(&self) -> anyhow::Result<Option<Counters>> {
        Ok(match self {
            Source::Own => socket::counters(),
            Source::Process(pid) => socket::counters_of(*pid),
            Source::File(file) => socket::counters_in(file),
        }?)
    }

    /// Why there is nothing to be read, from the outset.
    fn absence(&self) -> anyhow::Result<ExitCode> {
        match self {
            Source::File(file) if !file.exists() => bail!("there is no file {}", file.display()),
            Source::File(file) => bail!("{} has none of the counters", file.display()),
            Source::Process(pid) if !Path::new(&format!("/proc/{pid}")).exists() => {
                bail!("there is no process {pid}")
            }
            Source::Process(_) | Source::Own => eprintln!(
                "ntcopy: this kernel does not know MSG_NTCOPY: it does not count {}; {}; a kernel \
                 that has it: ntcopy kernel boot -- COMMAND",
                uapi::STAT_BYTES,
                super::module_or_not()
            ),
        }
        Ok(ExitCode::from(super::NOT_AVAILABLE))
    }

    /// The machine's net.core.ntcopy, where it is to be seen; a file may be another machine's.
    fn setting(&self) -> Option<u8> {
        if matches!(self, Source::File(_)) { None } else { socket::sysctl() }
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
    if let Some(seconds) = args.interval {
        return rates::run(&source, counters, Duration::from_secs(seconds), args.json);
    }
    print!("{}", if args.json { json::totals(&counters)? } else { text::totals(&counters) });
    Ok(ExitCode::SUCCESS)
}
