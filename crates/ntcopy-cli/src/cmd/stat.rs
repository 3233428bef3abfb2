//! `ntcopy stat`: what the kernel did with the hints since it began to count.

mod json;
mod prometheus;
mod text;
mod ticker;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

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
  ntcopy stat --prometheus --out /var/lib/prometheus/node-exporter/ntcopy.prom --interval 15s

Every byte that a hinted send accepted is counted once: as non-temporal, or under the reason why \
it was copied normally. The kernel counts per network namespace. The keys of --json are those of \
/proc/net/ntcopy_stat, in bytes; nontemporal_share is null where nothing was hinted.

--prometheus prints ntcopy_hinted_bytes_total by outcome, ntcopy_available and ntcopy_setting. --out \
replaces FILE whole, so that node_exporter's textfile collector never reads half of one; with \
--interval it does so again and again, until Ctrl-C. On a kernel without the counters the text says \
ntcopy_available 0.

Ends with 3 on a kernel that does not know MSG_NTCOPY, and has not the module either.";

/// Arguments.
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
    /// With --out: again and again, at this distance: 500ms, 2s; a bare number is seconds
    #[arg(long, value_name = "TIME", requires = "out", value_parser = parse_interval)]
    interval: Option<Duration>,
    /// Look into the network namespace of this process
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    pid: Option<u32>,
    /// Read the counters from FILE, such as a copy that was kept
    #[arg(long, value_name = "FILE", conflicts_with = "pid")]
    file: Option<PathBuf>,
}

fn parse_interval(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is not a time: write 500ms, 2s or a number of seconds");
    let (number, nanos_each) = match text.strip_suffix("ms") {
        Some(number) => (number, 1e6),
        None => (text.strip_suffix('s').unwrap_or(text), 1e9),
    };
    if !number.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(wrong());
    }
    let nanos = number.trim_end().parse::<f64>().map_err(|_| wrong())? * nanos_each;
    // A day is as good as never; below a millisecond it does nothing else.
    if !(1e6..=86_400e9).contains(&nanos) {
        return Err(format!("`{text}` is not between 1ms and 86400s"));
    }
    Ok(Duration::from_nanos(nanos as u64))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_have_units_and_bounds() {
        for (text, millis) in [("1s", 1000), ("2", 2000), ("500ms", 500), ("0.25", 250), ("1ms", 1)]
        {
            assert_eq!(parse_interval(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "s", "ms", "1m", "-1", "nan", "inf", "0", "0.5ms", "86401s", "1e9", "1 m"]
        {
            assert!(parse_interval(text).is_err(), "{text}");
        }
    }
}
