//! The CPUs of a guest, and those of the host that they run on.

use std::fs;
use std::path::Path;

use rustix::thread::{CpuSet, sched_getaffinity};

use crate::error::{Context as _, Error, Result};
use crate::kind::Kind;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum HostCpus {
    /// Wherever the host likes.
    #[default]
    Any,
    /// All on this one.
    One(usize),
    /// Each on one of its own, and a process of the guest on that of the CPU that runs it.
    Each(Vec<usize>),
}

impl HostCpus {
    /// A CPU of the host for each of a kernel's, no two of which share an L2, among those that
    /// this process may use.
    pub fn with_own_caches(cpus: u32, kernel: Kind) -> Result<Self> {
        check_own(kernel)?;
        let hosts = allowed()?.into_iter();
        let hosts = hosts.map(|cpu| Some(Host { cpu, sharing: sharing_l2(cpu)? }));
        let allowed = hosts.collect::<Option<Vec<Host>>>().ok_or_else(|| {
            Error::NotHere(format!("this host does not say which CPUs share an L2, in {SYSFS}"))
        })?;
        let chosen = choose(&allowed, cpus as usize);
        chosen.map(HostCpus::Each).ok_or_else(|| {
            let names: Vec<String> = allowed.iter().map(|host| host.cpu.to_string()).collect();
            Error::NotHere(format!(
                "{cpus} CPUs with caches of their own need {cpus} of the host's that share no L2; \
                 this process may run on CPU {}",
                names.join(", ")
            ))
        })
    }
}

/// Those of the host that this process may use.
pub(super) fn allowed() -> Result<Vec<usize>> {
    let set = sched_getaffinity(None).doing("asking for", "the CPUs of this process")?;
    Ok((0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect())
}

/// Whether each CPU of a kernel can be put on one of the host's.
pub(super) fn check_own(kernel: Kind) -> Result<()> {
    if kernel.is_um_with_smp() || kernel == Kind::Kvm {
        return Ok(());
    }
    Err(Error::NotHere(format!(
        "CPUs with caches of their own are for a um kernel of 7.3 or kvm, not '{kernel}'"
    )))
}

/// The option of a um kernel that lists the CPU of the host for each of its own.
pub(crate) const HOST_CPUS: &str = "host_cpus";

const SYSFS: &str = "/sys/devices/system/cpu";

/// A CPU of the host, and those with which it shares its L2, as sysfs writes them.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Host {
    cpu: usize,
    sharing: String,
}

/// The CPUs that share the L2 of one, itself among them, as sysfs writes them: `0-1,8`.
pub fn sharing_l2(cpu: usize) -> Option<String> {
    sharing_in(Path::new(SYSFS), cpu)
}

fn sharing_in(sysfs: &Path, cpu: usize) -> Option<String> {
    let folder = sysfs.join(format!("cpu{cpu}/cache"));
    let read = |path: &Path| Some(fs::read_to_string(path).ok()?.trim().to_owned());
    let mut caches = fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path());
    let l2 = caches.find(|cache| read(&cache.join("level")).as_deref() == Some("2"))?;
    read(&l2.join("shared_cpu_list"))
}

/// The first `wanted` of which no two share.
fn choose(allowed: &[Host], wanted: usize) -> Option<Vec<usize>> {
    let mut chosen: Vec<&Host> = Vec::new();
    for host in allowed {
        if chosen.len() < wanted && chosen.iter().all(|other| other.sharing != host.sharing) {
            chosen.push(host);
        }
    }
    (chosen.len() == wanted).then(|| chosen.iter().map(|host| host.cpu).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::folder;

    fn hosts(sharing: &[&str]) -> Vec<Host> {
        let host = |(cpu, sharing): (usize, &&str)| Host { cpu, sharing: (*sharing).to_owned() };
        sharing.iter().enumerate().map(host).collect()
    }

    #[test]
    fn threads_of_one_core_are_not_taken_together() {
        assert_eq!(choose(&hosts(&["0-1", "0-1", "2-3", "2-3"]), 2), Some(vec![0, 2]));
        assert_eq!(choose(&hosts(&["0", "1"]), 2), Some(vec![0, 1]));
        assert_eq!(choose(&hosts(&["0-1", "0-1"]), 2), None);
        assert_eq!(choose(&hosts(&["0"]), 2), None);
        assert_eq!(choose(&hosts(&["0-1", "0-1"]), 1), Some(vec![0]));
    }

    #[test]
    fn the_second_level_says_who_shares() {
        let sysfs = folder(&[
            ("cpu0/cache/index0/level", "1\n"),
            ("cpu0/cache/index0/shared_cpu_list", "0\n"),
            ("cpu0/cache/index2/level", "2\n"),
            ("cpu0/cache/index2/shared_cpu_list", "0,4\n"),
            ("cpu1/cache/index0/level", "1\n"),
        ]);
        let sharing = |cpu| sharing_in(sysfs.path(), cpu);
        assert_eq!(sharing(0).as_deref(), Some("0,4"));
        assert_eq!([sharing(1), sharing(2)], [None, None]);
    }
}
