//! Whether the hardware's own counters are to be had: they are used where they exist, reported
//! as absent where they don't, and never estimated.

use std::fs;
use std::hint::black_box;
use std::io;
use std::path::Path;

use perf_event::Builder;
use perf_event::events::{Event, Hardware};
use rustix::io::Errno;

/// A hardware event, and whether it counts here.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counter {
    /// `cycles`, `instructions` or `llc-misses`.
    pub name: &'static str,
    /// What came of trying to count it in this process.
    pub outcome: Outcome,
}

/// What came of trying to count an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It counted.
    Counts,
    /// It was opened, but stood at zero after a million additions: some hypervisors do that.
    Silent,
    /// It could not be opened.
    Refused(Errno),
}

impl Outcome {
    /// What that means, in plain words.
    pub fn meaning(&self) -> String {
        let Outcome::Refused(errno) = self else {
            return match self {
                Outcome::Counts => "counts".to_owned(),
                _ => "opens, but does not count (a hypervisor's empty counter)".to_owned(),
            };
        };
        match *errno {
            Errno::NOENT | Errno::OPNOTSUPP | Errno::NODEV | Errno::NXIO => {
                "not offered by this CPU or its hypervisor".to_owned()
            }
            Errno::ACCESS | Errno::PERM => {
                let level = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid")
                    .map_or_else(|_| "?".to_owned(), |level| level.trim().to_owned());
                format!("not allowed (kernel.perf_event_paranoid is {level}; or run as root)")
            }
            Errno::NOSYS => "this kernel has no performance events".to_owned(),
            other => format!("refused: {}", io::Error::from(other)),
        }
    }
}

/// Tries `perf_event_open` for cycles, instructions and last-level cache misses.
pub fn counters() -> Vec<Counter> {
    vec![
        Counter { name: "cycles", outcome: attempt(Hardware::CPU_CYCLES) },
        Counter { name: "instructions", outcome: attempt(Hardware::INSTRUCTIONS) },
        Counter { name: "llc-misses", outcome: attempt_misses() },
    ]
}

fn attempt(event: impl Event) -> Outcome {
    count_over(event, || {
        black_box((0..1_000_000u64).fold(0, |sum: u64, term| black_box(sum.wrapping_add(term))));
    })
}

/// A miss needs memory that was never touched.
fn attempt_misses() -> Outcome {
    count_over(Hardware::CACHE_MISSES, || {
        let fresh = vec![1u8; 16 << 20];
        black_box(&fresh);
    })
}

fn count_over(event: impl Event, work: impl Fn()) -> Outcome {
    let counted = || -> io::Result<u64> {
        let mut counter = Builder::new(event).build()?;
        counter.enable()?;
        work();
        counter.disable()?;
        counter.read()
    };
    match counted() {
        Ok(0) => Outcome::Silent,
        Ok(_) => Outcome::Counts,
        Err(error) => Outcome::Refused(Errno::from_io_error(&error).unwrap_or(Errno::IO)),
    }
}

/// Whether the kernel can tell (and share out) the occupancy and bandwidth of the caches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resctrl {
    /// `/sys/fs/resctrl` is mounted.
    Mounted,
    /// The kernel has it; it is not mounted.
    NotMounted,
    /// The kernel or the CPU has none.
    Absent,
}

impl Resctrl {
    /// What that means, in plain words.
    pub fn meaning(self) -> &'static str {
        match self {
            Resctrl::Mounted => "mounted at /sys/fs/resctrl",
            Resctrl::NotMounted => {
                "in the kernel, not mounted (as root: mount -t resctrl resctrl /sys/fs/resctrl)"
            }
            Resctrl::Absent => "none (CPU or kernel lacks it)",
        }
    }
}

/// Looks for resctrl.
pub fn resctrl() -> Resctrl {
    if Path::new("/sys/fs/resctrl/schemata").exists() {
        return Resctrl::Mounted;
    }
    let filesystems = fs::read_to_string("/proc/filesystems").unwrap_or_default();
    let known = filesystems.lines().any(|line| line.split_whitespace().last() == Some("resctrl"));
    if known { Resctrl::NotMounted } else { Resctrl::Absent }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_gets_an_outcome_in_words() {
        let counters = counters();
        assert_eq!(
            counters.iter().map(|c| c.name).collect::<Vec<_>>(),
            ["cycles", "instructions", "llc-misses"]
        );
        for counter in counters {
            assert!(!counter.outcome.meaning().is_empty(), "{counter:?}");
        }
    }

    #[test]
    fn refusals_say_what_to_make_of_them() {
        let meaning = |errno| Outcome::Refused(errno).meaning();
        assert!(meaning(Errno::NOENT).contains("hypervisor"));
        assert!(meaning(Errno::ACCESS).contains("perf_event_paranoid"));
        assert!(meaning(Errno::NOSYS).contains("no performance events"));
        assert!(meaning(Errno::MFILE).contains(&io::Error::from(Errno::MFILE).to_string()));
    }
}
