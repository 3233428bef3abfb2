//! The CPUs of a guest, and those of the host that they run on.

use std::path::{Path, PathBuf};
use std::{fmt, fs};

use crate::error::{Context as _, Error, Result};
use crate::kind::Kind;

/// CPUs of the guest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cpus {
    /// One: for everything that is heavy in system calls.
    #[default]
    One,
    /// Two: for a sender and a receiver that both stay busy.
    Two,
    /// Four: in QEMU, for races that two do not show.
    Four,
}

impl Cpus {
    /// The number.
    pub fn count(self) -> u32 {
        match self {
            Self::One => 1,
            Self::Two => 2,
            Self::Four => 4,
        }
    }
}

impl std::str::FromStr for Cpus {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "1" => Ok(Self::One),
            "2" => Ok(Self::Two),
            "4" => Ok(Self::Four),
            _ => Err(format!("a guest has 1, 2 or 4 CPUs, not {text}")),
        }
    }
}

impl fmt::Display for Cpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.count())
    }
}

/// Where the guest's CPUs run.
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
    ///
    /// # Errors
    ///
    /// [`Error::NotHere`] where there are too few of them, or the kernel cannot be put on them.
    pub fn with_own_caches(cpus: Cpus, kernel: Kind) -> Result<Self> {
        if !matches!(kernel, Kind::Um | Kind::UmSmall | Kind::UmModule) {
            return Err(Error::NotHere(format!(
                "CPUs with caches of their own are for a um kernel of 7.3, not '{kernel}'"
            )));
        }
        let set = rustix::thread::sched_getaffinity(None);
        let set = set.doing("asking for", "the CPUs of this process")?;
        let allowed = (0..rustix::thread::CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu));
        let allowed: Vec<Host> = allowed.map(|cpu| Host::of(cpu, Path::new(SYSFS))).collect();
        let chosen = choose(&allowed, cpus.count() as usize);
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

const SYSFS: &str = "/sys/devices/system/cpu";

/// A CPU of the host, and those with which it shares its L2, as sysfs writes them.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Host {
    cpu: usize,
    sharing: String,
}

impl Host {
    /// A host that says nothing about its caches says which CPUs are threads of one core.
    fn of(cpu: usize, sysfs: &Path) -> Self {
        let folder = sysfs.join(format!("cpu{cpu}"));
        let read = |file: PathBuf| Some(fs::read_to_string(file).ok()?.trim().to_owned());
        let caches = (0..8).map(|index| folder.join(format!("cache/index{index}")));
        let l2 = caches.into_iter().find(|cache| read(cache.join("level")).as_deref() == Some("2"));
        let sharing = l2
            .and_then(|cache| read(cache.join("shared_cpu_list")))
            .or_else(|| read(folder.join("topology/thread_siblings_list")))
            .unwrap_or_else(|| cpu.to_string());
        Self { cpu, sharing }
    }
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
    fn the_second_level_says_who_shares_and_else_the_core() {
        let sysfs = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str| {
            let file = sysfs.path().join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        };
        put("cpu0/cache/index0/level", "1\n");
        put("cpu0/cache/index0/shared_cpu_list", "0\n");
        put("cpu0/cache/index2/level", "2\n");
        put("cpu0/cache/index2/shared_cpu_list", "0,4\n");
        put("cpu1/topology/thread_siblings_list", "1,5\n");
        let sharing = |cpu| Host::of(cpu, sysfs.path()).sharing;
        assert_eq!([sharing(0), sharing(1), sharing(2)], ["0,4", "1,5", "2"]);
    }
}
