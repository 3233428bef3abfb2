//! What the kernel counted, held against what was sent.

use std::collections::BTreeMap;
use std::path::PathBuf;

use ntcopy::socket::{self, Counters};
use ntcopy::uapi;

use super::Failure;
use crate::experiment::Mode;

/// The counters before a run; none on a kernel that does not count.
pub struct Before(Option<Counters>);

pub fn before() -> Result<Before, Failure> {
    read().map(Before)
}

/// What a run must have added to them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expected {
    pub mode: Mode,
    pub sent: u64,
    /// How many of these were in pieces below a page, at least. The kernel counts the heads of
    /// socket buffers with them, where it has such.
    pub too_small: u64,
}

/// Reads them again and checks what was added: in mode `nt` every byte as
/// non-temporal or too small, in mode `adaptive` every byte under some name,
/// otherwise nothing. Gives the counters that rose.
pub fn check(before: &Before, expected: Expected) -> Result<BTreeMap<String, u64>, Failure> {
    let mut added = match (read()?, &before.0) {
        (Some(after), Some(before)) => {
            after.since(before).map_err(|error| Failure::Counters(error.to_string()))?.into_map()
        }
        (None, None) => BTreeMap::new(),
        _ => return Err(Failure::Counters(format!("{} came or went", uapi::STAT_PATH))),
    };
    fits(&added, expected).map_err(Failure::Counters)?;
    added.retain(|_, count| *count > 0);
    Ok(added)
}

/// Reads them; none on a kernel that does not count.
pub fn read() -> Result<Option<Counters>, Failure> {
    socket::counters().map_err(|error| Failure::Counters(error.to_string()))
}

/// The counters of each network namespace that takes part; none where the kernel does not count.
pub type All = Vec<Option<Counters>>;

/// Reads those of this namespace, and those of the one that a process is in.
pub fn read_all(apart: Option<u32>) -> Result<All, Failure> {
    let mut all = vec![read()?];
    if let Some(process) = apart {
        let path = PathBuf::from(format!("/proc/{process}/net/ntcopy_stat"));
        let theirs = socket::counters_in(&path);
        all.push(theirs.map_err(|error| Failure::Counters(error.to_string()))?);
    }
    Ok(all)
}

/// By how much each counter rose, in all namespaces together.
pub fn rose(before: &All, after: &All) -> Result<BTreeMap<String, u64>, Failure> {
    let mut added = BTreeMap::new();
    for (after, before) in after.iter().zip(before) {
        let (Some(after), Some(before)) = (after, before) else { continue };
        let rose = after.since(before).map_err(|error| Failure::Counters(error.to_string()))?;
        for (name, count) in rose.into_map() {
            *added.entry(name).or_insert(0) += count;
        }
    }
    Ok(added)
}

fn fits(added: &BTreeMap<String, u64>, expected: Expected) -> Result<(), String> {
    let Expected { mode, sent, too_small } = expected;
    if mode.is_hinted() && !added.contains_key(uapi::STAT_NONTEMPORAL) {
        return Err(format!("{} does not count {}", uapi::STAT_PATH, uapi::STAT_NONTEMPORAL));
    }
    let count = |name: &str| added.get(name).copied().unwrap_or(0);
    let rose = |(name, count): (&String, &u64)| format!("{name} rose by {count}");
    let named = |names: &[&str]| -> u64 { names.iter().map(|name| count(name)).sum() };
    let all: u64 = added.values().sum();
    let right = match mode {
        Mode::Nt => {
            let [nontemporal, small] = [uapi::STAT_NONTEMPORAL, uapi::STAT_TOO_SMALL];
            named(&[nontemporal, small]) == sent
                && all == sent
                && count(small) >= too_small
                && (count(nontemporal) > 0 || too_small == sent)
        }
        Mode::Adaptive => all == sent,
        Mode::Copy | Mode::Vmsplice | Mode::Idle => all == 0,
    };
    if right {
        return Ok(());
    }
    let parts: Vec<String> = added.iter().filter(|(_, count)| **count > 0).map(rose).collect();
    let parts = if parts.is_empty() { "no counter rose".to_owned() } else { parts.join(" and ") };
    let due = match mode {
        Mode::Nt if too_small > 0 => {
            format!("{too_small} of them and more as too small, the others as non-temporal")
        }
        Mode::Nt => "all of them as non-temporal, but for the heads of buffers".to_owned(),
        Mode::Adaptive => "all of them under some name".to_owned(),
        Mode::Copy | Mode::Vmsplice | Mode::Idle => "none of them".to_owned(),
    };
    Err(format!(
        "mode {mode} sent {sent} bytes, and the kernel was to count {due}, but {parts} (look at \
         net.core.ntcopy, and whether another program sends in this network namespace)"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(mode: Mode, sent: u64) -> Expected {
        Expected { mode, sent, too_small: 0 }
    }

    fn added(counts: &[(&str, u64)]) -> BTreeMap<String, u64> {
        counts.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
    }

    #[test]
    fn nt_must_be_counted_to_the_byte() {
        let exact = added(&[(uapi::STAT_NONTEMPORAL, 100), (uapi::STAT_TOO_SMALL, 0)]);
        assert_eq!(fits(&exact, of(Mode::Nt, 100)), Ok(()));
        let error = fits(&exact, of(Mode::Nt, 101)).unwrap_err();
        assert!(error.contains("nontemporal_bytes rose by 100"), "{error}");
        let small = added(&[(uapi::STAT_NONTEMPORAL, 0), (uapi::STAT_TOO_SMALL, 100)]);
        let error = fits(&small, of(Mode::Nt, 100)).unwrap_err();
        assert!(error.contains("too_small_bytes rose by 100"), "{error}");
        let other = added(&[(uapi::STAT_NONTEMPORAL, 90), (uapi::STAT_FITS_CACHE, 10)]);
        assert!(fits(&other, of(Mode::Nt, 100)).is_err());
    }

    #[test]
    fn heads_of_buffers_are_too_small() {
        let heads = added(&[(uapi::STAT_NONTEMPORAL, 90), (uapi::STAT_TOO_SMALL, 10)]);
        assert_eq!(fits(&heads, of(Mode::Nt, 100)), Ok(()));
        assert!(fits(&heads, of(Mode::Nt, 99)).is_err());
    }

    #[test]
    fn nt_without_a_count_is_an_error_and_copy_without_is_not() {
        assert!(fits(&added(&[]), of(Mode::Nt, 1)).is_err());
        let ignored = added(&[(uapi::STAT_NONTEMPORAL, 0), (uapi::STAT_TOO_SMALL, 0)]);
        assert!(fits(&ignored, of(Mode::Nt, 1)).is_err(), "a kernel that counts, and ignores");
        assert!(fits(&ignored, of(Mode::Adaptive, 1)).is_err());
        assert_eq!(fits(&added(&[]), of(Mode::Copy, 1)), Ok(()));
    }

    #[test]
    fn datagrams_that_are_too_small_are_expected_ones() {
        let counted = added(&[(uapi::STAT_NONTEMPORAL, 90), (uapi::STAT_TOO_SMALL, 10)]);
        assert_eq!(fits(&counted, Expected { too_small: 10, ..of(Mode::Nt, 100) }), Ok(()));
        let error = fits(&counted, Expected { too_small: 11, ..of(Mode::Nt, 100) }).unwrap_err();
        assert!(error.contains("was to count 11 of them and more as too small"), "{error}");
    }

    #[test]
    fn adaptive_must_be_counted_to_the_byte_under_whatever_name() {
        let split = added(&[(uapi::STAT_NONTEMPORAL, 60), (uapi::STAT_FITS_CACHE, 40)]);
        assert_eq!(fits(&split, of(Mode::Adaptive, 100)), Ok(()));
        let error = fits(&split, of(Mode::Adaptive, 101)).unwrap_err();
        assert!(error.contains("fits_cache_bytes rose by 40 and nontemporal_bytes"), "{error}");
        assert!(fits(&added(&[]), of(Mode::Adaptive, 0)).is_err(), "a kernel that does not count");
    }

    #[test]
    fn copy_and_vmsplice_must_not_be_counted_at_all() {
        for mode in [Mode::Copy, Mode::Vmsplice, Mode::Idle] {
            assert_eq!(fits(&added(&[(uapi::STAT_NONTEMPORAL, 0)]), of(mode, 9)), Ok(()));
            assert!(fits(&added(&[(uapi::STAT_FITS_CACHE, 9)]), of(mode, 9)).is_err());
        }
    }
}
