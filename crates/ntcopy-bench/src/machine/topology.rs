//! The CPU topology, as the kernel tells below `/sys`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use ntcopy_record::{CpuList, NumaNode, SharedCaches, Topology};

/// The CPUs that are online; none where the kernel says nothing of them.
pub(super) fn detect() -> Option<Topology> {
    read(Path::new("/"))
}

fn read(root: &Path) -> Option<Topology> {
    let folder = root.join("sys/devices/system");
    let online: CpuList = text(&folder.join("cpu/online"))?.parse().ok()?;
    let cpus = online.numbers().iter();
    let cpus: Vec<_> = cpus.map(|cpu| folder.join(format!("cpu/cpu{cpu}"))).collect();
    // The second names are those of kernels before 5.3.
    let packages = sets(&cpus, ["package_cpus_list", "core_siblings_list"]);
    let cores = sets(&cpus, ["core_cpus_list", "thread_siblings_list"]);
    if cores.is_empty() {
        return None;
    }
    let mut caches: BTreeMap<(u8, String, u64), BTreeSet<CpuList>> = BTreeMap::new();
    for index in cpus.iter().flat_map(|cpu| children(&cpu.join("cache"), "index")) {
        if let Some((cache, sharing)) = cache(&index) {
            caches.entry(cache).or_default().insert(sharing);
        }
    }
    let caches = caches.into_iter().map(|((level, kind, size_bytes), cpus)| SharedCaches {
        level,
        kind,
        size_bytes,
        cpus: cpus.into_iter().collect(),
    });
    let mut nodes: Vec<NumaNode> =
        children(&folder.join("node"), "node").iter().filter_map(|node| numa_node(node)).collect();
    nodes.sort_by_key(|node| node.node);
    Some(Topology { packages, nodes, cores, caches: caches.collect() })
}

fn text(path: &Path) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim().to_owned())
}

/// The different sets of CPUs that each CPU's topology names, by the first name that it knows.
fn sets(cpus: &[PathBuf], names: [&str; 2]) -> Vec<CpuList> {
    let of = |cpu: &PathBuf| {
        let found = names.iter().find_map(|name| text(&cpu.join("topology").join(name)))?;
        found.parse::<CpuList>().ok().filter(|list| !list.numbers().is_empty())
    };
    cpus.iter().filter_map(of).collect::<BTreeSet<CpuList>>().into_iter().collect()
}

/// What in a folder is called so and a number.
fn children(folder: &Path, name: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let is_one = |path: &PathBuf| number(path, name).is_some();
    entries.map(|entry| entry.path()).filter(is_one).collect()
}

fn number(path: &Path, name: &str) -> Option<u32> {
    path.file_name()?.to_str()?.strip_prefix(name)?.parse().ok()
}

fn cache(folder: &Path) -> Option<((u8, String, u64), CpuList)> {
    let read = |name: &str| text(&folder.join(name));
    let kind = match read("type")?.as_str() {
        "Data" => "data",
        "Instruction" => "instruction",
        "Unified" => "unified",
        _ => return None,
    };
    let size = read("size")?;
    let kilobytes: u64 = size.strip_suffix('K')?.parse().ok()?;
    let cache = (read("level")?.parse().ok()?, kind.to_owned(), kilobytes.checked_mul(1024)?);
    Some((cache, read("shared_cpu_list")?.parse().ok()?))
}

fn numa_node(folder: &Path) -> Option<NumaNode> {
    // `Node 0 MemTotal:       8218828 kB`
    let memory = text(&folder.join("meminfo")).unwrap_or_default();
    let total = memory.lines().find_map(|line| line.split_once("MemTotal:"));
    let kilobytes = total.and_then(|(_, size)| size.trim().strip_suffix("kB")?.trim().parse().ok());
    Some(NumaNode {
        node: number(folder, "node")?,
        cpus: text(&folder.join("cpulist"))?.parse().ok()?,
        memory_bytes: kilobytes.unwrap_or(0_u64).saturating_mul(1024),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two packages of two cores with two threads each, a node each and one of memory alone.
    fn tree() -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a folder");
        let put = |path: String, content: &str| {
            let path = root.path().join("sys/devices/system").join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
            fs::write(path, format!("{content}\n")).expect("a file");
        };
        put("cpu/online".into(), "0-7");
        for cpu in 0..8_u32 {
            let (core, package) = (cpu % 4, cpu % 4 / 2);
            let threads = format!("{core},{}", core + 4);
            let siblings = ["0-1,4-5", "2-3,6-7"][package as usize];
            // One of them has only the names of older kernels.
            let name = if cpu == 3 { "thread_siblings_list" } else { "core_cpus_list" };
            put(format!("cpu/cpu{cpu}/topology/{name}"), &threads);
            put(format!("cpu/cpu{cpu}/topology/package_cpus_list"), siblings);
            for (index, kind, level, size, sharing) in [
                (0, "Data", 1, "48K", threads.as_str()),
                (2, "Unified", 2, "2048K", threads.as_str()),
                (3, "Unified", 3, "32768K", siblings),
            ] {
                for (file, content) in [
                    ("type", kind.to_owned()),
                    ("level", level.to_string()),
                    ("size", size.to_owned()),
                    ("shared_cpu_list", sharing.to_owned()),
                ] {
                    put(format!("cpu/cpu{cpu}/cache/index{index}/{file}"), &content);
                }
            }
        }
        for (node, cpus) in [(0, "0-1,4-5"), (1, "2-3,6-7"), (10, "")] {
            put(format!("node/node{node}/cpulist"), cpus);
            let memory = format!("Node {node} MemTotal:  1048576 kB\nNode {node} MemFree: 1 kB");
            put(format!("node/node{node}/meminfo"), &memory);
        }
        root
    }

    fn texts(lists: &[CpuList]) -> Vec<String> {
        lists.iter().map(CpuList::to_string).collect()
    }

    #[test]
    fn packages_nodes_cores_and_caches_are_told_once_each() {
        let tree = tree();
        let found = read(tree.path()).expect("a topology");
        assert_eq!(texts(&found.packages), ["0-1,4-5", "2-3,6-7"]);
        assert_eq!(texts(&found.cores), ["0,4", "1,5", "2,6", "3,7"]);
        let nodes: Vec<_> = found.nodes.iter().map(|n| (n.node, n.memory_bytes >> 30)).collect();
        assert_eq!(nodes, [(0, 1), (1, 1), (10, 1)]);
        assert!(found.nodes[2].cpus.numbers().is_empty(), "memory alone");
        let caches: Vec<_> =
            found.caches.iter().map(|c| (c.level, c.size_bytes >> 10, c.cpus.len())).collect();
        assert_eq!(caches, [(1, 48, 4), (2, 2048, 4), (3, 32_768, 2)]);
        assert_eq!(texts(&found.caches[2].cpus), ["0-1,4-5", "2-3,6-7"]);
        assert_eq!(found.counts(), "2 packages, 3 NUMA nodes, 4 cores");
    }

    #[test]
    fn a_kernel_that_says_nothing_has_none() {
        let root = tempfile::tempdir().expect("a folder");
        assert_eq!(read(root.path()), None);
        fs::create_dir_all(root.path().join("sys/devices/system/cpu")).expect("a folder");
        fs::write(root.path().join("sys/devices/system/cpu/online"), "0-1\n").expect("a file");
        assert_eq!(read(root.path()), None);
    }

    #[test]
    fn each_cpu_of_this_machine_has_its_core() {
        let Some(found) = detect() else {
            println!("not run: this kernel does not tell its CPU topology");
            return;
        };
        let all: usize = found.cores.iter().map(|core| core.numbers().len()).sum();
        let distinct: CpuList =
            found.cores.iter().flat_map(|core| core.numbers().iter().copied()).collect();
        assert_eq!(all, distinct.numbers().len(), "{found:?}");
    }
}
