//! When each copy is due, and which belong to the clocked window.

use std::time::{Duration, Instant};

const NS_PER_S: u128 = 1_000_000_000;

/// The time of one run: a schedule from `start` on, and the part of it that counts.
#[derive(Debug, Clone, Copy)]
pub struct Window {
    pub start: Instant,
    /// Since then: when the clocked part begins.
    pub from: Duration,
    pub to: Duration,
    /// Bytes per second; none: as fast as it goes.
    pub rate_bytes_per_s: Option<u64>,
}

impl Window {
    pub fn now(&self) -> Duration {
        Instant::now().saturating_duration_since(self.start)
    }

    /// When copy number `copy` is due: what was not done in time is made up for,
    /// as a bucket that never overflows would have it, so the offered bytes are the same in
    /// every mode.
    pub fn due(&self, copy: u64, object_bytes: u64) -> Option<Duration> {
        let rate = u128::from(self.rate_bytes_per_s?).max(1);
        let ns = u128::from(copy) * u128::from(object_bytes) * NS_PER_S / rate;
        Some(Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX)))
    }

    /// Whether something that was due then belongs to the clocked part.
    pub fn holds(&self, due: Duration) -> bool {
        (self.from..self.to).contains(&due)
    }

    /// Copies that are due in the clocked part.
    pub fn offered(&self, object_bytes: u64) -> Option<u64> {
        let rate = u128::from(self.rate_bytes_per_s?).max(1);
        // The first copy that is due at `time` or later: the least n with due(n) >= time.
        let first = |time: Duration| {
            let ns = time.as_nanos() * rate;
            ns.div_ceil(u128::from(object_bytes.max(1)) * NS_PER_S)
        };
        u64::try_from(first(self.to) - first(self.from)).ok()
    }

    /// How much later than the end a copy may be done and still count: what was due just before
    /// the end needs its own time.
    pub fn grace(&self, object_bytes: u64) -> Duration {
        self.due(2, object_bytes).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn window(from_us: u64, to_us: u64, rate: Option<u64>) -> Window {
        Window {
            start: Instant::now(),
            from: Duration::from_micros(from_us),
            to: Duration::from_micros(to_us),
            rate_bytes_per_s: rate,
        }
    }

    #[test]
    fn ten_gigabytes_a_second_are_an_object_every_26_microseconds() {
        let window = window(1000, 11_000, Some(10_000_000_000));
        assert_eq!(window.due(1, 256 << 10), Some(Duration::from_nanos(26_214)));
        assert_eq!(window.offered(256 << 10), Some(381));
        assert_eq!(window.grace(256 << 10), Duration::from_nanos(52_428));
    }

    #[test]
    fn without_a_rate_nothing_is_due() {
        let window = window(0, 1000, None);
        assert_eq!((window.due(3, 64), window.offered(64)), (None, None));
    }

    proptest! {
        #[test]
        fn what_is_offered_is_what_is_due_in_the_window(
            from in 0u64..2000, length in 1u64..2000, rate in 1_000_000u64..20_000_000_000,
            object in 4096u64..1 << 20,
        ) {
            let window = window(from, from + length, Some(rate));
            let mut due = 0i128;
            for copy in 0.. {
                let at = window.due(copy, object).unwrap();
                due += i128::from(window.holds(at));
                if at >= window.to {
                    break;
                }
            }
            // A due time is rounded down to a nanosecond, which can move one copy over an end.
            let offered = i128::from(window.offered(object).unwrap());
            prop_assert!((offered - due).abs() <= 1, "{offered} {due}");
        }
    }
}
