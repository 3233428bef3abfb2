//! What the records say of machines: in what one differs from the others of its model.

use std::collections::BTreeMap;

use ntcopy_record::units::Bytes;

use super::fleet::Fleet;
use crate::summary::MachineFacts;

/// A fact is no reason if this part of the machines that behave as they should share it.
const COMMON: f64 = 0.1;

/// A fact in which a machine differs from its model's others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Differs {
    /// Which.
    pub what: &'static str,
    /// On this machine.
    pub here: String,
    /// On most of the others.
    pub others: String,
    /// On how many of them.
    pub with: usize,
    /// The number of machines that say.
    pub of: usize,
    /// How many of them have what this machine has.
    pub same: usize,
}

/// A machine's facts in words, what matters most first. None where it is not known.
fn all(facts: &MachineFacts) -> Vec<(&'static str, Option<String>)> {
    let machine = &facts.machine;
    let size = |bytes: u64| (bytes > 0).then(|| Bytes(bytes).to_string());
    let count = |count: u32| Some(count.to_string());
    let is_host = machine.kernel_kind == "host";
    let dimms = facts.dimms.as_ref();
    vec![
        ("last-level cache that one CPU sees", size(machine.llc_bytes)),
        ("CPUs that share it", facts.llc_shared_by_cpus().and_then(count)),
        ("other caches", inner_caches(facts)),
        ("hypervisor", Some(machine.hypervisor.clone().unwrap_or_else(|| "no sign of one".into()))),
        ("memory modules", dimms.map(|d| format!("{} in {} slots", d.populated, d.slots))),
        ("their speed", dimms.and_then(|d| d.speed_mt_per_s).map(|mt| format!("{mt} MT/s"))),
        ("memory", Some(rounded(machine.memory_bytes))),
        ("CPUs", count(machine.cpus)),
        ("frequency governor", machine.governor.clone()),
        ("C library", Some(machine.libc.clone())),
        ("its memcpy non-temporal from", machine.libc_nt_threshold_bytes.and_then(size)),
        ("its memset non-temporal from", machine.libc_memset_nt_threshold_bytes.and_then(size)),
        ("kernel", is_host.then(|| machine.kernel_release.clone())),
        ("name of the CPU", Some(machine.cpu_model.clone())),
    ]
}

fn inner_caches(facts: &MachineFacts) -> Option<String> {
    let caches = &facts.machine.caches;
    let last = caches.iter().map(|cache| cache.level).max()?;
    let inner = caches.iter().filter(|cache| cache.level < last);
    let words: Vec<String> = inner
        .map(|cache| format!("L{} {} {}", cache.level, cache.kind, Bytes(cache.size_bytes)))
        .collect();
    Some(words.join(", "))
}

/// Memory to an eighth of its power of two: firmware and hypervisors keep a little of it.
fn rounded(bytes: u64) -> String {
    let step = (bytes.max(1 << 30).next_power_of_two() / 16).max(1);
    let gib = ((bytes + step / 2) / step * step) as f64 / f64::from(1 << 30);
    format!("about {gib} GiB")
}

/// In what a machine differs from others of its model, what matters most first.
///
/// What a good part of the others share, though they behave as they should, is no reason.
#[must_use]
pub fn differences(fleet: &Fleet, machine: usize, others: &[usize]) -> Vec<Differs> {
    let theirs: Vec<Vec<(&'static str, Option<String>)>> =
        others.iter().map(|other| all(&fleet.machines[*other].facts)).collect();
    let mut found = Vec::new();
    for (at, (what, here)) in all(&fleet.machines[machine].facts).into_iter().enumerate() {
        let Some(here) = here else { continue };
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for value in theirs.iter().filter_map(|facts| facts[at].1.as_deref()) {
            *counts.entry(value).or_default() += 1;
        }
        let of: usize = counts.values().sum();
        let Some((value, with)) = counts.iter().max_by_key(|(_, count)| **count) else { continue };
        let same = counts.get(here.as_str()).copied().unwrap_or(0);
        if *value != here && (same as f64) < COMMON * of as f64 {
            let others = (*value).to_owned();
            found.push(Differs { what, here, others, with: *with, of, same });
        }
    }
    found
}

/// What machines call their CPU, the most common name first.
#[must_use]
pub fn names(fleet: &Fleet, machines: &[usize]) -> Vec<String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for machine in machines {
        *counts.entry(&fleet.machines[*machine].facts.machine.cpu_model).or_default() += 1;
    }
    let mut names: Vec<(&str, usize)> = counts.into_iter().collect();
    names.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    names.into_iter().map(|(name, _)| name.to_owned()).collect()
}

/// A C library and the sizes from which on it is non-temporal by itself.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Thresholds {
    /// Name and version.
    pub libc: String,
    /// The threshold of memcpy in bytes; none where it is not known.
    pub memcpy_bytes: Option<u64>,
    /// The threshold of memset.
    pub memset_bytes: Option<u64>,
    /// Machines with just these.
    pub machines: usize,
}

/// The C libraries of machines, the most common first.
#[must_use]
pub fn thresholds(fleet: &Fleet, machines: &[usize]) -> Vec<Thresholds> {
    let mut counts: BTreeMap<(&str, Option<u64>, Option<u64>), usize> = BTreeMap::new();
    for machine in machines {
        let machine = &fleet.machines[*machine].facts.machine;
        let (memcpy, memset) =
            (machine.libc_nt_threshold_bytes, machine.libc_memset_nt_threshold_bytes);
        *counts.entry((&machine.libc, memcpy, memset)).or_default() += 1;
    }
    let one = |((libc, memcpy_bytes, memset_bytes), machines): ((&str, _, _), usize)| Thresholds {
        libc: libc.to_owned(),
        memcpy_bytes,
        memset_bytes,
        machines,
    };
    let mut all: Vec<Thresholds> = counts.into_iter().map(one).collect();
    all.sort_by_key(|one| std::cmp::Reverse(one.machines));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_told_to_an_eighth_of_its_power_of_two() {
        let gib = |gib: f64| rounded((gib * f64::from(1 << 30)) as u64);
        assert_eq!([251.6, 250.9, 256.0].map(gib), ["about 256 GiB"; 3].map(str::to_owned));
        assert_eq!([23.6, 125.4].map(gib), ["about 24 GiB", "about 128 GiB"].map(str::to_owned));
    }
}
