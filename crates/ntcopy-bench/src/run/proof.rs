//! What the kernel counted, held against what was sent.

use std::collections::BTreeMap;
use std::path::PathBuf;

use ntcopy::socket::{self, Counters};
use ntcopy::uapi;

use super::Failure;
use crate::experiment::Mode;

/// Of a program's own sends this much in 100 has to be counted as hinted: `ntcopy run` leaves alone
/// a part of a send that is below a page.
pub const OF_A_PROGRAM_PERCENT: u64 = 75;

/// What the kernel has to count of hinted sends. Plain ones are not counted at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// Every byte. In mode `nt` none fits the cache; the heads of socket buffers are too small, as
    /// small pieces are.
    Exactly {
        bytes: u64,
        /// How many of these were in pieces below a page, at least.
        too_small: u64,
        /// Whether the kernel reads some itself: it checksums a datagram of several packets while
        /// it copies.
        may_be_read: bool,
    },
    /// At least this many; in mode `nt` half of them non-temporally.
    AtLeast(u64),
    /// The program chooses, and may choose the hint.
    Anything,
}

/// The counters of each network namespace that takes part, before a run; none where the kernel does
/// not count.
pub struct Proof {
    before: Vec<Option<Counters>>,
    apart: Option<u32>,
}

impl Proof {
    /// Reads those of this namespace, and of the one that a process is in.
    pub fn begin(apart: Option<u32>) -> Result<Proof, Failure> {
        Ok(Proof { before: read(apart)?, apart })
    }

    /// Reads them again, and gives those that rose, and by how much.
    pub fn rose(&self) -> Result<BTreeMap<String, u64>, Failure> {
        let mut added = rose(&self.before, &read(self.apart)?)?;
        added.retain(|_, count| *count > 0);
        Ok(added)
    }

    /// Reads them again, when all has come, and checks what was added. `what` says what was sent.
    /// Gives the counters that rose.
    pub fn check(
        &self,
        what: &str,
        mode: Mode,
        due: Due,
    ) -> Result<BTreeMap<String, u64>, Failure> {
        let mut added = rose(&self.before, &read(self.apart)?)?;
        fits(&added, what, mode, due).map_err(Failure::Counters)?;
        added.retain(|_, count| *count > 0);
        Ok(added)
    }
}

fn read(apart: Option<u32>) -> Result<Vec<Option<Counters>>, Failure> {
    let failed = |error: ntcopy::socket::CountersError| Failure::Counters(error.to_string());
    let mut all = vec![socket::counters().map_err(failed)?];
    if let Some(process) = apart {
        let path = PathBuf::from(format!("/proc/{process}/net/ntcopy_stat"));
        all.push(socket::counters_in(&path).map_err(failed)?);
    }
    Ok(all)
}

/// By how much each counter rose, in all namespaces together.
fn rose(
    before: &[Option<Counters>],
    after: &[Option<Counters>],
) -> Result<BTreeMap<String, u64>, Failure> {
    let mut added = BTreeMap::new();
    for counters in before.iter().zip(after) {
        let (before, after) = match counters {
            (Some(before), Some(after)) => (before, after),
            (None, None) => continue,
            _ => return Err(Failure::Counters(format!("{} came or went", uapi::STAT_PATH))),
        };
        let rose = after.since(before).map_err(|error| Failure::Counters(error.to_string()))?;
        for (name, count) in rose.into_map() {
            *added.entry(name).or_insert(0) += count;
        }
    }
    Ok(added)
}

fn fits(added: &BTreeMap<String, u64>, what: &str, mode: Mode, due: Due) -> Result<(), String> {
    let count = |name: &str| added.get(name).copied().unwrap_or(0);
    let all: u64 = added.values().sum();
    let [nontemporal, small, read, spliced] = [
        uapi::STAT_NONTEMPORAL,
        uapi::STAT_TOO_SMALL,
        uapi::STAT_READ_BY_KERNEL,
        // What is spliced to a socket that hints is counted too, and was not copied.
        uapi::STAT_NOT_SUPPORTED,
    ]
    .map(count);
    let copied = all - spliced;
    let (is_right, words) = match (due, mode) {
        (Due::Anything, _) => return Ok(()),
        (_, Mode::Copy | Mode::Vmsplice | Mode::Idle) => (all == 0, "no byte at all".to_owned()),
        (Due::Exactly { bytes, .. }, Mode::Adaptive) => {
            (all == bytes, format!("{bytes} under some name"))
        }
        (Due::Exactly { bytes, too_small, may_be_read }, Mode::Nt) => {
            let read = if may_be_read { read } else { 0 };
            let is_any = nontemporal + read > 0 || too_small == bytes;
            let is_right =
                all == bytes && nontemporal + small + read == bytes && small >= too_small && is_any;
            let or_read = if may_be_read { " or read by the kernel" } else { "" };
            let words = format!(
                "{too_small} or more as too small, the others of {bytes} as non-temporal{or_read}"
            );
            (is_right, words)
        }
        (Due::AtLeast(least), Mode::Adaptive) => {
            (copied >= least, format!("at least {least} as copied in some way"))
        }
        (Due::AtLeast(least), Mode::Nt) => (
            copied >= least && nontemporal >= least / 2,
            format!("at least {least} as copied, and half of them as non-temporal"),
        ),
    };
    // A kernel that does not count proves no hint, however little was sent.
    if is_right && (!mode.is_hinted() || !added.is_empty()) {
        return Ok(());
    }
    let parts = added.iter().filter(|(_, count)| **count > 0);
    let parts: Vec<String> = parts.map(|(name, count)| format!("{name} rose by {count}")).collect();
    let parts = if parts.is_empty() { "no counter rose".to_owned() } else { parts.join(" and ") };
    Err(format!(
        "{what}, and the kernel was to count {words}, but {parts} (look at net.core.ntcopy, and \
         whether another program sends in this network namespace)"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NT: &str = uapi::STAT_NONTEMPORAL;
    const SMALL: &str = uapi::STAT_TOO_SMALL;
    const FITS: &str = uapi::STAT_FITS_CACHE;
    const READ: &str = uapi::STAT_READ_BY_KERNEL;
    const SPLICED: &str = uapi::STAT_NOT_SUPPORTED;

    fn check(mode: Mode, due: Due, counts: &[(&str, u64)]) -> Result<(), String> {
        let added = counts.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
        fits(&added, "100 bytes were sent", mode, due)
    }

    fn exactly(bytes: u64, too_small: u64) -> Due {
        Due::Exactly { bytes, too_small, may_be_read: false }
    }

    #[test]
    fn plain_sends_are_not_counted_at_all() {
        for mode in [Mode::Copy, Mode::Vmsplice, Mode::Idle] {
            for due in [exactly(100, 0), Due::AtLeast(75)] {
                assert_eq!(check(mode, due, &[]), Ok(()));
                assert_eq!(check(mode, due, &[(NT, 0)]), Ok(()));
                let error = check(mode, due, &[(FITS, 1)]).unwrap_err();
                assert!(error.contains("no byte at all") && error.contains("rose by 1"), "{error}");
            }
        }
    }

    #[test]
    fn every_byte_of_an_obeyed_hint_is_non_temporal_or_too_small() {
        let nt = |due, counts: &[(&str, u64)]| check(Mode::Nt, due, counts);
        assert_eq!(nt(exactly(100, 0), &[(NT, 100), (SMALL, 0)]), Ok(()));
        assert_eq!(nt(exactly(100, 0), &[(NT, 90), (SMALL, 10)]), Ok(()), "heads of buffers");
        let error = nt(exactly(101, 0), &[(NT, 100)]).unwrap_err();
        assert!(error.contains("nontemporal_bytes rose by 100"), "{error}");
        assert!(nt(exactly(100, 0), &[(NT, 0), (SMALL, 100)]).is_err(), "nothing was done");
        assert!(nt(exactly(100, 0), &[(NT, 90), (FITS, 10)]).is_err(), "it asks no cache");
        assert!(nt(exactly(1, 0), &[]).unwrap_err().contains("no counter rose"));
        // A kernel that counts, and ignores.
        assert!(nt(exactly(1, 0), &[(NT, 0), (SMALL, 0)]).is_err());
        assert!(check(Mode::Adaptive, exactly(1, 0), &[(NT, 0), (SMALL, 0)]).is_err());
        // Small pieces, and all of them small.
        assert_eq!(nt(exactly(100, 10), &[(NT, 90), (SMALL, 10)]), Ok(()));
        assert!(nt(exactly(100, 11), &[(NT, 90), (SMALL, 10)]).unwrap_err().contains("11 or more"));
        assert_eq!(nt(exactly(100, 100), &[(SMALL, 100)]), Ok(()));
    }

    #[test]
    fn datagrams_may_be_read_by_the_kernel_where_that_is_said() {
        let counts = [(READ, 80), (SMALL, 20)];
        assert!(check(Mode::Nt, exactly(100, 20), &counts).is_err());
        let due = Due::Exactly { bytes: 100, too_small: 20, may_be_read: true };
        assert_eq!(check(Mode::Nt, due, &counts), Ok(()));
    }

    #[test]
    fn every_byte_of_an_adaptive_hint_is_counted_under_whatever_name() {
        let split = [(NT, 60), (FITS, 40)];
        assert_eq!(check(Mode::Adaptive, exactly(100, 0), &split), Ok(()));
        let error = check(Mode::Adaptive, exactly(101, 0), &split).unwrap_err();
        assert!(error.contains("fits_cache_bytes rose by 40 and nontemporal_bytes"), "{error}");
        assert!(check(Mode::Adaptive, exactly(0, 0), &[]).is_err(), "a kernel that does not count");
    }

    #[test]
    fn a_program_hints_most_of_what_it_sends_and_copies_it() {
        let due = Due::AtLeast(75);
        for (counts, is_right) in [
            (&[(NT, 90), (SMALL, 10)][..], [true, true]),
            (&[(FITS, 100)], [true, false]),
            (&[(NT, 30), (FITS, 70)], [true, false]),
            (&[(NT, 50)], [false, false]),
            (&[(SPLICED, 100)], [false, false]),
            (&[(SPLICED, 100), (NT, 100)], [true, true]),
            (&[(NT, 0)], [false, false]),
        ] {
            let found = [Mode::Adaptive, Mode::Nt].map(|mode| check(mode, due, counts).is_ok());
            assert_eq!(found, is_right, "{counts:?}");
        }
        assert_eq!(check(Mode::Nt, Due::Anything, &[]), Ok(()));
    }

    #[test]
    fn counters_that_come_or_go_prove_nothing() {
        assert_eq!(rose(&[None], &[None]), Ok(BTreeMap::new()));
        assert!(rose(&[None], &[Some(Counters::default())]).is_err());
    }
}
