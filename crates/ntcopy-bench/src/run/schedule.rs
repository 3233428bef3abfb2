//! When requests are due, whether or not others have been answered, and how long answers took.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;
use ntcopy_judge::random::SplitMix64;

use super::{Failure, ns};

/// Requests of one open sample, by when they are due.
///
/// The gaps are exponential, as of many clients that know nothing of each other, and come from a
/// seed: modes of one interleaved group are asked at the very same moments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    /// Nanoseconds from the beginning, ascending.
    pub due_ns: Vec<u64>,
    pub counted_from_ns: u64,
    pub end_ns: u64,
}

impl Schedule {
    pub fn new(seed: u64, per_1000_s: u64, warm_up: Duration, sample: Duration) -> Schedule {
        let end_ns = ns(warm_up).saturating_add(ns(sample));
        let mean_gap_ns = 1e12 / per_1000_s.max(1) as f64;
        let mut random = SplitMix64(seed);
        let mut due_ns = Vec::with_capacity((end_ns as f64 / mean_gap_ns * 1.2) as usize + 16);
        let mut at = gap(&mut random, mean_gap_ns);
        while at < end_ns as f64 {
            due_ns.push(at as u64);
            at += gap(&mut random, mean_gap_ns);
        }
        Schedule { due_ns, counted_from_ns: ns(warm_up), end_ns }
    }
}

fn gap(random: &mut SplitMix64, mean: f64) -> f64 {
    // 53 bits make every double between 0 and 1 that is as far from its neighbours; 1 is left out,
    // whose logarithm there is none of.
    let part = (random.next() >> 11) as f64 / (1_u64 << 53) as f64;
    -(1.0 - part).ln() * mean
}

/// Significant digits that the histogram keeps of a latency.
const DIGITS: u8 = 3;
/// Answers are waited for after the schedule's end: this many times its length, and `GRACE_NS`.
const GRACE: u64 = 2;
const GRACE_NS: u64 = 1_000_000_000;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answers {
    /// Nanoseconds from when a request was due to the last byte of its answer (to three digits),
    /// and how many took them, ascending.
    pub latencies: Vec<(u64, u64)>,
    /// How many of these were not complete when no more was waited for; they are counted with
    /// how long they had taken until then.
    pub unanswered: u64,
}

impl Answers {
    /// What a sample has of them: latencies by this name, how many took each, and how many were
    /// given up, if any.
    pub fn series(&self, latencies: &str) -> BTreeMap<String, Vec<u64>> {
        let (ns, counts) = self.latencies.iter().copied().unzip();
        let mut series =
            BTreeMap::from([(latencies.to_owned(), ns), ("answers".to_owned(), counts)]);
        if self.unanswered > 0 {
            series.insert("unanswered".to_owned(), vec![self.unanswered]);
        }
        series
    }
}

/// The time after which no answer is waited for any more, by the schedule's end.
pub fn gives_up_ns(end_ns: u64) -> u64 {
    end_ns * GRACE + GRACE_NS
}

pub fn histogram() -> Result<Histogram<u64>, Failure> {
    Histogram::new(DIGITS).map_err(|error| Failure::Answer(format!("no histogram: {error}")))
}

pub fn record(latencies: &mut Histogram<u64>, ns: u64) {
    // A histogram that grows by itself takes every number.
    let _ = latencies.record(ns.max(1));
}

pub fn take_answers(latencies: &Histogram<u64>, unanswered: u64) -> Answers {
    let recorded = latencies.iter_recorded();
    let steps = recorded.map(|step| (step.value_iterated_to(), step.count_at_value()));
    Answers { latencies: steps.collect(), unanswered }
}

/// Timers of this thread fire when they are due, not up to 50 us later with others.
pub fn precise_timers() -> Result<(), Failure> {
    rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1))
        .map_err(Failure::os("cannot set the timer slack"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn so_many_are_due_as_are_offered_and_in_order() {
        // 10,000 a second for 10 s: 100,000, give or take four standard deviations.
        let schedule = Schedule::new(7, 10_000_000, SECOND, 9 * SECOND);
        let count = schedule.due_ns.len() as f64;
        assert!((count - 100_000.0).abs() < 4.0 * 100_000_f64.sqrt(), "{count}");
        assert!(schedule.due_ns.is_sorted());
        assert!(schedule.due_ns.last().is_some_and(|last| *last < schedule.end_ns));
        assert_eq!((schedule.counted_from_ns, schedule.end_ns), (1_000_000_000, 10_000_000_000));
        let counted = schedule.due_ns.iter().filter(|due| **due >= 1_000_000_000).count() as f64;
        assert!((counted - 90_000.0).abs() < 4.0 * 90_000_f64.sqrt(), "{counted}");
    }

    #[test]
    fn gaps_are_those_of_many_who_do_not_know_each_other() {
        let schedule = Schedule::new(1, 1_000_000, Duration::ZERO, 100 * SECOND);
        let gaps: Vec<f64> =
            schedule.due_ns.windows(2).map(|two| (two[1] - two[0]) as f64 / 1e6).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!((mean - 1.0).abs() < 0.02, "{mean}");
        assert!((variance.sqrt() / mean - 1.0).abs() < 0.03, "{variance}");
    }

    #[test]
    fn a_seed_always_gives_the_same_and_another_one_another() {
        let of = |seed| Schedule::new(seed, 5_000_000, Duration::ZERO, SECOND);
        assert_eq!(of(3), of(3));
        assert_ne!(of(3), of(4));
        assert!(Schedule::new(1, 0, Duration::ZERO, SECOND).due_ns.len() <= 1);
    }
}
