//! The machine that a record was made on.

use maud::{Markup, html};
use ntcopy_record::{Cache, Record};

use super::scroll;
use crate::{hardware, text};

/// For each record, the one whose section has the table of their machine: the newest of those of
/// which the same is to be said.
pub(super) fn tellers(records: &[Record]) -> Vec<usize> {
    let all: Vec<_> = records.iter().map(facts).collect();
    let teller = |of: &Vec<(&'static str, String)>| {
        let same = (0..records.len()).filter(|other| all[*other] == *of);
        same.max_by_key(|other| (records[*other].header.started_unix_ns, *other)).unwrap_or(0)
    };
    all.iter().map(teller).collect()
}

/// The machine of a record, or a word on which record's it is.
pub(super) fn section(records: &[Record], number: usize, teller: usize) -> Markup {
    if number == teller {
        return table(number, &records[number]);
    }
    html! {
        p class="made-by" {
            "The machine is that of record "
            a href=(format!("#record-{teller}")) { (records[teller].header.id) } "."
        }
    }
}

fn table(number: usize, record: &Record) -> Markup {
    let id = format!("r{number}machine");
    let table = html! {
        table class="facts" {
            tbody {
                @for (name, value) in facts(record) {
                    tr { th scope="row" { (name) } td { (value) } }
                }
            }
        }
    };
    html! { details { summary id=(id) { "Machine" } (scroll(&format!("{id} record-{number}-name"), &table)) } }
}

fn facts(record: &Record) -> Vec<(&'static str, String)> {
    let machine = &record.machine;
    let unknown = || "unknown".to_owned();
    let mut kernel = format!("{} ({})", machine.kernel_release, machine.kernel_kind);
    if let Some(key) = &machine.kernel_key {
        kernel.push_str(&format!(", built as {key}"));
    }
    let caches: Vec<String> = machine.caches.iter().map(cache).collect();
    let llc = match machine.llc_bytes {
        0 => unknown(),
        bytes => text::about_size(bytes),
    };
    let mut facts = vec![
        ("CPU", machine.cpu_model.clone()),
        ("CPUID signature", machine.cpu_signature.clone()),
        ("CPUs of the host", machine.cpus.to_string()),
        ("Caches (CPUID)", if caches.is_empty() { unknown() } else { caches.join("; ") }),
        ("Last-level cache", llc),
        ("Memory", text::about_size(machine.memory_bytes)),
        ("Kernel", kernel),
        ("CPUs of that kernel", kernel_cpus(record)),
        ("C library", machine.libc.clone()),
        (
            "Its memcpy goes NT",
            machine
                .libc_nt_threshold_bytes
                .map_or_else(unknown, |bytes| format!("from {} on", text::about_size(bytes))),
        ),
        ("Frequency governor", machine.governor.clone().unwrap_or_else(unknown)),
        ("Hypervisor", machine.hypervisor.clone().unwrap_or_else(|| "no sign of one".to_owned())),
    ];
    if machine.kernel_huge_pages {
        facts.push(("Memory of that kernel", "in huge pages of the host".to_owned()));
    }
    if let Some(name) = &machine.tcp_congestion_control {
        facts.push(("TCP's congestion control", name.clone()));
    }
    let counters = &machine.hardware_counters;
    let counted = counters.iter().filter(|counter| counter.missing.is_none());
    let counted: Vec<String> =
        counted.map(|counter| format!("{} ({})", counter.name, counter.source)).collect();
    let all = [counted, hardware::missing(record)].concat();
    if !all.is_empty() {
        facts.push(("Hardware counters", all.join("; ")));
    }
    facts
}

fn kernel_cpus(record: &Record) -> String {
    let machine = &record.machine;
    let count = machine.kernel_cpus;
    match (machine.kernel_pin, machine.own_cpus()) {
        (Some(cpu), _) => format!("{count}, all of it on the host's CPU {cpu}"),
        (None, Some(cpus)) => format!("{count}, each on one of the host's: CPU {cpus}"),
        (None, None) => count.to_string(),
    }
}

fn cache(cache: &Cache) -> String {
    let shared = cache.shared_by_cpus.map_or_else(String::new, |cpus| {
        // CPUID counts reserved identifiers.
        format!(", at most {cpus} CPU{}", if cpus == 1 { "" } else { "s" })
    });
    format!("L{} {} {}{shared}", cache.level, cache.kind, text::about_size(cache.size_bytes))
}
