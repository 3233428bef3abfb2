//! A machine as things that lie in each other: packages, NUMA nodes, caches, cores, CPUs.
//!
//! A thing lies in the smallest one that has all of its CPUs. Where two have the same CPUs, the one
//! of the outer kind is outside.

use std::cmp::Reverse;

use ntcopy_record::{CpuList, SharedCaches, Topology};

use super::cache_name;
use crate::text;

/// The number of kinds of caches that are drawn; no machine has more.
const MOST_CACHES: usize = 10;
/// The most levels that things lie in each other.
const MOST_LEVELS: usize = MOST_CACHES + 5;

/// How a thing is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// A frame around what lies in it: the machine, a package, a NUMA node, a core.
    Frame,
    /// A bar over what shares it: a cache.
    Bar,
    /// A CPU.
    Cpu,
}

/// A thing, and what lies in it.
#[derive(Debug)]
pub(super) struct Thing {
    pub name: String,
    pub shape: Shape,
    pub inside: Vec<Thing>,
    /// Things that are like the last one of `inside`, and are not drawn.
    pub more: usize,
    cpus: CpuList,
    /// What kind of thing it is, the outermost first.
    rank: usize,
}

impl Thing {
    fn new((rank, shape): (usize, Shape), name: String, cpus: CpuList) -> Thing {
        Thing { name, shape, inside: Vec::new(), more: 0, cpus, rank }
    }

    /// Puts another thing where it belongs, `levels` levels below. One that would lie in one of its
    /// own kind, or deeper than things lie in a machine, belongs nowhere, whatever a file says.
    fn put(&mut self, thing: Thing, levels: usize) {
        let is_of_cpus = !thing.cpus.numbers().is_empty();
        let outer = self.inside.iter_mut().find(|outer| outer.cpus.contains_all(&thing.cpus));
        match outer.filter(|_| is_of_cpus) {
            Some(outer) if outer.rank == thing.rank || levels == 0 => {}
            Some(outer) => outer.put(thing, levels - 1),
            None => self.inside.push(thing),
        }
    }
}

/// The whole machine.
pub(super) fn of(name: &str, topology: &Topology) -> Thing {
    let all: CpuList =
        topology.cores.iter().flat_map(|core| core.numbers().iter().copied()).collect();
    let mut machine = Thing::new((0, Shape::Frame), name.to_owned(), all.clone());
    let mut things = things(topology);
    things.extend(all.numbers().iter().map(|cpu| {
        let rank = (MOST_CACHES + 4, Shape::Cpu);
        Thing::new(rank, format!("CPU {cpu}"), CpuList::from_iter([*cpu]))
    }));
    things.sort_by_key(|thing| (Reverse(thing.cpus.numbers().len()), thing.rank));
    for thing in things {
        machine.put(thing, MOST_LEVELS);
    }
    machine
}

/// All but the machine and its CPUs.
fn things(topology: &Topology) -> Vec<Thing> {
    let mut things: Vec<Thing> = Vec::new();
    things.extend(topology.packages.iter().enumerate().map(|(number, cpus)| {
        Thing::new((1, Shape::Frame), format!("Package {number}"), cpus.clone())
    }));
    things.extend(topology.nodes.iter().map(|node| {
        let memory = text::about_size(node.memory_bytes);
        let name = format!("NUMA node {}, {memory}", node.node);
        Thing::new((2, Shape::Frame), name, node.cpus.clone())
    }));
    let mut caches: Vec<&SharedCaches> = topology.caches.iter().collect();
    caches.sort_by_key(|cache| (Reverse(cache.level), cache.kind == "instruction"));
    for (rank, caches) in caches.into_iter().take(MOST_CACHES).enumerate() {
        let name = cache_name(caches.level, &caches.kind, caches.size_bytes);
        let cpus = caches.cpus.iter().filter(|cpus| !cpus.numbers().is_empty());
        things.extend(
            cpus.map(|cpus| Thing::new((3 + rank, Shape::Bar), name.clone(), cpus.clone())),
        );
    }
    things.extend(topology.cores.iter().enumerate().map(|(number, cpus)| {
        Thing::new((3 + MOST_CACHES, Shape::Frame), format!("Core {number}"), cpus.clone())
    }));
    things
}

impl Thing {
    /// Keeps at most `neighbours` neighbours in everything; the rest is counted.
    pub(super) fn at_most(&mut self, neighbours: usize) {
        for thing in &mut self.inside {
            thing.at_most(neighbours);
        }
        // Threads of one core stand below each other, and need no room.
        let is_core = self.inside.iter().all(|thing| thing.shape == Shape::Cpu);
        // "And 1 more" would take as much room as that one.
        let spare = usize::from(self.more == 0);
        if !is_core && self.inside.len() > neighbours + spare {
            self.more += self.inside.len() - neighbours;
            self.inside.truncate(neighbours);
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use ntcopy_record::NumaNode;

    use super::*;

    /// Makes `packages` packages, with a node, a last-level cache and cores each, of two threads.
    pub fn machine(packages: u32, cores: u32) -> Topology {
        let all = packages * cores;
        let threads = |core: u32| CpuList::from_iter([core, core + all]);
        let package = |number: u32| {
            let own = number * cores..(number + 1) * cores;
            own.flat_map(|core| [core, core + all]).collect::<CpuList>()
        };
        let nodes = (0..packages).map(|node| NumaNode {
            node,
            cpus: package(node),
            memory_bytes: 64 << 30,
        });
        let caches = |level: u8, kind: &str, cpus: Vec<CpuList>| SharedCaches {
            level,
            kind: kind.into(),
            size_bytes: 1 << (14 + u64::from(level)),
            cpus,
        };
        Topology {
            packages: (0..packages).map(package).collect(),
            nodes: nodes.collect(),
            cores: (0..all).map(threads).collect(),
            caches: vec![
                caches(1, "data", (0..all).map(threads).collect()),
                caches(1, "instruction", (0..all).map(threads).collect()),
                caches(3, "unified", (0..packages).map(package).collect()),
            ],
        }
    }

    /// Names, each in brackets behind that in which it lies.
    fn told(thing: &Thing) -> String {
        let inside: Vec<String> = thing.inside.iter().map(told).collect();
        let more = if thing.more > 0 { format!(" +{}", thing.more) } else { String::new() };
        match inside.as_slice() {
            [] => thing.name.clone(),
            inside => format!("{}[{}{more}]", thing.name, inside.join(" ")),
        }
    }

    #[test]
    fn each_thing_lies_in_the_smallest_one_that_has_its_cpus() {
        let tree = of("Machine", &machine(2, 1));
        assert_eq!(
            told(&tree),
            "Machine[Package 0[NUMA node 0, 64 GiB[L3 128 KiB[L1d 32 KiB[L1i 32 KiB[Core 0[CPU 0 \
             CPU 2]]]]]] Package 1[NUMA node 1, 64 GiB[L3 128 KiB[L1d 32 KiB[L1i 32 KiB[Core 1[\
             CPU 1 CPU 3]]]]]]]"
        );
    }

    #[test]
    fn neighbours_that_are_too_many_are_counted() {
        let mut tree = of("Machine", &machine(2, 8));
        tree.at_most(1);
        let tree = told(&tree);
        assert!(tree.contains("Package 1") && tree.contains("CPU 16]]] +7]"), "{tree}");
    }

    #[test]
    fn memory_alone_and_what_no_machine_has_are_shown_or_dropped() {
        let mut topology = machine(1, 2);
        let cpus = CpuList::default();
        topology.nodes.push(NumaNode { node: 7, cpus, memory_bytes: 1 << 30 });
        // Packages in packages would be as deep as a file likes.
        topology.packages.extend((1..2).map(|last| (0..last).collect::<CpuList>()));
        let tree = told(&of("Machine", &topology));
        assert!(tree.ends_with("NUMA node 7, 1 GiB]"), "{tree}");
        assert_eq!(tree.matches("Package").count(), 1, "{tree}");
    }

    #[test]
    fn cpus_that_no_package_or_cache_has_are_shown_in_their_cores() {
        let cores = machine(1, 2).cores;
        let tree = of("Machine", &Topology { cores, ..Topology::default() });
        assert_eq!(told(&tree), "Machine[Core 0[CPU 0 CPU 2] Core 1[CPU 1 CPU 3]]");
        assert_eq!(told(&of("Machine", &Topology::default())), "Machine");
    }
}
