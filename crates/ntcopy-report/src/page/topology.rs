//! The machines of a page as pictures: a column a CPU, and above it the bars of what it shares with
//! its neighbours.

use std::collections::BTreeSet;

use maud::{Markup, html};
use ntcopy_record::{Cache, Machine, Record, Topology};

use crate::plot::{LETTER, SIZE};
use crate::svg::Svg;
use crate::text;

/// CPUs that are drawn; a machine with more has the rest counted.
const MOST_CPUS: usize = 16;
/// Kinds of caches that are drawn, whatever a record says.
const MOST_CACHES: usize = 10;
/// The names of the rows.
const LEFT: f64 = 110.0;
const WIDEST_COLUMN: f64 = 70.0;
const ROW: f64 = 24.0;
const GAP: f64 = 4.0;

/// A picture of each machine, with the records that were made on it.
pub(super) fn section(records: &[Record]) -> Markup {
    let machines = distinct(records);
    html! {
        @if !machines.is_empty() {
            section id="machines" {
                h2 { "Machines" }
                @for (index, found) in machines.iter().enumerate() { (one(index, found)) }
            }
        }
    }
}

fn one(index: usize, found: &Found<'_>) -> Markup {
    let id = format!("machine-{index}");
    let Found { machine, topology, records } = found;
    let (rows, words) = match topology {
        Some(topology) => (placed_rows(topology), describe_placed(machine, topology)),
        None => (rows(machine), describe(machine)),
    };
    let (picture, not_drawn) = drawn(&rows, &id);
    html! {
        section class="group" {
            h3 id=(id) { (machine.cpu_model) ", " code { (machine.cpu_signature) } }
            (picture)
            p class="details" {
                (words)
                @if not_drawn > 0 { " " (not_drawn) " CPUs more are not drawn." }
            }
            ul class="details ids" {
                @for (number, name) in records {
                    li { a href=(format!("#record-{number}")) { (name) } }
                }
            }
        }
    }
}

/// A machine, and the numbers and names of its records.
struct Found<'a> {
    /// It is that of the record with the most memory: a kernel of the bench has less than the
    /// machine that it runs on.
    machine: &'a Machine,
    /// It is that of the first record that has one.
    topology: Option<&'a Topology>,
    records: Vec<(usize, &'a str)>,
}

/// Machines that differ in CPU, in caches, or in how their CPUs lie, where both sides tell that.
fn distinct(records: &[Record]) -> Vec<Found<'_>> {
    let mut machines: Vec<Found<'_>> = Vec::new();
    let key = |m: &Machine| {
        format!("{} {} {} {:?} {}", m.cpu_model, m.cpu_signature, m.cpus, m.caches, m.llc_bytes)
    };
    for (number, record) in records.iter().enumerate() {
        let machine = &record.machine;
        let topology = machine.topology.as_deref();
        let entry = (number, record.header.id.as_str());
        let is_same = |found: &&mut Found<'_>| {
            let lie_alike = found.topology.zip(topology).is_none_or(|(one, other)| one == other);
            lie_alike && key(found.machine) == key(machine)
        };
        match machines.iter_mut().find(is_same) {
            Some(found) => {
                found.records.push(entry);
                found.topology = found.topology.or(topology);
                if machine.memory_bytes > found.machine.memory_bytes {
                    found.machine = machine;
                }
            }
            None => machines.push(Found { machine, topology, records: vec![entry] }),
        }
    }
    machines
}

/// A kind of thing, and the CPUs and the label of each.
struct Row {
    name: String,
    class: &'static str,
    things: Vec<(Vec<u32>, String)>,
}

impl Row {
    /// Things that are called by their numbers.
    fn numbered<C: AsRef<[u32]>>(
        name: &str,
        class: &'static str,
        all: impl IntoIterator<Item = C>,
    ) -> Row {
        let thing = |(number, cpus): (usize, C)| (cpus.as_ref().to_vec(), number.to_string());
        let things = all.into_iter().enumerate().map(thing).collect();
        Row { name: name.to_owned(), class, things }
    }

    /// Which of its things a CPU is in.
    fn of(&self, cpu: u32) -> Option<usize> {
        self.things.iter().position(|(cpus, _)| cpus.contains(&cpu))
    }
}

fn cpu_row(cpus: impl IntoIterator<Item = u32>) -> Row {
    let things = cpus.into_iter().map(|cpu| (vec![cpu], cpu.to_string())).collect();
    Row { name: "CPU".to_owned(), class: "cpu", things }
}

/// What the host's kernel told, the outermost first.
fn placed_rows(topology: &Topology) -> Vec<Row> {
    let lists = |lists: &[ntcopy_record::CpuList]| -> Vec<Vec<u32>> {
        lists.iter().map(|cpus| cpus.numbers().to_vec()).collect()
    };
    let nodes = topology.nodes.iter().map(|node| {
        let label = format!("{}, {}", node.node, text::about_size(node.memory_bytes));
        (node.cpus.numbers().to_vec(), label)
    });
    let mut rows = vec![
        Row::numbered("Package", "outer", lists(&topology.packages)),
        Row { name: "NUMA node".to_owned(), class: "outer", things: nodes.collect() },
    ];
    let caches = topology.caches.iter().rev().take(MOST_CACHES);
    rows.extend(caches.map(|cache| Row {
        name: cache_name(cache.level, &cache.kind, cache.size_bytes),
        class: "cache",
        things: lists(&cache.cpus).into_iter().map(|cpus| (cpus, String::new())).collect(),
    }));
    rows.push(Row::numbered("Core", "outer", lists(&topology.cores)));
    let cores = topology.cores.iter().flat_map(|core| core.numbers().iter().copied());
    rows.push(cpu_row(cores.collect::<BTreeSet<u32>>()));
    rows.retain(|row| !row.things.is_empty());
    rows
}

/// What CPUID told: by how many CPUs a cache is shared, and not by which.
fn rows(machine: &Machine) -> Vec<Row> {
    let cpus = machine.cpus.clamp(1, 1 << 14);
    let row = |cache: &Cache| {
        let all: Vec<u32> = (0..cpus).collect();
        let things = all.chunks(shared(cache, cpus) as usize);
        Row {
            name: cache_name(cache.level, &cache.kind, cache.size_bytes),
            class: "cache",
            things: things.map(|cpus| (cpus.to_vec(), String::new())).collect(),
        }
    };
    let mut rows: Vec<Row> = caches(machine).into_iter().take(MOST_CACHES).map(row).collect();
    rows.push(cpu_row(0..cpus));
    rows
}

/// The picture, and how many CPUs are not in it.
fn drawn(rows: &[Row], names: &str) -> (Markup, usize) {
    let place = |cpu: &u32| rows.iter().map(|row| row.of(*cpu)).collect::<Vec<_>>();
    let mut cpus: Vec<u32> = rows
        .last()
        .map_or(&[][..], |row| &row.things)
        .iter()
        .flat_map(|(cpus, _)| cpus)
        .copied()
        .collect();
    // What shares a thing stands side by side.
    cpus.sort_by_cached_key(place);
    let not_drawn = cpus.len().saturating_sub(MOST_CPUS);
    cpus.truncate(MOST_CPUS);
    let column = ((SIZE.0 - LEFT) / cpus.len().max(1) as f64).min(WIDEST_COLUMN);
    let mut svg = Svg::default();
    let mut y = GAP;
    for row in rows {
        svg.text("start", (0.0, y + 17.0), &row.name);
        let mut x = LEFT;
        for same in cpus.chunk_by(|a, b| row.of(*a) == row.of(*b)) {
            let wide = same.len() as f64 * column;
            if let Some(thing) = row.of(same[0]) {
                let label = &row.things[thing].1;
                svg.rect(row.class, (x + GAP / 2.0, y), (wide - GAP, ROW));
                if label.len() as f64 * LETTER <= wide - GAP {
                    svg.text("", (x + wide / 2.0, y + 17.0), label);
                }
            }
            x += wide;
        }
        y += ROW + GAP;
    }
    (svg.in_page("machine", (SIZE.0, y), names), not_drawn)
}

/// What the host's kernel told, in words.
fn describe_placed(machine: &Machine, topology: &Topology) -> String {
    let mut words = vec![format!(
        "{} CPUs in {}, {} of memory",
        machine.cpus,
        topology.counts(),
        text::about_size(machine.memory_bytes)
    )];
    for caches in topology.caches.iter().rev() {
        let most = caches.cpus.iter().map(|cpus| cpus.numbers().len()).max().unwrap_or(1);
        let shared = match most {
            0 | 1 => "one CPU each".to_owned(),
            most => format!("up to {most} CPUs each"),
        };
        let name = cache_name(caches.level, &caches.kind, caches.size_bytes);
        words.push(format!("{} x {name}, {shared}", caches.cpus.len()));
    }
    format!("{}. All of it is as the host's kernel tells.", words.join("; "))
}

/// How many CPUs share a cache on this machine; CPUID counts reserved identifiers too.
fn shared(cache: &Cache, cpus: u32) -> u32 {
    cache.shared_by_cpus.unwrap_or(1).clamp(1, cpus.max(1))
}

/// Largest caches first, as they lie above the cores.
fn caches(machine: &Machine) -> Vec<&Cache> {
    let mut caches: Vec<&Cache> = machine.caches.iter().collect();
    caches.sort_by_key(|cache| (std::cmp::Reverse(cache.level), cache.kind == "instruction"));
    caches
}

/// `L1d 48 KiB`.
fn cache_name(level: u8, kind: &str, size_bytes: u64) -> String {
    let kind = match kind {
        "data" => "d",
        "instruction" => "i",
        _ => "",
    };
    format!("L{level}{kind} {}", text::about_size(size_bytes))
}

/// What CPUID told, in words.
fn describe(machine: &Machine) -> String {
    let cpus = machine.cpus.max(1);
    let plural = |count: u32| if count == 1 { "" } else { "s" };
    let mut words = vec![format!(
        "{cpus} CPU{}, {} of memory",
        plural(cpus),
        text::about_size(machine.memory_bytes)
    )];
    for cache in caches(machine) {
        let shared = shared(cache, cpus);
        let pieces = cpus.div_ceil(shared);
        words.push(format!(
            "{pieces} x {}, {}",
            cache_name(cache.level, &cache.kind, cache.size_bytes),
            if shared == 1 {
                "one CPU each".to_owned()
            } else {
                format!("up to {shared} CPUs each")
            }
        ));
    }
    format!(
        "{}. How its CPUs are spread over packages and cores is not in the record; caches are as \
         CPUID tells them.",
        words.join("; ")
    )
}

#[cfg(test)]
mod tests {
    use ntcopy_record::{CpuList, NumaNode, SharedCaches};

    use super::*;

    /// Packages with a node, a last-level cache and cores each, of two threads; the threads of a
    /// core lie as far apart as there are cores.
    fn topology(packages: u32, cores: u32) -> Topology {
        let all = packages * cores;
        let threads = |core: u32| CpuList::from_iter([core, core + all]);
        let package = |number: u32| {
            let own = number * cores..(number + 1) * cores;
            own.flat_map(|core| [core, core + all]).collect::<CpuList>()
        };
        let node = |node| NumaNode { node, cpus: package(node), memory_bytes: 64 << 30 };
        let caches = |level: u8, kind: &str, cpus: Vec<CpuList>| SharedCaches {
            level,
            kind: kind.into(),
            size_bytes: 1 << (14 + u64::from(level)),
            cpus,
        };
        Topology {
            packages: (0..packages).map(package).collect(),
            nodes: (0..packages).map(node).collect(),
            cores: (0..all).map(threads).collect(),
            caches: vec![
                caches(1, "data", (0..all).map(threads).collect()),
                caches(3, "unified", (0..packages).map(package).collect()),
            ],
        }
    }

    /// The words and the number of rectangles of a picture.
    fn told(rows: &[Row]) -> (Vec<String>, usize, usize) {
        let (picture, not_drawn) = drawn(rows, "id");
        let picture = picture.into_string();
        let words = picture.split("</text>").filter_map(|text| text.rsplit('>').next());
        let words = words.filter(|word| !word.is_empty()).map(str::to_owned).collect();
        (words, picture.matches("<rect").count(), not_drawn)
    }

    #[test]
    fn what_cpus_share_stands_above_them_side_by_side() {
        let (words, rectangles, not_drawn) = told(&placed_rows(&topology(2, 1)));
        assert_eq!(
            words,
            [
                "Package",
                "0",
                "1",
                "NUMA node",
                "0, 64 GiB",
                "1, 64 GiB",
                "L3 128 KiB",
                "L1d 32 KiB",
                "Core",
                "0",
                "1",
                "CPU",
                "0",
                "2",
                "1",
                "3"
            ]
        );
        assert_eq!((rectangles, not_drawn), (2 + 2 + 2 + 2 + 2 + 4, 0));
    }

    #[test]
    fn a_large_machine_is_drawn_in_part_and_the_rest_is_counted() {
        let (_, rectangles, not_drawn) = told(&placed_rows(&topology(2, 64)));
        assert_eq!((rectangles, not_drawn), (1 + 1 + 1 + 8 + 8 + 16, 256 - 16));
    }

    #[test]
    fn a_record_that_tells_nothing_or_nonsense_is_drawn_all_the_same() {
        assert_eq!(told(&placed_rows(&Topology::default())), (vec![], 0, 0));
        let mut topology = topology(1, 2);
        let cpus = CpuList::default();
        topology.nodes.push(NumaNode { node: 7, cpus, memory_bytes: 1 << 30 });
        topology.packages.clear();
        let (words, ..) = told(&placed_rows(&topology));
        assert!(!words.contains(&"Package".to_owned()), "{words:?}");
    }

    #[test]
    fn without_a_topology_caches_lie_over_as_many_cpus_as_share_them() {
        let cache = |level: u8, kind: &str, size_bytes: u64, cpus: u32| Cache {
            level,
            kind: kind.into(),
            size_bytes,
            shared_by_cpus: Some(cpus),
        };
        let mut machine = ntcopy_record::testing::record(&["copy"], &[]).machine;
        machine.cpus = 4;
        machine.caches =
            vec![cache(1, "instruction", 32 << 10, 2), cache(3, "unified", 32 << 20, 16)];
        let (words, rectangles, _) = told(&rows(&machine));
        assert_eq!(words, ["L3 32 MiB", "L1i 32 KiB", "CPU", "0", "1", "2", "3"]);
        assert_eq!(rectangles, 1 + 2 + 4);
    }
}
