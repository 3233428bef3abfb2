//! The machine and the kernel that run the experiment.
//!
//! Inside a kernel that this program booted, CPUID still tells the real CPU,
//! but not how many of them the host has or what governs them; the host's side
//! passes that in, in the environment ([`FACTS_VARIABLE`]).

mod debug;
mod topology;

use std::fs;

use ntcopy_kernel::boot::HUGE_PAGES_VARIABLE;
use ntcopy_record::{Cache, Machine, Topology};
use serde::{Deserialize, Serialize};

use crate::c_library::Libc;
use crate::cpu;
use crate::hardware::{self, KIND_VARIABLE};
use crate::tcp;

pub use debug::not_a_timing;

/// Environment: the kernel's key in the cache.
pub const KEY_VARIABLE: &str = "NTCOPY_KERNEL_KEY";
/// Environment: [`HostFacts`] as JSON.
pub const FACTS_VARIABLE: &str = "NTCOPY_HOST_FACTS";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostFacts {
    pub cpus: u32,
    pub memory_bytes: u64,
    /// Frequency governor of CPU 0, if the kernel tells.
    pub governor: Option<String>,
    /// The one CPU that a booted kernel is put on, if so.
    #[serde(default)]
    pub kernel_pin: Option<u32>,
    /// The CPU of the host for each CPU of a booted kernel, if they are its own.
    #[serde(default)]
    pub kernel_own_cpus: Vec<u32>,
    #[serde(default)]
    pub topology: Option<Box<Topology>>,
}

impl HostFacts {
    pub fn detect() -> HostFacts {
        let memory = rustix::system::sysinfo();
        HostFacts {
            cpus: online_cpus(),
            memory_bytes: memory.totalram as u64 * u64::from(memory.mem_unit),
            governor: fs::read_to_string("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
                .ok()
                .map(|text| text.trim().to_owned()),
            kernel_pin: None,
            kernel_own_cpus: Vec::new(),
            topology: topology::detect().map(Box::new),
        }
    }

    fn passed_in() -> Option<HostFacts> {
        serde_json::from_str(&std::env::var(FACTS_VARIABLE).ok()?).ok()
    }
}

pub fn describe() -> Machine {
    let cpu = cpu::detect();
    let libc = Libc::detect();
    let host = HostFacts::passed_in().unwrap_or_else(HostFacts::detect);
    let caches = if cpu.caches.is_empty() { &cpu.sysfs_caches } else { &cpu.caches };
    Machine {
        cpu_model: cpu.model_name.clone(),
        cpu_signature: cpu.signature(),
        cpus: host.cpus,
        caches: caches
            .iter()
            .map(|cache| Cache {
                level: cache.level,
                kind: cache.kind.name().to_owned(),
                size_bytes: cache.size_bytes,
                shared_by_cpus: cache.shared_by_cpus,
            })
            .collect(),
        topology: host.topology,
        llc_bytes: cpu.llc_bytes(),
        memory_bytes: host.memory_bytes,
        kernel_kind: kernel_kind(),
        kernel_release: rustix::system::uname().release().to_string_lossy().into_owned(),
        kernel_key: std::env::var(KEY_VARIABLE).ok().filter(|key| !key.is_empty()),
        kernel_cpus: online_cpus(),
        kernel_pin: host.kernel_pin,
        kernel_own_cpus: host.kernel_own_cpus,
        kernel_huge_pages: std::env::var_os(HUGE_PAGES_VARIABLE).is_some(),
        libc: libc.label(),
        libc_nt_threshold_bytes: libc.memcpy_nt_threshold_bytes,
        libc_memset_nt_threshold_bytes: libc.memset_nt_threshold_bytes,
        governor: host.governor,
        hypervisor: cpu.hypervisor,
        tcp_congestion_control: tcp::congestion_control(),
        hardware_counters: hardware::offered(),
    }
}

/// What the environment says, and `um` in a user-mode kernel that was booted
/// without it.
fn kernel_kind() -> String {
    match std::env::var(KIND_VARIABLE) {
        Ok(kind) if !kind.is_empty() => kind,
        _ if cpuinfo().contains("User Mode Linux") => "um".to_owned(),
        _ => "host".to_owned(),
    }
}

fn online_cpus() -> u32 {
    let count = cpuinfo().lines().filter(|line| line.starts_with("processor")).count();
    u32::try_from(count.max(1)).unwrap_or(u32::MAX)
}

fn cpuinfo() -> String {
    fs::read_to_string("/proc/cpuinfo").unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_described() {
        let machine = describe();
        assert!(machine.cpus >= 1 && machine.kernel_cpus >= 1);
        assert!(machine.memory_bytes > 1 << 20);
        assert!(!machine.kernel_release.is_empty() && !machine.cpu_signature.is_empty());
    }

    #[test]
    fn facts_survive_the_environment() {
        let facts = HostFacts::detect();
        let text = serde_json::to_string(&facts).unwrap();
        assert_eq!(serde_json::from_str::<HostFacts>(&text).unwrap(), facts);
    }
}
