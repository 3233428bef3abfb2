//! The kernel's knob: whether it clears and copies small pages non-temporally, and its count of
//! how often it did.

use std::collections::BTreeMap;
use std::fs;

use super::ForkMode;
use crate::run::Failure;

/// The settings for clearing and for copying, and the counters of pages that went that way.
const SETTINGS: [&str; 2] =
    ["/proc/sys/vm/nontemporal_clear_bytes", "/proc/sys/vm/nontemporal_copy_bytes"];
const VMSTAT: &str = "/proc/vmstat";
const COUNTERS: [&str; 2] = ["pgclear_nontemporal", "pgcopy_nontemporal"];

/// Switches: 1, and every page goes the non-temporal way; 0, and none does.
pub fn set(mode: ForkMode) -> Result<(), Failure> {
    for (path, nontemporal) in SETTINGS.iter().zip(mode.nontemporal()) {
        let doing = format!("cannot set {path}");
        fs::write(path, if nontemporal { "1" } else { "0" }).map_err(Failure::io(doing))?;
    }
    Ok(())
}

/// Pages that the kernel has cleared and copied non-temporally since it booted.
pub fn counts() -> Result<[u64; 2], Failure> {
    let text = fs::read_to_string(VMSTAT).map_err(Failure::io(format!("cannot read {VMSTAT}")))?;
    Ok(COUNTERS.map(|name| {
        let count = |line: &str| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok();
        text.lines().find_map(count).unwrap_or(0)
    }))
}

/// Holds what was counted against what a mode must have done to the forked pages; gives the
/// counters that rose.
pub fn check(
    mode: ForkMode,
    forked_pages: u64,
    before: [u64; 2],
    after: [u64; 2],
) -> Result<BTreeMap<String, u64>, Failure> {
    let [cleared, copied] = [0, 1].map(|which| after[which].saturating_sub(before[which]));
    let [clears, copies] = mode.nontemporal();
    let least = if copies { forked_pages.max(1) } else { 0 };
    if (cleared > 0) != clears || copied < least || (!copies && copied > 0) {
        let [clear, copy] = COUNTERS;
        return Err(Failure::Counters(format!(
            "in mode {mode}, with {forked_pages} pages to copy, {clear} of {VMSTAT} rose by \
             {cleared} and {copy} by {copied}"
        )));
    }
    let rose = COUNTERS.into_iter().zip([cleared, copied]).filter(|(_, count)| *count > 0);
    Ok(rose.map(|(name, count)| (name.to_owned(), count)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mode_must_be_seen_in_the_counters() {
        let rose = |mode, cleared: u64, copied: u64| {
            check(mode, 10, [100, 7], [100 + cleared, 7 + copied])
        };
        assert_eq!(rose(ForkMode::Temporal, 0, 0), Ok(BTreeMap::new()));
        assert!(rose(ForkMode::Temporal, 1, 0).is_err() && rose(ForkMode::Temporal, 0, 1).is_err());
        assert_eq!(rose(ForkMode::Nt, 3, 10).unwrap()["pgcopy_nontemporal"], 10);
        assert!(rose(ForkMode::Nt, 3, 9).is_err(), "a page was copied the other way");
        assert!(rose(ForkMode::Nt, 0, 10).is_err(), "nothing was cleared");
        assert!(rose(ForkMode::NtCopy, 0, 10).is_ok() && rose(ForkMode::NtCopy, 1, 10).is_err());
    }
}
