//! What the limits of control groups leave of the machine's memory to a container, a service or a
//! job.

use std::fs;
use std::path::{Path, PathBuf};

/// The files of a control group.
struct Files {
    limits: &'static [&'static str],
    usage: &'static str,
    /// In memory.stat: what the kernel takes back before it kills.
    reclaimable: [&'static str; 2],
}

const V1: Files = Files {
    limits: &["memory.limit_in_bytes"],
    usage: "memory.usage_in_bytes",
    reclaimable: ["total_inactive_file", "total_active_file"],
};
const V2: Files = Files {
    limits: &["memory.max", "memory.high"],
    usage: "memory.current",
    reclaimable: ["inactive_file", "active_file"],
};

/// Memory that a limit leaves.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Left {
    pub(super) bytes: u64,
    /// The file with the limit.
    pub(super) file: PathBuf,
}

/// The least that a limit of this process's groups leaves. The system's root is `root`.
pub(super) fn lowest(root: &Path) -> Option<Left> {
    let own = root.join("proc/self");
    let mounts = fs::read_to_string(own.join("mountinfo")).ok()?;
    let groups = fs::read_to_string(own.join("cgroup")).ok()?;
    mounts.lines().filter_map(|mount| of_mount(root, mount, &groups)).min()
}

/// What a line of mountinfo leaves, if it is of a hierarchy that has limits of memory.
fn of_mount(root: &Path, mount: &str, groups: &str) -> Option<Left> {
    let (place, kind) = mount.split_once(" - ")?;
    let mut place = place.split(' ').skip(3);
    let (inside, at) = (place.next()?, root.join(place.next()?.trim_start_matches('/')));
    let mut kind = kind.split(' ');
    let files = match (kind.next()?, kind.nth(1)?) {
        ("cgroup2", _) => V2,
        ("cgroup", options) if options.split(',').any(|option| option == "memory") => V1,
        _ => return None,
    };
    let is_v2 = files.usage == V2.usage;
    let group = groups.lines().find_map(|line| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        let is_it = match is_v2 {
            true => controllers.is_empty(),
            false => controllers.split(',').any(|controller| controller == "memory"),
        };
        is_it.then_some(path)
    })?;
    // Where a container sees its own part alone, its group is the mount's root.
    let below = Path::new(group).strip_prefix(inside).unwrap_or(Path::new(""));
    let own = at.join(below);
    let up_to_the_mount = own.ancestors().take_while(|group| group.starts_with(&at));
    up_to_the_mount.filter_map(|group| files.left(group)).min()
}

impl Files {
    /// What one group leaves.
    fn left(&self, group: &Path) -> Option<Left> {
        let text = |name: &str| fs::read_to_string(group.join(name)).ok();
        let number = |name: &str| text(name)?.trim().parse::<u64>().ok();
        let limits = self.limits.iter().filter_map(|name| Some((number(name)?, *name)));
        let (limit, name) = limits.min()?;
        let stat = text("memory.stat").unwrap_or_default();
        let reclaimable = stat.lines().filter_map(|line| {
            let (name, bytes) = line.split_once(' ')?;
            self.reclaimable.contains(&name).then(|| bytes.parse::<u64>().ok())?
        });
        let used = number(self.usage)?.saturating_sub(reclaimable.sum());
        Some(Left { bytes: limit.saturating_sub(used), file: group.join(name) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::folder;

    const MOUNT_V2: &str = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate";
    const MOUNT_V1: &str = "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory";

    /// What is left in a system with these files, and where its limit stands below /sys/fs/cgroup.
    fn left(mounts: &str, groups: &str, files: &[(&str, &str)]) -> Option<(u64, String)> {
        let own = [("proc/self/mountinfo", mounts), ("proc/self/cgroup", groups)];
        let names: Vec<String> =
            files.iter().map(|(name, _)| format!("sys/fs/cgroup/{name}")).collect();
        let files = names.iter().zip(files).map(|(name, (_, text))| (name.as_str(), *text));
        let root = folder(&own.into_iter().chain(files).collect::<Vec<_>>());
        let left = lowest(root.path())?;
        let file = left.file.strip_prefix(root.path().join("sys/fs/cgroup")).unwrap();
        Some((left.bytes, file.display().to_string()))
    }

    #[test]
    fn the_tightest_limit_of_a_group_and_those_above_it_counts() {
        let files = [
            ("a/memory.max", "600\n"),
            ("a/memory.high", "max\n"),
            ("a/memory.current", "500\n"),
            ("a/memory.stat", "anon 100\nfile 300\ninactive_file 200\nactive_file 100\nx 9\n"),
            ("a/b/memory.max", "max\n"),
            ("a/b/memory.high", "max\n"),
            ("a/b/memory.current", "400\n"),
            ("a/b/c/memory.max", "1000\n"),
            ("a/b/c/memory.high", "700\n"),
            ("a/b/c/memory.current", "250\n"),
        ];
        let at = |group: &str| left(MOUNT_V2, &format!("1:cpu:/x\n0::{group}\n"), &files);
        assert_eq!(at("/a/b/c"), Some((400, "a/memory.max".into())));
        assert_eq!(at("/a/b"), Some((400, "a/memory.max".into())));
        let inner = &files[6..];
        let inner = left(MOUNT_V2, "0::/a/b/c\n", inner);
        assert_eq!(inner, Some((450, "a/b/c/memory.high".into())));
        assert_eq!(at("/elsewhere"), None);
        assert_eq!(left(MOUNT_V2, "4:memory:/a\n", &files), None, "of another hierarchy");
    }

    #[test]
    fn groups_of_the_first_version_count_too_and_so_does_a_containers_own_part() {
        let files = [
            ("memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("memory/memory.usage_in_bytes", "1000\n"),
            ("memory/job/memory.limit_in_bytes", "600\n"),
            ("memory/job/memory.usage_in_bytes", "700\n"),
            ("memory/job/memory.stat", "inactive_file 1\ntotal_inactive_file 300\n"),
        ];
        let groups = "5:cpu:/\n4:pids,memory:/job\n0::/\n";
        let job = Some((200, "memory/job/memory.limit_in_bytes".to_owned()));
        assert_eq!(left(MOUNT_V1, groups, &files), job);
        // As in a container: the mount is of the group itself, whatever the group is called.
        let own = MOUNT_V1.replace(" / ", " /docker/1 ").replace("/memory rw", "/memory/job rw");
        assert_eq!(left(&own, "4:memory:/docker/1\n", &files), job);
        assert_eq!(left(&own, "4:memory:/\n", &files), job);
        assert_eq!(left(&MOUNT_V1.replace("memory rw", "cpu rw"), "4:cpu:/job\n", &files), None);
    }
}
