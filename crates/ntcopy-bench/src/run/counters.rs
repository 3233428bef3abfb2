//! What the kernel counted, held against what was sent.

use std::collections::BTreeMap;

use ntcopy::socket::{self, Counters};
use ntcopy::uapi;

use super::Failure;
use crate::experiment::Mode;

/// The counters before a run; none on a kernel that does not count.
pub struct Before(Option<Counters>);

/// Reads the counters.
pub fn before() -> Result<Before, Failure> {
    read().map(Before)
}

/// Reads them again and checks what a run of `mode` that sent `sent` bytes must
/// have added: in mode `nt` every byte as non-temporal, otherwise nothing.
pub fn check(before: &Before, mode: Mode, sent: u64) -> Result<BTreeMap<String, u64>, Failure> {
    let added = match (read()?, &before.0) {
        (Some(after), Some(before)) => {
            after.since(before).map_err(|error| Failure::Counters(error.to_string()))?.into_map()
        }
        (None, None) => BTreeMap::new(),
        _ => return Err(Failure::Counters(format!("{} came or went", uapi::STAT_PATH))),
    };
    fits(&added, mode, sent).map_err(Failure::Counters)?;
    Ok(added)
}

fn read() -> Result<Option<Counters>, Failure> {
    socket::counters().map_err(|error| Failure::Counters(error.to_string()))
}

fn fits(added: &BTreeMap<String, u64>, mode: Mode, sent: u64) -> Result<(), String> {
    let expected = |name: &str| match mode {
        Mode::Nt if name == uapi::STAT_NONTEMPORAL => sent,
        Mode::Nt | Mode::Copy | Mode::Vmsplice => 0,
    };
    if mode == Mode::Nt && !added.contains_key(uapi::STAT_NONTEMPORAL) {
        return Err(format!("{} does not count {}", uapi::STAT_PATH, uapi::STAT_NONTEMPORAL));
    }
    let wrong: Vec<String> = added
        .iter()
        .filter(|(name, count)| **count != expected(name))
        .map(|(name, count)| format!("{name} rose by {count} instead of {}", expected(name)))
        .collect();
    if wrong.is_empty() {
        return Ok(());
    }
    Err(format!(
        "mode {mode} sent {sent} bytes, but {} (look at net.core.ntcopy and \
         net.core.ntcopy_min_bytes, and whether another program sends in this network namespace)",
        wrong.join(" and ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added(counts: &[(&str, u64)]) -> BTreeMap<String, u64> {
        counts.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
    }

    #[test]
    fn nt_must_be_counted_to_the_byte() {
        let exact = added(&[(uapi::STAT_NONTEMPORAL, 100), (uapi::STAT_TOO_SMALL, 0)]);
        assert_eq!(fits(&exact, Mode::Nt, 100), Ok(()));
        let error = fits(&exact, Mode::Nt, 101).unwrap_err();
        assert!(error.contains("nontemporal_bytes rose by 100 instead of 101"), "{error}");
        let small = added(&[(uapi::STAT_NONTEMPORAL, 0), (uapi::STAT_TOO_SMALL, 100)]);
        let error = fits(&small, Mode::Nt, 100).unwrap_err();
        assert!(error.contains("too_small_bytes rose by 100 instead of 0"), "{error}");
    }

    #[test]
    fn nt_without_a_count_is_an_error_and_copy_without_is_not() {
        assert!(fits(&added(&[]), Mode::Nt, 1).is_err());
        assert_eq!(fits(&added(&[]), Mode::Copy, 1), Ok(()));
    }

    #[test]
    fn copy_and_vmsplice_must_not_be_counted_at_all() {
        for mode in [Mode::Copy, Mode::Vmsplice] {
            assert_eq!(fits(&added(&[(uapi::STAT_NONTEMPORAL, 0)]), mode, 9), Ok(()));
            assert!(fits(&added(&[(uapi::STAT_FITS_CACHE, 9)]), mode, 9).is_err());
        }
    }
}
