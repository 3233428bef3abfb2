//! When a driver may stop to sample a cell, so that its intervals still hold what they promise.
//!
//! Whoever looks again and again, and stops as soon as an interval shows something, finds
//! something too often: intervals of 95 % then hold the truth in 80 of 100 cases. So there are few
//! looks, at numbers of pairs that are set beforehand, and all of them share the 5 % in which an
//! interval may miss: 1 % each. A look that is the last one because the time is up takes what is
//! left of the 5 %; the clock does not know how the pairs came out.

use ntcopy_record::{LookEnd, MISSES_PERMILLE};

/// In how many of 1000 an interval may miss the truth at a look that may not be the last.
const EACH_PERMILLE: u32 = 10;
/// Looks at a cell. Each but the first comes at twice the pairs of the one before.
const LOOKS: u32 = 5;
/// Of fewer pairs even the whole span misses the truth in more than 1 %.
const FEWEST_PAIRS: u32 = 8;

/// The looks at one cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Looks {
    next_pairs: u32,
    taken: u32,
}

/// The look with which sampling ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastLook {
    /// In how many of 1000 its interval may miss the truth.
    pub misses_permille: u32,
    pub end: LookEnd,
}

impl Looks {
    /// The first look comes after this number of pairs, but not before the eighth.
    #[must_use]
    pub fn from_pairs(pairs: u32) -> Looks {
        Looks { next_pairs: pairs.max(FEWEST_PAIRS), taken: 0 }
    }

    /// Whether sampling ends after this number of pairs. `is_resolved` says whether every interval
    /// that may miss in so many of 1000 is a win, a loss or equal.
    pub fn last(
        &mut self,
        pairs: u32,
        is_time_up: bool,
        is_resolved: impl FnOnce(u32) -> bool,
    ) -> Option<LastLook> {
        if is_time_up {
            let misses_permille = MISSES_PERMILLE - EACH_PERMILLE * self.taken;
            let end =
                if is_resolved(misses_permille) { LookEnd::Resolved } else { LookEnd::Budget };
            return Some(LastLook { misses_permille, end });
        }
        if pairs < self.next_pairs {
            return None;
        }
        self.taken += 1;
        self.next_pairs = self.next_pairs.saturating_mul(2);
        let end = if is_resolved(EACH_PERMILLE) {
            LookEnd::Resolved
        } else if self.taken == LOOKS {
            LookEnd::Pairs
        } else {
            return None;
        };
        Some(LastLook { misses_permille: EACH_PERMILLE, end })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Verdict, interval, median};
    use super::*;
    use crate::random::SplitMix64;
    use crate::ratio::Ratio;

    #[test]
    fn looks_double_and_the_fifth_is_the_last() {
        let mut looks = Looks::from_pairs(5);
        let ends: Vec<u32> =
            (1..=1000).filter(|pairs| looks.last(*pairs, false, |_| false).is_some()).collect();
        assert_eq!(ends[0], 128, "8, 16, 32, 64, 128");
        let mut looks = Looks::from_pairs(15);
        assert_eq!(looks.last(14, false, |_| true), None);
        let last = looks.last(15, false, |permille| permille == 10);
        assert_eq!(last, Some(LastLook { misses_permille: 10, end: LookEnd::Resolved }));
    }

    #[test]
    fn a_look_that_the_clock_makes_the_last_takes_what_is_left() {
        let mut looks = Looks::from_pairs(8);
        let budget = |misses_permille| Some(LastLook { misses_permille, end: LookEnd::Budget });
        assert_eq!(looks.clone().last(5, true, |_| false), budget(50));
        for pairs in [8, 16] {
            assert_eq!(looks.last(pairs, false, |_| false), None);
        }
        assert_eq!(looks.last(20, true, |_| false), budget(30));
    }

    /// A ratio's logarithm around that of `truth`: the sum of twelve uniform numbers, and one pair
    /// in ten is disturbed.
    fn ratio(random: &mut SplitMix64, truth: f64, spread: f64) -> f64 {
        let mut uniform = || random.below(1 << 20) as f64 / f64::from(1 << 20) - 0.5;
        let normal: f64 = (0..12).map(|_| uniform()).sum();
        let is_disturbed = random.below(10) == 0;
        truth * (normal * spread * if is_disturbed { 4.0 } else { 1.0 }).exp()
    }

    /// How many of 100 intervals hold the truth, where sampling ends by looks; the time is up after
    /// `most` pairs. Careless intervals are those of 95 %, however often they were looked at.
    fn held((truth, spread): (f64, f64), (first, most): (u32, u32), is_careless: bool) -> f64 {
        const TRIALS: u32 = 1000;
        let mut random = SplitMix64(u64::from(first * most) + (truth * 1e4) as u64);
        let mut held = 0;
        for _ in 0..TRIALS {
            let mut looks = Looks::from_pairs(first);
            let mut ratios = Vec::new();
            let ci = |ratios: &[f64], permille: u32| {
                interval(ratios, if is_careless { MISSES_PERMILLE } else { permille })
            };
            let last = loop {
                ratios.push(ratio(&mut random, truth, spread));
                let pairs = ratios.len() as u32;
                let resolved = |permille| {
                    let (ratio, ci) = (median(&ratios), ci(&ratios, permille));
                    Ratio { ratio, ci }.verdict() != Verdict::Unresolved
                };
                if let Some(last) = looks.last(pairs, pairs >= most, resolved) {
                    break last;
                }
            };
            let (low, high) = ci(&ratios, last.misses_permille);
            held += u32::from(low <= truth && truth <= high);
        }
        f64::from(held) / f64::from(TRIALS) * 100.0
    }

    #[test]
    fn intervals_hold_the_truth_as_often_as_they_say_however_sampling_ended() {
        let mut least_careless = 100.0_f64;
        for truth in [1.0, 1.02, 1.05] {
            for spread in [0.02, 0.06, 0.2] {
                for pairs in [(8, 60), (15, 1000)] {
                    let held = |is_careless| held((truth, spread), pairs, is_careless);
                    let careful = held(false);
                    assert!(careful >= 93.0, "{truth} +- {spread}, {pairs:?}: {careful} of 100");
                    least_careless = least_careless.min(held(true));
                }
            }
        }
        assert!(least_careless < 88.0, "why looks are dear: {least_careless} of 100");
    }

    #[test]
    fn a_wider_promise_is_a_wider_interval() {
        let mut random = SplitMix64(3);
        let ratios: Vec<f64> = (0..30).map(|_| ratio(&mut random, 1.0, 0.1)).collect();
        let (narrow, wide) = (interval(&ratios, 50), interval(&ratios, 10));
        assert!(wide.0 <= narrow.0 && wide.1 >= narrow.1 && wide != narrow, "{narrow:?} {wide:?}");
    }
}
