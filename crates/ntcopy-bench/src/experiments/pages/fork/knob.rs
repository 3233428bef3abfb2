//! The kernel's knob: whether it clears and copies small pages non-temporally, and its count of
//! how often it did.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use super::ForkMode;
use crate::run::Failure;

const FOLDER: &str = "/proc/sys/vm";
const CLEAR: &str = "nontemporal_clear_bytes";
const COPY: &str = "nontemporal_copy_bytes";
const VMSTAT: &str = "/proc/vmstat";
const CLEARED: &str = "pgclear_nontemporal";
const COPIED: &str = "pgcopy_nontemporal";

/// The two settings. Dropping it restores what they were.
#[derive(Debug)]
pub struct Knob {
    before: [(PathBuf, String); 2],
}

impl Knob {
    /// Takes hold of the settings of a kernel of this kind, as records name it.
    pub fn of(kernel_kind: &str) -> Result<Knob, String> {
        if !kernel_kind.starts_with("um") {
            return Err("there is nothing to switch: only the user-mode kernel has a setting to \
                        clear and copy pages of 4 KiB non-temporally; --kernel um boots it"
                .to_owned());
        }
        let read = |name: &str| {
            let path = PathBuf::from(FOLDER).join(name);
            fs::read_to_string(&path)
                .map(|value| (path, value))
                .map_err(|error| format!("this kernel has no vm.{name}: {error}"))
        };
        Ok(Knob { before: [read(CLEAR)?, read(COPY)?] })
    }

    /// Switches: 1, and every page goes the non-temporal way; 0, and none does.
    pub fn set(&self, mode: ForkMode) -> Result<(), Failure> {
        let (clear, copy) = mode.nontemporal();
        for ((path, _), nontemporal) in self.before.iter().zip([clear, copy]) {
            let value = if nontemporal { "1" } else { "0" };
            let doing = || format!("cannot set {} (are you root there?)", path.display());
            fs::write(path, value).map_err(Failure::io(doing()))?;
        }
        Ok(())
    }
}

impl Drop for Knob {
    fn drop(&mut self) {
        for (path, value) in &self.before {
            // What took the new values takes the old ones.
            let _ = fs::write(path, value);
        }
    }
}

/// Pages that the kernel has cleared and copied non-temporally since it booted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    cleared: u64,
    copied: u64,
}

impl Counts {
    /// Reads them; none where the kernel does not count.
    pub fn read() -> Result<Option<Counts>, Failure> {
        let text =
            fs::read_to_string(VMSTAT).map_err(Failure::io(format!("cannot read {VMSTAT}")))?;
        Ok(Counts::of(&text))
    }

    fn of(text: &str) -> Option<Counts> {
        let count = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            line?.trim().parse::<u64>().ok()
        };
        Some(Counts { cleared: count(CLEARED)?, copied: count(COPIED)? })
    }
}

/// Holds what was counted against what a mode must have done to the forked pages; gives the
/// counters that rose.
pub fn check(
    mode: ForkMode,
    forked_pages: u64,
    before: Option<Counts>,
    after: Option<Counts>,
) -> Result<BTreeMap<String, u64>, Failure> {
    let (cleared, copied) = match (before, after) {
        (Some(before), Some(after)) => (
            after.cleared.saturating_sub(before.cleared),
            after.copied.saturating_sub(before.copied),
        ),
        // A kernel that cannot does not count either.
        _ => (0, 0),
    };
    let (clears, copies) = mode.nontemporal();
    let is_right =
        (cleared > 0) == clears && if copies { copied >= forked_pages.max(1) } else { copied == 0 };
    if !is_right {
        let due = match mode {
            ForkMode::Temporal => "none of either".to_owned(),
            ForkMode::Nt => format!("some cleared and at least {forked_pages} copied"),
            ForkMode::NtCopy => format!("none cleared and at least {forked_pages} copied"),
        };
        return Err(Failure::Counters(format!(
            "in mode {mode} {VMSTAT} was to count {due}, but {CLEARED} rose by {cleared} and \
             {COPIED} by {copied} (look at vm.{CLEAR} and vm.{COPY})"
        )));
    }
    let counters = [(CLEARED, cleared), (COPIED, copied)].into_iter();
    Ok(counters.filter(|(_, count)| *count > 0).map(|(name, n)| (name.to_owned(), n)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rose(mode: ForkMode, cleared: u64, copied: u64) -> Result<BTreeMap<String, u64>, Failure> {
        let after = Counts { cleared: 100 + cleared, copied: 7 + copied };
        check(mode, 10, Some(Counts { cleared: 100, copied: 7 }), Some(after))
    }

    #[test]
    fn each_mode_must_be_seen_in_the_counters() {
        assert_eq!(rose(ForkMode::Temporal, 0, 0), Ok(BTreeMap::new()));
        assert!(rose(ForkMode::Temporal, 1, 0).is_err() && rose(ForkMode::Temporal, 0, 1).is_err());
        assert_eq!(rose(ForkMode::Nt, 3, 10).unwrap()["pgcopy_nontemporal"], 10);
        assert!(rose(ForkMode::Nt, 3, 9).is_err(), "a page was copied the other way");
        assert!(rose(ForkMode::Nt, 0, 10).is_err(), "nothing was cleared");
        assert!(rose(ForkMode::NtCopy, 0, 10).is_ok() && rose(ForkMode::NtCopy, 1, 10).is_err());
        let error = check(ForkMode::Nt, 10, None, None).unwrap_err().to_string();
        assert!(error.contains("pgcopy_nontemporal by 0"), "{error}");
    }

    #[test]
    fn counters_are_read_by_their_whole_names() {
        let text = "pgclear_nontemporal_other 9\npgclear_nontemporal 3\npgcopy_nontemporal 4\n";
        assert_eq!(Counts::of(text), Some(Counts { cleared: 3, copied: 4 }));
        assert_eq!(Counts::of("pgfault 1\n"), None);
    }

    #[test]
    fn a_kernel_on_real_pages_has_nothing_to_switch() {
        let why = Knob::of("host").unwrap_err();
        assert!(why.contains("nothing to switch") && why.contains("--kernel um"), "{why}");
    }
}
