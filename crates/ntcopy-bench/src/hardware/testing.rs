//! Recorded trees: what `/sys` and `/proc` of a machine hold, in one file each, below
//! `tests/hardware/`. And events that need no PMU, to see whose are counted.

use std::fs;
use std::path::Path;

use super::Hardware;
use super::open::{Opened, Request, Scope};
use super::pmu::Config;

/// `PERF_TYPE_SOFTWARE`: the kernel's own events.
const SOFTWARE: u32 = 1;
/// Two of these that rise wherever something runs, by their names in `perf list`.
const TASK_CLOCK: u64 = 1;
const PAGE_FAULTS: u64 = 2;

impl Hardware {
    /// The kernel's own events, opened as those of the cores are; none if even they are refused.
    pub(crate) fn of_kernel() -> Option<Hardware> {
        let mut sums = Vec::new();
        for (name, event) in [("task-clock", TASK_CLOCK), ("page-faults", PAGE_FAULTS)] {
            let request = Request {
                kind: SOFTWARE,
                config: Config([event, 0, 0]),
                scope: Scope::ThreadAndStarted,
                kernel: false,
            };
            sums.push((name, vec![Opened::new(&request, 1.0)?]));
        }
        Some(Hardware { sums, ..Hardware::default() })
    }
}

pub struct Tree(tempfile::TempDir);

impl Tree {
    /// Lays out `tests/hardware/<name>.tree`.
    pub fn new(name: &str) -> Tree {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hardware");
        let text = fs::read_to_string(folder.join(format!("{name}.tree"))).expect("a tree");
        let tree = Tree(tempfile::tempdir().expect("a folder"));
        for line in text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
            let (path, content) = line.split_once(" = ").expect("a path and its content");
            for path in expanded(path) {
                tree.write(&path, &format!("{content}\n"));
            }
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

/// `a{0..2}b` is `a0b`, `a1b` and `a2b`.
fn expanded(path: &str) -> Vec<String> {
    let parts = || {
        let (before, rest) = path.split_once('{')?;
        let (range, after) = rest.split_once('}')?;
        let (first, last) = range.split_once("..")?;
        Some((before, first.parse::<u32>().ok()?, last.parse::<u32>().ok()?, after))
    };
    match parts() {
        Some((before, first, last, after)) => {
            (first..=last).map(|number| format!("{before}{number}{after}")).collect()
        }
        None => vec![path.to_owned()],
    }
}
