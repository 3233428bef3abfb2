//! How far a compilation is, and how long it will take.
//!
//! The lines that make prints do not come evenly: a scheduler or a network stack takes seconds,
//! a stub a moment. So a build leaves behind how many lines it had printed after each twentieth
//! of its time, and the next one reads its progress off that.

use std::time::{Duration, Instant};

use crate::cache::Meta;
use crate::kind::{Kind, Machine};

/// Parts of the time of a build.
const PARTS: usize = 20;

/// First builds, before there is one to learn from: Linux 7.3.4 with the fragments as they are
/// today, on two CPUs.
const FIRST_UM: (u64, [u64; PARTS]) = (
    145,
    [
        196, 272, 319, 348, 383, 425, 487, 507, 544, 606, 633, 749, 833, 1083, 1104, 1129, 1159,
        1181, 1204, 1259,
    ],
);
const FIRST_X86: (u64, [u64; PARTS]) = FIRST_UM;

/// What is expected of a build.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Estimate {
    pub(super) seconds: u64,
    profile: Vec<u64>,
}

impl Estimate {
    /// What the last build of this kind took, else what a first one takes.
    pub(super) fn from_last<'a>(kind: Kind, like: impl Iterator<Item = &'a Meta>) -> Self {
        let usable = like.filter(|meta| meta.profile.len() == PARTS && meta.seconds > 0);
        match usable.max_by_key(|meta| meta.built_unix_s) {
            Some(meta) => Self { seconds: meta.seconds, profile: meta.profile.clone() },
            None => {
                let (seconds, profile) = match kind.machine() {
                    Machine::Um => FIRST_UM,
                    Machine::Qemu => FIRST_X86,
                };
                Self { seconds, profile: profile.to_vec() }
            }
        }
    }

    /// Share of the time that is over after so many lines, in thousandths.
    pub(super) fn per_mille(&self, steps: u64) -> u64 {
        let part = 1000 / PARTS as u64;
        let mut before = 0;
        for (index, &after) in self.profile.iter().enumerate() {
            if steps < after {
                let within = part * (steps - before) / (after - before);
                return index as u64 * part + within;
            }
            before = after;
        }
        1000
    }
}

/// Notes when lines come.
pub(super) struct Recorder {
    begun: Instant,
    /// When each line came.
    seen: Vec<Duration>,
}

impl Recorder {
    pub(super) fn new() -> Self {
        Self { begun: Instant::now(), seen: Vec::new() }
    }

    /// A line came; gives their number.
    pub(super) fn step(&mut self) -> u64 {
        self.seen.push(self.begun.elapsed());
        self.seen.len() as u64
    }

    /// Seconds that all took, and the lines after each part of them.
    pub(super) fn finish(self) -> (u64, Vec<u64>) {
        let all = self.begun.elapsed();
        (all.as_secs(), profile(&self.seen, all))
    }
}

/// How many lines had come after each part of the time.
fn profile(seen: &[Duration], all: Duration) -> Vec<u64> {
    let after = |part: usize| {
        let until = all.mul_f64(part as f64 / PARTS as f64);
        seen.partition_point(|at| *at <= until) as u64
    };
    (1..=PARTS).map(after).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_follows_the_time_and_not_the_lines() {
        // Half of the lines come in the first twentieth.
        let mut profile: Vec<u64> = (0..PARTS as u64).map(|part| 100 + part * 5).collect();
        profile[PARTS - 1] = 200;
        let estimate = Estimate { seconds: 60, profile };
        assert_eq!(estimate.per_mille(0), 0);
        assert_eq!(estimate.per_mille(50), 25);
        assert_eq!(estimate.per_mille(100), 50);
        assert_eq!(estimate.per_mille(200), 1000);
        assert_eq!(estimate.per_mille(900), 1000);
    }

    #[test]
    fn parts_without_a_line_do_no_harm() {
        let estimate = Estimate { seconds: 60, profile: vec![7; PARTS] };
        assert_eq!(estimate.per_mille(6), 42);
        assert_eq!(estimate.per_mille(7), 1000);
    }

    #[test]
    fn a_record_is_cut_into_equal_times() {
        let at = Duration::from_millis;
        let seen: Vec<_> = (1..=40).map(|n| at(n * 100)).collect();
        let profile = profile(&seen, at(4000));
        assert_eq!(profile.len(), PARTS);
        assert_eq!(profile[0], 2);
        assert_eq!(profile[9], 20);
        assert_eq!(profile[PARTS - 1], 40);
    }
}
