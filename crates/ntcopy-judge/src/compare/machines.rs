//! What there is to tell of a machine, its kernel and the program, and in what two of them differ.

use serde::Serialize;

use ntcopy_record::units::{Bytes, about_size};
use ntcopy_record::{Machine, Topology};

use crate::judged::Judged;

/// One difference, both sides in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    pub what: &'static str,
    pub a: String,
    pub b: String,
}

/// A name, and what it is in words; none where the record does not tell.
type Fact<T> = (&'static str, fn(&T) -> Option<String>);

/// What makes two machines two: a record of the one says nothing about the other.
///
/// Not the kernel and not the C library, which one machine may have several of; and not the memory's
/// size, which a guest is given a little more or less of at each start.
const HARDWARE: [Fact<Machine>; 6] = [
    ("CPU", |m| Some(format!("{} ({})", m.cpu_model, m.cpu_signature))),
    ("CPUs", |m| Some(m.cpus.to_string())),
    ("caches", |m| Some(caches(m))),
    ("last-level cache that one CPU sees", |m| Some(Bytes(m.llc_bytes).to_string())),
    ("CPUs that share it", |m| or_none(sharing(m).map(|cpus| cpus.to_string()))),
    ("hypervisor", |m| or_none(m.hypervisor.as_deref())),
];

/// What else tells one set-up from another.
const SETUP: [Fact<Judged>; 11] = [
    ("CPU topology", |r| r.machine.topology.as_deref().map(Topology::counts)),
    ("kernel", |r| Some(format!("{} ({})", r.machine.kernel_release, r.machine.kernel_kind))),
    ("kernel's key", |r| or_none(r.machine.kernel_key.as_deref())),
    ("kernel's CPUs", |r| Some(r.machine.kernel_cpus.to_string())),
    ("kernel kept on CPU", |r| or_none(r.machine.kernel_pin.map(|cpu| cpu.to_string()))),
    ("kernel's CPUs on the host's", |r| or_none(r.machine.own_cpus())),
    ("kernel's memory in huge pages", |r| {
        or_none(r.machine.kernel_huge_pages.then_some("as far as the host has them"))
    }),
    ("C library", |r| Some(r.machine.libc.clone())),
    ("its memcpy non-temporal from", |r| {
        or_none(r.machine.libc_nt_threshold_bytes.map(about_size))
    }),
    ("TCP's congestion control", |r| {
        Some(r.congestion.join(", ")).filter(|names| !names.is_empty())
    }),
    ("frequency governor", |r| or_none(r.machine.governor.as_deref())),
];

const NONE: &str = "none";

/// What a record tells of the machine that it was made on and of its kernel, what matters most first.
#[must_use]
pub fn facts(record: &Judged) -> Vec<(&'static str, String)> {
    let hardware = HARDWARE.iter().map(|(what, of)| (*what, of(&record.machine)));
    let memory = ("memory", Some(about_size(record.machine.memory_bytes)));
    let setup = SETUP.iter().map(|(what, of)| (*what, of(record)));
    let all = hardware.chain([memory]).chain(setup);
    all.filter_map(|(what, told)| Some((what, told.filter(|told| told != NONE)?))).collect()
}

/// In what two records' machines differ, what matters most first: the CPU, its caches and the share
/// of them, the kernel, the C library, the program.
#[must_use]
pub fn differences(a: &Judged, b: &Judged) -> Vec<Difference> {
    let mut found = differing(&HARDWARE, &a.machine, &b.machine);
    found.extend(differing(&SETUP, a, b));
    found.extend(differing(&[("ntcopy", |r: &Judged| Some(r.header.ntcopy.clone()))], a, b));
    found
}

/// What one of them does not tell is no difference.
fn differing<T>(facts: &[Fact<T>], a: &T, b: &T) -> Vec<Difference> {
    let one = |(what, of): &Fact<T>| Some(Difference { what, a: of(a)?, b: of(b)? });
    facts.iter().filter_map(one).filter(|one| one.a != one.b).collect()
}

/// Whether both are the same machine, or of the same kind in all that matters; else in what they
/// differ, in words.
pub fn is_same_machine(theirs: &Machine, here: &Machine) -> Result<(), String> {
    let found = differing(&HARDWARE, theirs, here);
    if found.is_empty() {
        return Ok(());
    }
    let words: Vec<String> = found
        .iter()
        .map(|difference| format!("{}: {}, not {}", difference.what, difference.a, difference.b))
        .collect();
    Err(words.join("; "))
}

fn or_none(value: Option<impl Into<String>>) -> Option<String> {
    Some(value.map_or_else(|| NONE.to_owned(), Into::into))
}

fn caches(machine: &Machine) -> String {
    let words: Vec<String> = machine
        .caches
        .iter()
        .map(|cache| format!("L{} {} {}", cache.level, cache.kind, Bytes(cache.size_bytes)))
        .collect();
    words.join(", ")
}

fn sharing(machine: &Machine) -> Option<u32> {
    machine.caches.iter().max_by_key(|cache| cache.level)?.shared_by_cpus
}
