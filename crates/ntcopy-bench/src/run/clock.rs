//! The two clocks.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// A stopwatch on `CLOCK_MONOTONIC`, the clock of [`Instant`].
///
/// Not rustix's own call: that one insists on a vDSO with all of the usual
/// symbols, which a user-mode kernel does not offer.
pub struct Stopwatch(Instant);

impl Stopwatch {
    pub fn start() -> Stopwatch {
        Stopwatch(Instant::now())
    }

    /// Nanoseconds since the start; 64 bits last for 584 years.
    pub fn ns(&self) -> u64 {
        u64::try_from(self.0.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

/// Nanoseconds since 1970-01-01 UTC.
#[must_use]
pub fn unix_now_ns() -> u64 {
    // A clock that stands before 1970 has not been set: 0 says so.
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}
