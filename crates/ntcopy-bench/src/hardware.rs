//! Hardware counters around the clocked part of a sample: used where they exist, said to be absent
//! where they don't, never estimated.
//!
//! Core events (`perf_event_open`) are of the thread that opened them and of what it starts
//! afterwards. Traffic to memory, from resctrl, is the whole machine's.
//! `docs/reference/hardware.md` has the events of each CPU family and where they come from.

mod catalogue;
mod events;
mod open;
mod resctrl;
mod scale;
#[cfg(test)]
mod testing;

use std::collections::BTreeMap;

use ntcopy_record::HardwareCounter;

use self::catalogue::Catalogue;
use self::open::Opened;
use self::resctrl::Reading;
pub use self::resctrl::Resctrl;

/// Environment: the kernel's name in `ntcopy kernel`, set for what runs inside one.
pub const KIND_VARIABLE: &str = "NTCOPY_KERNEL_KIND";

/// Whether this program booted the kernel that it runs in, so that nothing else sends there.
pub fn is_booted_for_this() -> bool {
    std::env::var_os(KIND_VARIABLE).is_some_and(|kind| !kind.is_empty())
}

/// Every counter that a sample may carry, and why those are missing that are.
///
/// Tries each once a process: some milliseconds.
pub fn offered() -> Vec<HardwareCounter> {
    Catalogue::get().offers().to_vec()
}

/// Counters that are open: what is between [`start`](Self::start) and [`stop`](Self::stop) is
/// counted. Those that cannot be opened are left out.
#[derive(Default)]
pub struct Hardware {
    events: Vec<(&'static str, Opened)>,
    bandwidth: Option<resctrl::Monitor>,
    before: Option<Reading>,
}

impl Hardware {
    /// Core events of this thread and of all that it starts from now on, and traffic to memory.
    pub fn open() -> Hardware {
        Hardware { events: Catalogue::get().open_core(true), ..Hardware::of_machine() }
    }

    pub fn of_thread() -> Hardware {
        Hardware { events: Catalogue::get().open_core(false), ..Hardware::default() }
    }

    pub fn of_machine() -> Hardware {
        Hardware { bandwidth: Catalogue::get().monitor(), ..Hardware::default() }
    }

    pub fn start(&mut self) {
        self.before = self.bandwidth.as_ref().and_then(resctrl::Monitor::read);
        self.events.iter_mut().for_each(|(_, opened)| opened.start());
    }

    /// Ends it. Counts by name; beside one that was scaled, since its counter was shared, stands
    /// `<name>:counted_permille`, the part of the time that it counted. One that never had its
    /// turn, or could not be read, is left out.
    pub fn stop(&mut self) -> BTreeMap<String, u64> {
        // All stop before the first is read: reading takes time.
        self.events.iter_mut().for_each(|(_, opened)| opened.stop());
        let after = self.bandwidth.as_ref().and_then(resctrl::Monitor::read);
        let mut counts = BTreeMap::new();
        for (name, opened) in &mut self.events {
            if let Some(counted) = opened.counted() {
                counted.put(name, &mut counts);
            }
        }
        if let (Some(before), Some(after)) = (self.before.take(), after) {
            counts.extend(after.since(&before));
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_counted_was_offered_and_what_was_not_is_left_out() {
        let mut hardware = Hardware::open();
        hardware.start();
        let sum = (0..1_000_000u64).fold(0, |sum, term| std::hint::black_box(sum ^ term));
        std::hint::black_box(sum);
        let counted = hardware.stop();
        let offered = offered();
        assert!(offered.iter().any(|counter| counter.name == "cycles"), "{offered:?}");
        for name in counted.keys().filter(|name| !ntcopy_record::is_counting_mark(name)) {
            let offer = offered.iter().find(|offer| offer.name == *name);
            assert!(offer.is_some_and(|offer| offer.missing.is_none()), "{name}: {offered:?}");
        }
        for offer in &offered {
            assert!(offer.missing.as_deref() != Some(""), "{offer:?}");
        }
    }

    #[test]
    fn a_second_run_counts_anew() {
        let mut hardware = Hardware::open();
        hardware.start();
        let sum = (0..3_000_000u64).fold(0, |sum, term| std::hint::black_box(sum ^ term));
        std::hint::black_box(sum);
        let long = hardware.stop();
        hardware.start();
        let short = hardware.stop();
        for name in ["cycles", "instructions"] {
            assert!(short.get(name).unwrap_or(&0) <= long.get(name).unwrap_or(&0), "{name}");
        }
    }
}
