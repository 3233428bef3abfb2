//! Hardware counters of the threads that share a sample.

use std::collections::BTreeMap;

use ntcopy_record::{COUNTED_PERMILLE, add_counts};

use crate::hardware::Hardware;

/// Counts, by name, with their marks.
pub type Counts = BTreeMap<String, u64>;

/// Counters of one thread; one of the threads has those of the whole machine as well.
pub struct Counting<'a> {
    thread: Hardware,
    machine: Option<&'a mut Hardware>,
}

impl<'a> Counting<'a> {
    pub fn open(machine: Option<&'a mut Hardware>) -> Counting<'a> {
        Counting { thread: Hardware::of_thread(), machine }
    }

    /// Before the threads wait for each other: the machine's take long to switch.
    pub fn start_of_machine(&mut self) {
        if let Some(machine) = &mut self.machine {
            machine.start();
        }
    }

    pub fn start(&mut self) {
        self.thread.start();
    }

    pub fn stop(&mut self) -> Counts {
        self.thread.stop()
    }

    /// When all have ended: the machine's.
    pub fn stop_of_machine(self) -> Counts {
        self.machine.map_or_else(Counts::new, Hardware::stop)
    }
}

/// The threads' counts together: those that each of them has.
pub fn total(threads: &[&Counts]) -> Counts {
    let mut total = Counts::new();
    threads.iter().for_each(|counts| add_counts(&mut total, counts));
    total.retain(|name, _| {
        let of = name.strip_suffix(COUNTED_PERMILLE).unwrap_or(name);
        threads.iter().all(|counts| counts.contains_key(of))
    });
    total
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_all_threads_counted_is_their_total() {
        let of = |list: &[(&str, u64)]| -> Counts {
            list.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
        };
        let first = of(&[("cycles", 10), ("llc-misses", 1), ("cycles:counted_permille", 900)]);
        let second = of(&[
            ("cycles", 5),
            ("cycles:counted_permille", 500),
            ("llc-misses:counted_permille", 1),
        ]);
        let both = of(&[("cycles", 15), ("cycles:counted_permille", 500)]);
        assert_eq!(total(&[&first, &second]), both);
        assert_eq!(total(&[&first]), first);
        assert_eq!(total(&[]), Counts::new());
    }
}
