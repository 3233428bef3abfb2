//! Clocks: the system's two, and one that costs nothing to read.
//!
//! In a user-mode kernel every look at the system's clock is a system call, which would be a large
//! part of a walk through a hot set. The CPU's time-stamp counter is read without one.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A stopwatch on `CLOCK_MONOTONIC`, the clock of [`Instant`].
///
/// Not rustix's own call: that one insists on a vDSO with all of the usual
/// symbols, which a user-mode kernel does not offer.
pub struct Stopwatch(Instant);

impl Stopwatch {
    pub fn start() -> Stopwatch {
        Stopwatch(Instant::now())
    }

    pub fn ns(&self) -> u64 {
        ns(self.0.elapsed())
    }
}

/// A time in nanoseconds; 64 bits last for 584 years.
pub fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

pub fn unix_now_ns() -> u64 {
    // A clock that stands before 1970 has not been set: 0 says so.
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, ns)
}

/// How long the counter is compared with the system's clock.
const CALIBRATION: Duration = Duration::from_millis(20);

/// Turns readings of the counter into nanoseconds.
#[derive(Debug, Clone, Copy)]
pub struct Ticks {
    ns_per_tick: f64,
}

impl Ticks {
    pub fn calibrate() -> Ticks {
        let (clock, first) = (Stopwatch::start(), ticks_now());
        loop {
            let ns = clock.ns();
            if ns >= self::ns(CALIBRATION) {
                let ticks = ticks_now().wrapping_sub(first).max(1);
                return Ticks { ns_per_tick: ns as f64 / ticks as f64 };
            }
        }
    }

    pub fn ns(self, from: u64, to: u64) -> u64 {
        (to.wrapping_sub(from) as f64 * self.ns_per_tick).round() as u64
    }
}

/// Reads the counter when everything before it has happened.
pub fn ticks_now() -> u64 {
    // SAFETY: both instructions are part of every x86-64 CPU and touch no memory.
    unsafe {
        core::arch::x86_64::_mm_lfence();
        let ticks = core::arch::x86_64::_rdtsc();
        core::arch::x86_64::_mm_lfence();
        ticks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counter_rises_and_is_counted_in_nanoseconds() {
        let ticks = Ticks::calibrate();
        let (from, clock) = (ticks_now(), Stopwatch::start());
        std::thread::sleep(Duration::from_millis(2));
        let (ns, system) = (ticks.ns(from, ticks_now()), clock.ns());
        assert!(ns >= 1_900_000, "{ns} {system}");
        assert_eq!(ticks.ns(5, 5), 0);
    }
}
