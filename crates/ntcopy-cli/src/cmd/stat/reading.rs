//! Readings of the counters, and what was added between two of them.

use std::time::{Duration, Instant};

use ntcopy::socket::{Counters, CountersError};
use ntcopy::uapi;

/// The counters at one moment.
#[derive(Debug, Clone)]
pub struct Reading {
    /// When they were read.
    pub at: Instant,
    /// Bytes since the network namespace began.
    pub counters: Counters,
}

/// What was added between two readings.
#[derive(Debug, Clone)]
pub struct Interval {
    /// The time between them.
    pub length: Duration,
    /// Bytes.
    pub added: Counters,
}

impl Interval {
    pub fn between(earlier: &Reading, later: &Reading) -> Result<Self, CountersError> {
        let added = later.counters.since(&earlier.counters)?;
        Ok(Interval { length: later.at.saturating_duration_since(earlier.at), added })
    }

    /// The rate a second of `bytes` in this interval.
    pub fn per_second(&self, bytes: u64) -> u64 {
        // The clock has moved between two readings, but a rate must not depend on that.
        let nanos = self.length.as_nanos().max(1);
        u64::try_from(u128::from(bytes) * 1_000_000_000 / nanos).unwrap_or(u64::MAX)
    }
}

/// Bytes that hinted sends accepted: the sum over all that is counted, also under names that only
/// a later kernel knows.
pub fn hinted_bytes(counters: &Counters) -> u64 {
    counters.as_map().values().fold(0, |sum, bytes| sum.saturating_add(*bytes))
}

/// The share of the hinted bytes that was copied non-temporally; `None` where none was hinted.
pub fn nontemporal_share(counters: &Counters) -> Option<f64> {
    let hinted = hinted_bytes(counters);
    (hinted > 0).then(|| counters.get(uapi::STAT_NONTEMPORAL) as f64 / hinted as f64)
}

#[cfg(test)]
pub mod testing {
    //! Readings out of text.

    use super::*;

    /// The counters as a file would have them.
    pub fn counters(text: &str) -> Counters {
        let folder = tempfile::tempdir().expect("a folder for a file");
        let path = folder.path().join("ntcopy_stat");
        std::fs::write(&path, text).expect("the file can be written");
        ntcopy::socket::counters_in(&path).expect("the file is understood").expect("it is there")
    }

    /// An interval of some length in which `text` was added.
    pub fn interval(millis: u64, text: &str) -> Interval {
        Interval { length: Duration::from_millis(millis), added: counters(text) }
    }
}

#[cfg(test)]
mod tests {
    use super::testing::interval;
    use super::*;

    #[test]
    fn a_rate_is_bytes_over_the_real_time() {
        let half = interval(500, "nontemporal_bytes 100\n");
        assert_eq!(half.per_second(100), 200);
        assert_eq!(half.per_second(0), 0);
        let none = Interval { length: Duration::ZERO, ..half };
        assert_eq!(none.per_second(0), 0);
    }
}
