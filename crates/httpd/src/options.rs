//! The options that both daemons have, and the file for what a command line leaves out.

use std::ffi::OsString;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::time::Duration;

use toml::{Table, Value};
use tracing::level_filters::LevelFilter;

use crate::address::{Address, Place};

#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// File with the same options, in TOML, without the dashes in front; what is given here wins,
    /// and lists add up
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Where to listen: unix:/PATH or tcp:HOST:PORT, every address of a host; may be repeated
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Vec<Place>,
    /// Threads that serve connections [default: one per CPU]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub workers: Option<u16>,
    /// Connections at one time: beyond, the longest idle makes room; if none is, a client gets 503
    #[arg(long, value_name = "N", default_value = "10000")]
    pub connections_max: usize,
    /// For a TLS handshake, and for the head of a request
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    pub head_timeout: Duration,
    /// Between two requests of a connection
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = seconds)]
    pub idle_timeout: Duration,
    /// For each 16 KiB of a body to arrive
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = seconds)]
    pub body_timeout: Duration,
    /// For what is in flight when the daemon is asked to end
    #[arg(long, value_name = "SECONDS", default_value = "20", value_parser = seconds)]
    pub drain_timeout: Duration,
    /// Send buffer of connections [default: the system's]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub sndbuf: Option<u64>,
    /// Where Prometheus asks for /metrics
    #[arg(long, value_name = "ADDRESS")]
    pub metrics: Option<Address>,
    /// What is logged on standard error: error, warn, info, or debug, which has every request
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    pub log_level: LevelFilter,
    /// Threads for `spawn_blocking`, per worker.
    #[arg(skip)]
    pub blocking_threads: usize,
}

impl Options {
    pub fn workers(&self) -> usize {
        let cpus = || std::thread::available_parallelism().map_or(1, usize::from);
        self.workers.map_or_else(cpus, usize::from)
    }
}

/// The words of a command line, the program's name first, with those of the file that `--config`
/// names before the others.
pub(crate) fn with_file(words: Vec<OsString>) -> Result<Vec<OsString>, String> {
    let mut words = words.into_iter();
    let (mut all, mut given): (Vec<_>, _) = (words.next().into_iter().collect(), Vec::new());
    while let Some(word) = words.next() {
        let path = match word.to_str() {
            Some("--config") => words.next(),
            Some(text) => text.strip_prefix("--config=").map(OsString::from),
            None => None,
        };
        match path {
            Some(path) => words_of(Path::new(&path), &mut all)?,
            None => given.push(word),
        }
    }
    all.extend(given);
    Ok(all)
}

fn words_of(path: &Path, words: &mut Vec<OsString>) -> Result<(), String> {
    let wrong = |error: &dyn Display| format!("{}: {error}", path.display());
    let text = std::fs::read_to_string(path).map_err(|error| wrong(&error))?;
    let file: Table = text.parse().map_err(|error: toml::de::Error| wrong(&error))?;
    for (name, value) in file {
        let values = match value {
            Value::Array(list) => list,
            one => vec![one],
        };
        for value in values {
            let word = match value {
                Value::Boolean(false) => continue,
                Value::Boolean(true) => format!("--{name}"),
                Value::String(text) => format!("--{name}={text}"),
                other => format!("--{name}={other}"),
            };
            words.push(word.into());
        }
    }
    Ok(())
}

/// A number of bytes: `4096`, `64KiB`, `16MiB`, `4GiB`.
pub fn size(text: &str) -> Result<u64, String> {
    let bad = || format!("{text:?} is no size: expected a number, or one with KiB, MiB or GiB");
    let units = [("KiB", 10), ("MiB", 20), ("GiB", 30)];
    let unit = units.iter().find_map(|(unit, shift)| Some((text.strip_suffix(unit)?, *shift)));
    let (digits, shift) = unit.unwrap_or((text, 0));
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(bad());
    }
    let number: u64 = digits.parse().map_err(|_| bad())?;
    number.checked_mul(1 << shift).ok_or_else(bad)
}

/// A time in seconds, more than 0: `30`, `2.5`.
pub fn seconds(text: &str) -> Result<Duration, String> {
    let bad = || format!("{text:?} is no time in seconds, more than 0");
    let seconds: f64 = text.parse().map_err(|_| bad())?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(time) if !time.is_zero() && seconds <= 1e6 => Ok(time),
        _ => Err(bad()),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    #[command(args_override_self = true)]
    struct Daemon {
        #[command(flatten)]
        options: Options,
    }

    fn parse(text: &str, words: &[&str]) -> Result<Options, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let words = [&["d"], words, &["--config", file.path().to_str().unwrap()]].concat();
        let words = with_file(words.into_iter().map(OsString::from).collect())?;
        let daemon = Daemon::try_parse_from(words).map_err(|error| error.to_string())?;
        Ok(daemon.options)
    }

    #[test]
    fn the_command_line_wins_over_the_file_and_lists_add_up() {
        let file = "listen = [\"unix:/run/s\", \"/run/t\"]\nworkers = 3\nhead-timeout = 0.5\n\
                    log-level = \"warn\"\n";
        let options = parse(file, &["--workers=2", "--listen", "tcp:127.0.0.1:1"]).unwrap();
        assert_eq!(
            Place::all(&options.listen).iter().map(ToString::to_string).collect::<Vec<_>>(),
            ["unix:/run/s", "unix:/run/t", "tcp:127.0.0.1:1"]
        );
        assert_eq!(options.workers(), 2);
        assert_eq!(options.head_timeout, Duration::from_millis(500));
        assert_eq!(options.log_level, LevelFilter::WARN);
    }

    #[test]
    fn a_mistake_is_named() {
        for (text, named) in [
            ("speed = 3\n", "--speed"),
            ("\nlisten = [\n", "line 2"),
            ("listen = [\"nowhere\"]\n", "nowhere"),
            ("workers = 0\n", "1..=1024"),
            ("idle-timeout = 0\n", "more than 0"),
        ] {
            let error = parse(text, &[]).unwrap_err();
            assert!(error.contains(named), "{text:?}: {error}");
        }
    }

    #[test]
    fn sizes() {
        for (text, expected) in [
            ("0", Some(0)),
            ("64KiB", Some(65_536)),
            ("3GiB", Some(3 << 30)),
            ("", None),
            ("KiB", None),
            ("+1", None),
            ("1.5MiB", None),
            ("99999999999GiB", None),
        ] {
            assert_eq!(size(text).ok(), expected, "{text:?}");
        }
    }
}
