//! The options that both daemons have.

use std::path::PathBuf;
use std::time::Duration;

use tracing::level_filters::LevelFilter;

use crate::address::{Address, Place};
use crate::handed;

/// The heading of options that a file can't have: with one of them a daemon does something else
/// than to serve.
pub const INSTEAD: &str = "Instead of serving";

#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// File with the same options, in TOML, without the dashes in front; what is given here wins,
    /// and lists add up
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Where to listen: unix:/PATH or tcp:HOST:PORT, every address of a host; may be repeated. Sockets
    /// that systemd hands over (LISTEN_FDS) are taken where they have such an address; without this
    /// option, all of them
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
    /// For what is in flight when the daemon is asked to end; nobody new is served meanwhile
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    pub drain_timeout: Duration,
    /// Send buffer of connections [default: the system's]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub sndbuf: Option<u64>,
    /// Where Prometheus asks for /metrics
    #[arg(long, value_name = "ADDRESS")]
    pub metrics: Option<Place>,
    /// What is logged on standard error: error, warn, info, or debug, which has every request
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    pub log_level: LevelFilter,
    /// Checks the settings and the files that they name, then ends
    #[arg(long, help_heading = INSTEAD)]
    pub check: bool,
    /// Threads for `spawn_blocking`, per worker.
    #[arg(skip)]
    pub blocking_threads: usize,
}

impl Options {
    /// Where clients are listened for: where it says so, or on the sockets that were handed over.
    pub fn doors(&self) -> anyhow::Result<Vec<Address>> {
        if !self.listen.is_empty() {
            return Place::all(&self.listen);
        }
        let metrics = self.metrics()?;
        Ok(handed::addresses().into_iter().filter(|at| Some(at) != metrics.as_ref()).collect())
    }

    pub(crate) fn metrics(&self) -> anyhow::Result<Option<Address>> {
        let found = self.metrics.as_ref().map(Place::look_up).transpose()?;
        Ok(found.map(|mut addresses| addresses.swap_remove(0)))
    }

    pub fn workers(&self) -> usize {
        let cpus = || std::thread::available_parallelism().map_or(1, usize::from);
        self.workers.map_or_else(cpus, usize::from)
    }
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
    use super::*;

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
