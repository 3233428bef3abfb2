//! Machines put together: what `/sys` and `/proc` of them hold. And events that need no PMU, to see
//! whose are counted.

use std::fs;
use std::path::Path;

use super::Hardware;
use super::open::{Opened, Request};

/// `PERF_TYPE_SOFTWARE`: the kernel's own events.
const SOFTWARE: u32 = 1;
/// Two of these that rise wherever something runs, by their names in `perf list`.
const TASK_CLOCK: u64 = 1;
const PAGE_FAULTS: u64 = 2;

impl Hardware {
    /// The kernel's own events, opened as those of the cores are; none if even they are refused.
    pub(crate) fn of_kernel() -> Option<Hardware> {
        let mut events = Vec::new();
        for (name, config) in [("task-clock", TASK_CLOCK), ("page-faults", PAGE_FAULTS)] {
            let request = Request { kind: SOFTWARE, config, with_started: true, kernel: false };
            events.push((name, Opened::new(&request)?));
        }
        Some(Hardware { events, ..Hardware::default() })
    }
}

pub struct Tree(tempfile::TempDir);

impl Tree {
    /// A guest without a PMU, whose kernel has no resctrl.
    pub fn guest() -> Tree {
        let tree = Tree(tempfile::tempdir().expect("a folder"));
        tree.write("sys/bus/event_source/devices/software/type", "1\n");
        tree.write("proc/filesystems", "nodev\tsysfs\n");
        tree
    }

    /// A server with a PMU; resctrl is not mounted.
    pub fn server() -> Tree {
        let tree = Tree::guest();
        tree.write("sys/bus/event_source/devices/cpu/type", "4\n");
        tree.write("proc/filesystems", "nodev\tproc\nnodev\tresctrl\n");
        tree
    }

    /// A server of two sockets, resctrl mounted.
    pub fn monitored() -> Tree {
        let tree = Tree::server();
        tree.write("sys/fs/resctrl/schemata", "L3:0=7ff;1=7ff\n");
        for (cache, total, local) in
            [(0, 5_000_000_000_u64, 4_000_000_000_u64), (1, 4_000_000_064, 3_000_000_032)]
        {
            let folder = format!("sys/fs/resctrl/mon_data/mon_L3_0{cache}");
            tree.write(&format!("{folder}/llc_occupancy"), "1234\n");
            tree.write(&format!("{folder}/mbm_total_bytes"), &format!("{total}\n"));
            tree.write(&format!("{folder}/mbm_local_bytes"), &format!("{local}\n"));
        }
        tree
    }

    pub fn root(&self) -> &Path {
        self.0.path()
    }

    pub fn write(&self, path: &str, content: &str) {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
        fs::write(path, content).expect("a file");
    }
}
