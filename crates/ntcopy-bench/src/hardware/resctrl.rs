//! Memory bandwidth by resctrl's monitoring, of the default group: all tasks that were not put into
//! another. The whole machine's, then, in most cases. Nothing is mounted or set up here.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Bytes between the last-level caches and any memory.
pub const TOTAL: &str = "mbm-total-bytes";
/// Those of them that are of the cache's own NUMA node.
pub const LOCAL: &str = "mbm-local-bytes";

const MON_DATA: &str = "sys/fs/resctrl/mon_data";

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
    /// In the system whose root this is.
    pub fn of(root: &Path) -> Resctrl {
        if root.join("sys/fs/resctrl/schemata").exists() {
            return Resctrl::Mounted;
        }
        let known = fs::read_to_string(root.join("proc/filesystems")).unwrap_or_default();
        match known.lines().any(|line| line.split_whitespace().last() == Some("resctrl")) {
            true => Resctrl::NotMounted,
            false => Resctrl::Absent,
        }
    }

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

/// The files to read, one a cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Monitor {
    files: Vec<(&'static str, PathBuf)>,
}

/// Sums over all caches, by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading(BTreeMap<&'static str, u64>);

pub fn find(root: &Path) -> Result<Monitor, String> {
    let Ok(domains) = fs::read_dir(root.join(MON_DATA)) else {
        return Err(match Resctrl::of(root) {
            Resctrl::Mounted => "resctrl of this CPU monitors nothing".to_owned(),
            Resctrl::NotMounted => "resctrl is not mounted (as root: mount -t resctrl resctrl \
                              /sys/fs/resctrl)"
                .to_owned(),
            Resctrl::Absent => "no resctrl (CPU, kernel or hypervisor lacks it)".to_owned(),
        });
    };
    let mut domains: Vec<PathBuf> = domains
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("mon_L3_"))
        })
        .collect();
    domains.sort();
    let mut files = Vec::new();
    for (name, file) in [(TOTAL, "mbm_total_bytes"), (LOCAL, "mbm_local_bytes")] {
        let list: Vec<PathBuf> = domains.iter().map(|domain| domain.join(file)).collect();
        // One that some cache lacks would be a sum of the others.
        if !list.is_empty() && list.iter().all(|path| path.exists()) {
            files.extend(list.into_iter().map(|path| (name, path)));
        }
    }
    if files.is_empty() {
        return Err("resctrl of this CPU does not monitor bandwidth".to_owned());
    }
    Ok(Monitor { files })
}

impl Monitor {
    pub fn has(&self, name: &str) -> bool {
        self.files.iter().any(|(of, _)| *of == name)
    }

    /// Reads all. A name of which one cache says `Unavailable`, `Unassigned` or `Error` is left
    /// out; none where nothing could be read.
    pub fn read(&self) -> Option<Reading> {
        let mut sums: BTreeMap<&'static str, Option<u64>> = BTreeMap::new();
        for (name, path) in &self.files {
            let text = fs::read_to_string(path).ok();
            let bytes = text.and_then(|text| text.trim().parse::<u64>().ok());
            let sum = sums.entry(name).or_insert(Some(0));
            *sum = sum.zip(bytes).map(|(sum, bytes)| sum.wrapping_add(bytes));
        }
        let sums: BTreeMap<_, _> =
            sums.into_iter().filter_map(|(name, sum)| Some((name, sum?))).collect();
        (!sums.is_empty()).then_some(Reading(sums))
    }
}

impl Reading {
    /// What was added since. One that fell (a group was made or removed meanwhile) is left out.
    pub fn since(&self, before: &Reading) -> BTreeMap<String, u64> {
        let added = |(name, now): (&&str, &u64)| {
            let added = now.checked_sub(*before.0.get(*name)?)?;
            Some(((*name).to_owned(), added))
        };
        self.0.iter().filter_map(added).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Tree;
    use super::*;

    #[test]
    fn two_sockets_are_summed_and_what_was_added_is_given() {
        let tree = Tree::monitored();
        let monitor = find(tree.root()).unwrap();
        let before = monitor.read().unwrap();
        assert_eq!(before.0, [(TOTAL, 9_000_000_064), (LOCAL, 7_000_000_032)].into());
        tree.write("sys/fs/resctrl/mon_data/mon_L3_01/mbm_total_bytes", "4000000164\n");
        let added = monitor.read().unwrap().since(&before);
        assert_eq!(added, [(TOTAL.to_owned(), 100), (LOCAL.to_owned(), 0)].into());
    }

    #[test]
    fn a_cache_that_does_not_tell_takes_its_name_away_and_no_other() {
        let tree = Tree::monitored();
        let monitor = find(tree.root()).unwrap();
        let before = monitor.read().unwrap();
        for word in ["Unavailable", "Unassigned", "Error"] {
            tree.write("sys/fs/resctrl/mon_data/mon_L3_00/mbm_total_bytes", word);
            let now = monitor.read().unwrap();
            assert_eq!(now.0.keys().copied().collect::<Vec<_>>(), [LOCAL], "{word}");
            assert_eq!(now.since(&before).len(), 1);
        }
        tree.write("sys/fs/resctrl/mon_data/mon_L3_00/mbm_local_bytes", "1\n");
        assert_eq!(monitor.read().unwrap().since(&before), [].into(), "it fell");
    }

    #[test]
    fn each_way_of_not_having_it_is_told() {
        let tree = Tree::guest();
        assert!(find(tree.root()).unwrap_err().starts_with("no resctrl"));
        tree.write("proc/filesystems", "nodev\tproc\nnodev\tresctrl\n");
        assert!(find(tree.root()).unwrap_err().contains("mount -t resctrl"));
        tree.write("sys/fs/resctrl/schemata", "L3:0=fff\n");
        assert!(find(tree.root()).unwrap_err().contains("monitors nothing"));
        tree.write("sys/fs/resctrl/mon_data/mon_L3_00/llc_occupancy", "0\n");
        assert!(find(tree.root()).unwrap_err().contains("does not monitor bandwidth"));
    }
}
