//! Hardware events of the calling thread: counted where they can be, never estimated.

use std::collections::BTreeMap;

use ntcopy::hardware::{self, Outcome};
use perf_event::events::Hardware;
use perf_event::{Builder, Counter};

const EVENTS: [(&str, Hardware); 3] = [
    ("cycles", Hardware::CPU_CYCLES),
    ("instructions", Hardware::INSTRUCTIONS),
    ("llc-misses", Hardware::CACHE_MISSES),
];

/// Every event, and why it cannot be counted, if it cannot.
pub fn offered() -> BTreeMap<String, Option<String>> {
    let why = |outcome: Outcome| (outcome != Outcome::Counts).then(|| outcome.meaning());
    let counters = hardware::counters().into_iter();
    counters.map(|counter| (counter.name.to_owned(), why(counter.outcome))).collect()
}

/// Counters of one thread.
#[derive(Default)]
pub struct Counting(Vec<(&'static str, Counter)>);

impl Counting {
    /// Opens those that are offered, for the calling thread.
    pub fn open(offered: &BTreeMap<String, Option<String>>) -> Counting {
        let can = |name: &str| offered.get(name).is_some_and(Option::is_none);
        let open = |event: Hardware| Builder::new(event).build().ok();
        let events = EVENTS.into_iter().filter(|(name, _)| can(name));
        Counting(events.filter_map(|(name, event)| Some((name, open(event)?))).collect())
    }

    pub fn start(&mut self) {
        for (_, counter) in &mut self.0 {
            // One that doesn't start stays at 0, and is left out.
            let _ = counter.enable();
        }
    }

    /// Stops and reads them; those that counted nothing are left out.
    pub fn stop(mut self) -> BTreeMap<String, u64> {
        for (_, counter) in &mut self.0 {
            let _ = counter.disable();
        }
        let read = |(name, mut counter): (&'static str, Counter)| {
            let count = counter.read().ok().filter(|count| *count > 0)?;
            Some((name.to_owned(), count))
        };
        self.0.into_iter().filter_map(read).collect()
    }
}
