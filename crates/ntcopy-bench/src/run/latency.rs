//! How long answers took: histograms, and timers that keep a schedule.

use hdrhistogram::Histogram;

use super::Failure;
use super::schedule::Schedule;

/// Significant digits that the histogram keeps of a latency.
const DIGITS: u8 = 3;
/// Answers are waited for after the schedule's end: this many times its length, and `GRACE_NS`.
const GRACE: u64 = 2;
const GRACE_NS: u64 = 1_000_000_000;

/// How long answers took.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answers {
    /// Nanoseconds from when a request was due to the last byte of its answer (to three digits),
    /// and how many took them, ascending.
    pub latencies: Vec<(u64, u64)>,
    /// How many of these were not complete when no more was waited for; they are counted with
    /// how long they had taken until then.
    pub unanswered: u64,
}

/// The time after which no answer is waited for any more.
pub fn gives_up_ns(schedule: &Schedule) -> u64 {
    schedule.end_ns * GRACE + GRACE_NS
}

/// An empty histogram.
pub fn histogram() -> Result<Histogram<u64>, Failure> {
    Histogram::new(DIGITS).map_err(|error| Failure::Answer(format!("no histogram: {error}")))
}

/// What a histogram holds.
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
