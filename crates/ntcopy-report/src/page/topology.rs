//! The machines of a page as pictures, in the manner of lstopo: caches as bars over the CPUs that
//! share them.

use maud::{Markup, html};
use ntcopy_bench::record::{Cache, Machine, Record};

use super::room::{Part, of_record, part};
use super::scroll::scroll;
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
                @for (index, (machine, of)) in machines.iter().enumerate() {
                    // With the newest of its records it goes, where a page has no room.
                    @let newest = of.iter().max_by_key(|(number, _)| {
                        (records[*number].header.started_unix_ns, *number)
                    });
                    (of_record(newest.map_or(0, |(number, _)| *number), &one(index, machine, of)))
                }
            }
        }
    }
}

fn one(index: usize, machine: &Machine, records: &[(usize, &str)]) -> Markup {
    let id = format!("machine-{index}");
    html! {
        section class="group" {
            h3 id=(id) { (machine.cpu_model) ", " code { (machine.cpu_signature) } }
            (part(Part::Chart, &picture(&id, machine)))
            p class="details" { (describe(machine)) }
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
type Of<'a> = (&'a Machine, Vec<(usize, &'a str)>);

/// Machines that differ in CPU or caches; a kernel of the bench has less memory than the machine
/// that it runs on, so the one with the most stands for all.
fn distinct(records: &[Record]) -> Vec<Of<'_>> {
    let mut machines: Vec<Of<'_>> = Vec::new();
    let key = |m: &Machine| {
        format!("{} {} {} {:?} {}", m.cpu_model, m.cpu_signature, m.cpus, m.caches, m.llc_bytes)
    };
    for (number, record) in records.iter().enumerate() {
        let machine = &record.machine;
        let entry = (number, record.header.id.as_str());
        match machines.iter_mut().find(|(known, _)| key(known) == key(machine)) {
            Some((known, numbers)) => {
                numbers.push(entry);
                if machine.memory_bytes > known.memory_bytes {
                    *known = machine;
                }
            }
            None => machines.push((machine, vec![entry])),
        }
    }
    machines
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
    let kind = match cache.kind.as_str() {
        "data" => "d",
        "instruction" => "i",
        _ => "",
    };
    format!("L{}{kind} {}", cache.level, text::about_size(cache.size_bytes))
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
