//! What the kernel counted, held against what a mode was to do.

use std::collections::BTreeMap;

use ntcopy::uapi;

use super::ask::AppMode;
use crate::run::{Failure, counters};

/// The percentage of the large values' bytes that has to be counted as hinted: a part of a send
/// below 4 KiB is left alone by `ntcopy run`.
const LEAST_PERCENT: u64 = 75;

/// The counters before a run.
pub struct Proof {
    before: counters::All,
    mode: AppMode,
}

impl Proof {
    pub fn begin(mode: AppMode) -> Result<Proof, Failure> {
        Ok(Proof { before: counters::read_all(None)?, mode })
    }

    /// Reads them again, and checks what was added against `large_bytes` of large values. Gives the
    /// counters that rose.
    pub fn check(&self, large_bytes: u64) -> Result<BTreeMap<String, u64>, Failure> {
        let mut added = counters::rose(&self.before, &counters::read_all(None)?)?;
        fits(&added, self.mode, large_bytes).map_err(Failure::Counters)?;
        added.retain(|_, count| *count > 0);
        Ok(added)
    }
}

fn fits(added: &BTreeMap<String, u64>, mode: AppMode, large_bytes: u64) -> Result<(), String> {
    let count = |name: &str| added.get(name).copied().unwrap_or(0);
    let all: u64 = added.values().sum();
    let copied = all - count(uapi::STAT_NOT_SUPPORTED);
    let least = large_bytes / 100 * LEAST_PERCENT;
    let (right, due) = match mode {
        AppMode::Adaptive => (copied >= least, format!("at least {least} as copied in some way")),
        AppMode::Nt => (
            copied >= least && count(uapi::STAT_NONTEMPORAL) >= least / 2,
            format!("at least {least} as copied, and half of them as non-temporal"),
        ),
        _ => (all == 0, "no byte at all".to_owned()),
    };
    if right {
        return Ok(());
    }
    let parts = added.iter().filter(|(_, count)| **count > 0);
    let parts: Vec<String> = parts.map(|(name, count)| format!("{name} rose by {count}")).collect();
    let parts = if parts.is_empty() { "no counter rose".to_owned() } else { parts.join(" and ") };
    Err(format!(
        "mode {mode} sent {large_bytes} bytes of large values, and the kernel was to count {due}, \
         but {parts} (look at net.core.ntcopy, and whether another program sends in this network \
         namespace)"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added(counts: &[(&str, u64)]) -> BTreeMap<String, u64> {
        counts.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
    }

    #[test]
    fn a_mode_that_went_another_way_gives_no_number() {
        let nontemporal = added(&[(uapi::STAT_NONTEMPORAL, 900), (uapi::STAT_TOO_SMALL, 100)]);
        let temporal = added(&[(uapi::STAT_FITS_CACHE, 1000)]);
        let spliced = added(&[(uapi::STAT_NOT_SUPPORTED, 1000)]);
        let nothing = added(&[(uapi::STAT_NONTEMPORAL, 0)]);
        for (counts, is_right) in [
            (&nontemporal, [false, false, true, true]),
            (&temporal, [false, false, true, false]),
            (&spliced, [false, false, false, false]),
            (&nothing, [true, true, false, false]),
        ] {
            let modes = [AppMode::Copy, AppMode::Chunked, AppMode::Adaptive, AppMode::Nt];
            let found = modes.map(|mode| fits(counts, mode, 1000).is_ok());
            assert_eq!(found, is_right, "{counts:?}");
        }
        let said = fits(&temporal, AppMode::Nt, 1000).unwrap_err();
        assert!(said.contains("fits_cache_bytes rose by 1000"), "{said}");
    }
}
