//! In what two machines, kernels and programs differ.

use crate::record::{Machine, Record, Topology};
use crate::units::Bytes;

/// One difference, both sides in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    pub what: &'static str,
    pub a: String,
    pub b: String,
}

/// In what two records' machines differ, what matters most first: the CPU, its caches and the share
/// of them, the kernel, the C library, the program.
#[must_use]
pub fn differences(a: &Record, b: &Record) -> Vec<Difference> {
    let mut found = hardware(&a.machine, &b.machine);
    let mut add = |what: &'static str, of: &dyn Fn(&Record) -> String| {
        let (a, b) = (of(a), of(b));
        if a != b {
            found.push(Difference { what, a, b });
        }
    };
    if let (Some(_), Some(_)) = (&a.machine.topology, &b.machine.topology) {
        // What an older record does not tell is no difference.
        add("how its CPUs lie", &|r| or_none(r.machine.topology.as_deref().map(Topology::counts)));
    }
    add("kernel", &|r| format!("{} ({})", r.machine.kernel_release, r.machine.kernel_kind));
    add("kernel's key", &|r| or_none(r.machine.kernel_key.as_deref()));
    add("kernel's CPUs", &|r| r.machine.kernel_cpus.to_string());
    add("kernel kept on CPU", &|r| or_none(r.machine.kernel_pin.map(|cpu| cpu.to_string())));
    add("kernel's CPUs on the host's", &|r| or_none(r.machine.own_cpus()));
    let huge = |r: &Record| if r.machine.kernel_huge_pages { "yes" } else { "no" }.to_owned();
    add("kernel's memory in huge pages", &huge);
    add("C library", &|r| r.machine.libc.clone());
    add("its memcpy non-temporal from", &|r| {
        or_none(r.machine.libc_nt_threshold_bytes.map(|bytes| Bytes(bytes).to_string()))
    });
    let congestion = |r: &Record| r.tcp_congestion_controls().join(", ");
    if !congestion(a).is_empty() && !congestion(b).is_empty() {
        add("TCP's congestion control", &congestion);
    }
    add("frequency governor", &|r| or_none(r.machine.governor.as_deref()));
    add("ntcopy", &|r| r.header.ntcopy.clone());
    found
}

/// What makes two machines two: a record of the one says nothing about the other.
///
/// The CPU, its caches, how many CPUs are online and the hypervisor. Not the kernel and not the C
/// library, which one machine may have several of; and not the memory's size, which a guest is
/// given a little more or less of at each start.
fn hardware(a: &Machine, b: &Machine) -> Vec<Difference> {
    let mut found = Vec::new();
    let mut add = |what: &'static str, of: &dyn Fn(&Machine) -> String| {
        let (a, b) = (of(a), of(b));
        if a != b {
            found.push(Difference { what, a, b });
        }
    };
    add("CPU", &|m| format!("{} ({})", m.cpu_model, m.cpu_signature));
    add("CPUs", &|m| m.cpus.to_string());
    add("caches", &caches);
    add("last-level cache that one CPU sees", &|m| Bytes(m.llc_bytes).to_string());
    add("CPUs that share it", &|m| or_none(sharing(m).map(|cpus| cpus.to_string())));
    add("hypervisor", &|m| or_none(m.hypervisor.as_deref()));
    found
}

/// Whether both are the same machine, or of the same kind in all that matters; else in what they
/// differ, in words.
pub fn is_same_machine(theirs: &Machine, here: &Machine) -> Result<(), String> {
    let found = hardware(theirs, here);
    if found.is_empty() {
        return Ok(());
    }
    let words: Vec<String> = found
        .iter()
        .map(|difference| format!("{}: {}, not {}", difference.what, difference.a, difference.b))
        .collect();
    Err(words.join("; "))
}

fn or_none(value: Option<impl Into<String>>) -> String {
    value.map_or_else(|| "none".to_owned(), Into::into)
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
