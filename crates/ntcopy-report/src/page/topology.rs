//! The machines of a page as pictures, in the manner of lstopo: caches as bars over the CPUs that
//! share them; in records that tell it, within their packages and NUMA nodes ([`drawn`], [`tree`]).

mod drawn;
mod tree;

use maud::{Markup, html};
use ntcopy_record::{Cache, Machine, Record, Topology};

use super::room::{Part, of_record, part};
use super::scroll;
use crate::text;

/// Columns that are drawn; a machine with more CPUs has the rest named.
const MOST_COLUMNS: u32 = 8;
/// Pixels of a column, a bar, and between them.
const COLUMN: u32 = 148;
const BAR: u32 = 34;
const GAP: u32 = 8;

/// A picture of each machine, with the records that were made on it.
pub(super) fn section(records: &[Record]) -> Markup {
    let machines = distinct(records);
    html! {
        @if !machines.is_empty() {
            section id="machines" {
                h2 { "Machines" }
                @for (index, found) in machines.iter().enumerate() {
                    // With the newest of its records it goes, where a page has no room.
                    @let newest = found.records.iter().max_by_key(|(number, _)| {
                        (records[*number].header.started_unix_ns, *number)
                    });
                    (of_record(newest.map_or(0, |(number, _)| *number), &one(index, found)))
                }
            }
        }
    }
}

fn one(index: usize, found: &Found<'_>) -> Markup {
    let id = format!("machine-{index}");
    let Found { machine, topology, records } = found;
    let (picture, words) = match topology {
        Some(topology) => (placed(&id, machine, topology), describe_placed(machine, topology)),
        None => (picture(&id, machine), describe(machine)),
    };
    html! {
        section class="group" {
            h3 id=(id) { (machine.cpu_model) ", " code { (machine.cpu_signature) } }
            (part(Part::Chart, &picture))
            p class="details" { (words) }
            ul class="details ids" {
                @for (number, name) in records {
                    @let link = html! { li { a href=(format!("#record-{number}")) { (name) } } };
                    (of_record(*number, &link))
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

/// The picture of a machine of which the record tells how its CPUs lie.
fn placed(id: &str, machine: &Machine, topology: &Topology) -> Markup {
    let memory = text::about_size(machine.memory_bytes);
    let tree = tree::of(&format!("Machine, memory {memory}"), topology);
    let name = format!("Packages, NUMA nodes, caches and cores of {}", machine.cpu_model);
    scroll(id, &drawn::svg(&format!("{id}p"), &name, tree))
}

/// That picture in words.
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

fn name(cache: &Cache) -> String {
    cache_name(cache.level, &cache.kind, cache.size_bytes)
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

/// The picture in words.
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
            name(cache),
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

fn picture(id: &str, machine: &Machine) -> Markup {
    let cpus = machine.cpus.max(1);
    let columns = cpus.min(MOST_COLUMNS);
    let caches = caches(machine);
    let rows = caches.len() as u32 + 1;
    let width = columns * COLUMN + 3 * GAP;
    let height = 30 + rows * (BAR + GAP) + 2 * GAP;
    let top = |row: u32| 30 + GAP + row * (BAR + GAP);
    let memory = text::about_size(machine.memory_bytes);
    let more =
        if cpus > columns { format!(", {columns} of {cpus} CPUs drawn") } else { String::new() };
    let drawing = html! {
        svg class="topology" width=(width) height=(height)
            viewBox=(format!("0 0 {width} {height}")) role="img" aria-labelledby=(format!("{id}p")) {
            title id=(format!("{id}p")) { "Caches and CPUs of " (machine.cpu_model) }
            rect class="outer" x="1" y="1" width=(width - 2) height=(height - 2) rx="6" {}
            text x=(2 * GAP) y="22" { "Machine, memory " (memory) (more) }
            @for (row, cache) in (0..).zip(&caches) {
                @let shared = shared(cache, cpus);
                @for first in (0..columns).step_by(shared as usize) {
                    @let over = shared.min(columns - first);
                    (bar("cache", first, over, top(row), &name(cache)))
                }
            }
            @for cpu in 0..columns {
                (bar("cpu", cpu, 1, top(rows - 1), &format!("CPU {cpu}")))
            }
        }
    };
    scroll(id, &drawing)
}

fn bar(class: &str, first: u32, over: u32, y: u32, name: &str) -> Markup {
    let x = 2 * GAP + first * COLUMN;
    let width = over * COLUMN - GAP;
    html! {
        rect class=(class) x=(x) y=(y) width=(width) height=(BAR) rx="4" {}
        text class="centre" x=(x + width / 2) y=(y + 22) { (name) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(level: u8, kind: &str, size_bytes: u64, cpus: u32) -> Cache {
        Cache { level, kind: kind.into(), size_bytes, shared_by_cpus: Some(cpus) }
    }

    #[test]
    fn caches_lie_by_size_and_say_who_shares_them() {
        let l1 = cache(1, "instruction", 32 << 10, 1);
        let l3 = cache(3, "unified", 32 << 20, 16);
        assert_eq!((name(&l1), name(&l3)), ("L1i 32 KiB".to_owned(), "L3 32 MiB".to_owned()));
        assert_eq!([shared(&l3, 2), shared(&l3, 64), shared(&l1, 2)], [2, 16, 1]);
    }
}
