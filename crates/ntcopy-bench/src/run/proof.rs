//! What was counted of the sends, held against what was sent.

use std::collections::BTreeMap;

use ntcopy::socket::{self, Counters};
use ntcopy::uapi;

use super::Failure;
use crate::experiment::Mode;
use crate::hardware::is_booted_for_this;

/// Of a program's own sends this much in 100 has to be counted as hinted: what is shorter than the
/// socket's number is not.
pub const OF_A_PROGRAM_PERCENT: u64 = 75;

/// What has to be counted of hinted sends. Plain ones are counted on sockets that opted in alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// Every byte, since each send is hinted.
    All {
        bytes: u64,
        /// How many of these must have gone past the caches: none in pieces below a page, or where
        /// the kernel reads them itself to checksum them while it copies.
        bypassed: u64,
    },
    /// At least this many, and half of them past the caches.
    AtLeast(u64),
    /// The program chooses, and may choose the hint.
    Anything,
}

/// The counters of each network namespace that takes part, before a run; none where nobody counts.
pub struct Proof {
    before: Vec<Option<Counters>>,
    apart: Option<u32>,
    /// Whether nothing but what is measured sends here: in a guest that was booted for it. Elsewhere
    /// other programs' sends may be counted as well.
    is_alone: bool,
}

impl Proof {
    /// Reads those of this namespace, and of the one that a process is in.
    pub fn begin(apart: Option<u32>) -> Result<Proof, Failure> {
        Ok(Proof { before: read(apart)?, apart, is_alone: is_booted_for_this() })
    }

    /// Reads them again, and gives those that rose, and by how much.
    pub fn rose(&self) -> Result<BTreeMap<String, u64>, Failure> {
        Ok(by_name(rose(&self.before, &read(self.apart)?)?))
    }

    /// Reads them again, when all has come, and checks what was added. `what` says what was sent.
    /// Gives the counters that rose.
    pub fn check(
        &self,
        what: &str,
        mode: Mode,
        due: Due,
    ) -> Result<BTreeMap<String, u64>, Failure> {
        let added = rose(&self.before, &read(self.apart)?)?;
        fits(added, what, mode, due, self.is_alone).map_err(Failure::Counters)?;
        Ok(by_name(added))
    }
}

fn by_name(added: Counters) -> BTreeMap<String, u64> {
    let rose = added.named().into_iter().filter(|(_, count)| *count > 0);
    rose.map(|(name, count)| (name.to_owned(), count)).collect()
}

fn read(apart: Option<u32>) -> Result<Vec<Option<Counters>>, Failure> {
    let failed = |error: ntcopy::socket::CountersError| Failure::Counters(error.to_string());
    let mut all = vec![socket::counters().map_err(failed)?];
    if let Some(process) = apart {
        all.push(socket::counters_of(process).map_err(failed)?);
    }
    Ok(all)
}

/// By how much each counter rose, in all namespaces together.
fn rose(before: &[Option<Counters>], after: &[Option<Counters>]) -> Result<Counters, Failure> {
    let mut added = Counters::default();
    for counters in before.iter().zip(after) {
        let (before, after) = match counters {
            (Some(before), Some(after)) => (before, after),
            (None, None) => continue,
            _ => return Err(Failure::Counters(format!("{} came or went", uapi::STAT_BYTES))),
        };
        let rose = after.since(before).map_err(|error| Failure::Counters(error.to_string()))?;
        added.bytes += rose.bytes;
        added.hinted_bytes += rose.hinted_bytes;
        added.bypassed_bytes += rose.bypassed_bytes;
    }
    Ok(added)
}

fn fits(added: Counters, what: &str, mode: Mode, due: Due, is_alone: bool) -> Result<(), String> {
    let hinted = added.hinted_bytes;
    let (is_right, words) = match due {
        Due::Anything => return Ok(()),
        // Others may send here, and what they send says nothing of these sends.
        _ if !mode.is_hinted() => (!is_alone || hinted == 0, "no hinted byte".to_owned()),
        Due::All { bytes, bypassed } => {
            let is_counted = hinted == bytes || (!is_alone && hinted > bytes);
            let words = format!("{bytes} hinted bytes, {bypassed} or more past the caches");
            (is_counted && added.bypassed_bytes >= bypassed, words)
        }
        Due::AtLeast(least) => {
            let is_right = hinted >= least && added.bypassed_bytes >= least / 2;
            (is_right, format!("{least} hinted bytes or more, half of them past the caches"))
        }
    };
    // A kernel that does not count proves no hint, however little was sent.
    if is_right && (!mode.is_hinted() || hinted > 0) {
        return Ok(());
    }
    let parts = added.named().into_iter().filter(|(_, count)| *count > 0);
    let parts: Vec<String> = parts.map(|(name, count)| format!("{name} rose by {count}")).collect();
    let parts = if parts.is_empty() { "no counter rose".to_owned() } else { parts.join(" and ") };
    Err(format!(
        "{what}, and {words} were due, but {parts} (look at net.core.ntcopy, and whether another \
         program sends in this network namespace; the module hints no send below 256 KiB)"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALONE: bool = true;
    const BESIDE_OTHERS: bool = false;

    fn counted([bytes, hinted_bytes, bypassed_bytes]: [u64; 3]) -> Counters {
        let mut counters = Counters::default();
        counters.bytes = bytes;
        counters.hinted_bytes = hinted_bytes;
        counters.bypassed_bytes = bypassed_bytes;
        counters
    }

    fn check(mode: Mode, due: Due, counts: [u64; 3], is_alone: bool) -> Result<(), String> {
        fits(counted(counts), "100 bytes were sent", mode, due, is_alone)
    }

    fn all(bytes: u64, bypassed: u64) -> Due {
        Due::All { bytes, bypassed }
    }

    #[test]
    fn no_byte_of_a_plain_send_is_hinted() {
        for mode in [Mode::Plain, Mode::Vmsplice, Mode::Idle] {
            for due in [all(100, 0), Due::AtLeast(75)] {
                assert_eq!(check(mode, due, [0, 0, 0], ALONE), Ok(()));
                assert_eq!(check(mode, due, [100, 0, 0], ALONE), Ok(()), "opted in, and plain");
                let error = check(mode, due, [100, 1, 0], ALONE).unwrap_err();
                assert!(error.contains("no hinted byte") && error.contains("rose by 1"), "{error}");
                assert_eq!(check(mode, due, [9, 9, 9], BESIDE_OTHERS), Ok(()), "others' bytes");
            }
        }
    }

    #[test]
    fn every_byte_of_hinted_sends_is_counted() {
        let nt = |due, counts| check(Mode::Hinted, due, counts, ALONE);
        assert_eq!(nt(all(100, 90), [100, 100, 90]), Ok(()));
        assert_eq!(nt(all(100, 0), [100, 100, 0]), Ok(()), "pieces below a page");
        let error = nt(all(101, 0), [101, 100, 100]).unwrap_err();
        assert!(error.contains("NtcopyHintedBytes rose by 100"), "{error}");
        assert!(nt(all(100, 0), [101, 101, 101]).is_err(), "nobody else sends");
        assert!(nt(all(100, 90), [100, 100, 89]).is_err(), "declined");
        assert!(nt(all(1, 0), [0, 0, 0]).unwrap_err().contains("no counter rose"));
        assert!(nt(all(0, 0), [0, 0, 0]).is_err(), "a kernel that does not count");
    }

    #[test]
    fn where_others_send_as_well_at_least_ours_are_counted() {
        let nt = |due, counts| check(Mode::Hinted, due, counts, BESIDE_OTHERS);
        assert_eq!(nt(all(100, 100), [700, 500, 300]), Ok(()));
        assert!(nt(all(100, 100), [700, 99, 99]).is_err());
    }

    #[test]
    fn most_of_what_a_program_sends_is_hinted_and_half_of_that_bypasses() {
        for (counts, is_right) in [
            ([100, 90, 90], true),
            ([100, 75, 38], true),
            ([100, 75, 36], false),
            ([100, 74, 74], false),
            ([100, 0, 0], false),
        ] {
            for alone in [ALONE, BESIDE_OTHERS] {
                let found = check(Mode::Hinted, Due::AtLeast(75), counts, alone).is_ok();
                assert_eq!(found, is_right, "{counts:?}");
            }
        }
        assert_eq!(check(Mode::Hinted, Due::Anything, [0, 0, 0], ALONE), Ok(()));
    }

    #[test]
    fn counters_that_come_or_go_prove_nothing() {
        assert_eq!(rose(&[None], &[None]), Ok(Counters::default()));
        assert!(rose(&[None], &[Some(Counters::default())]).is_err());
    }
}
