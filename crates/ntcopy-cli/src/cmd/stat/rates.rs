//! What was counted since the line before, for each second: a line at each interval.

use std::io::{self, ErrorKind, Write as _};
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use ntcopy::socket::Counters;
use ntcopy_record::units::about_size;
use serde::Serialize;

use super::{Source, text};

/// What was sent in one interval.
#[derive(Serialize)]
struct Rates {
    seconds: f64,
    bytes_per_s: u64,
    hinted_bytes_per_s: u64,
    bypassed_bytes_per_s: u64,
}

impl Rates {
    /// Counters that fell begin anew: the module was loaded again.
    fn between(before: &Counters, now: &Counters, elapsed: Duration) -> Rates {
        let seconds = elapsed.as_secs_f64();
        let begins_anew = now.bytes < before.bytes;
        let rate = |before: u64, now: u64| {
            let bytes = if begins_anew { now } else { now.saturating_sub(before) };
            (bytes as f64 / seconds).round() as u64
        };
        Rates {
            seconds,
            bytes_per_s: rate(before.bytes, now.bytes),
            hinted_bytes_per_s: rate(before.hinted_bytes, now.hinted_bytes),
            bypassed_bytes_per_s: rate(before.bypassed_bytes, now.bypassed_bytes),
        }
    }

    fn line(&self) -> String {
        let sent = format!("{}/s", about_size(self.bytes_per_s));
        let hinted = text::share(self.hinted_bytes_per_s, self.bytes_per_s);
        let past = text::share(self.bypassed_bytes_per_s, self.hinted_bytes_per_s);
        format!("{sent:>16}{hinted:>12}{past:>26}")
    }
}

/// Prints until the program is ended, or nobody reads any more.
pub fn run(
    source: &Source,
    mut before: Counters,
    every: Duration,
    as_json: bool,
) -> anyhow::Result<ExitCode> {
    if !as_json && !written("    sent, opted in      hinted     of it past the caches")? {
        return Ok(ExitCode::SUCCESS);
    }
    let mut then = Instant::now();
    loop {
        thread::sleep(every);
        let now = source.read()?.context("the counters are gone: was the module unloaded?")?;
        let rates = Rates::between(&before, &now, then.elapsed());
        (before, then) = (now, Instant::now());
        let line = if as_json { serde_json::to_string(&rates)? } else { rates.line() };
        if !written(&line)? {
            return Ok(ExitCode::SUCCESS);
        }
    }
}

/// Whether somebody reads.
fn written(line: &str) -> io::Result<bool> {
    let mut out = io::stdout().lock();
    match writeln!(out, "{line}").and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        result => result.map(|()| true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(bytes: u64, hinted_bytes: u64, bypassed_bytes: u64) -> Counters {
        let mut counters = Counters::default();
        counters.bytes = bytes;
        counters.hinted_bytes = hinted_bytes;
        counters.bypassed_bytes = bypassed_bytes;
        counters
    }

    #[test]
    fn rates_are_of_what_came_since() {
        let two = Duration::from_secs(2);
        let rates = Rates::between(&counters(100, 50, 0), &counters(4196, 2098, 1024), two);
        assert_eq!(
            rates.line().split_whitespace().collect::<Vec<_>>(),
            ["2", "KiB/s", "50.0", "%", "50.0", "%"]
        );
        let anew = Rates::between(&counters(1 << 30, 1 << 30, 1 << 30), &counters(20, 10, 0), two);
        assert_eq!((anew.bytes_per_s, anew.hinted_bytes_per_s), (10, 5));
        let nothing = Rates::between(&counters(5, 5, 5), &counters(5, 5, 5), two).line();
        assert_eq!(nothing.split_whitespace().collect::<Vec<_>>(), ["0", "bytes/s", "-", "-"]);
    }
}
