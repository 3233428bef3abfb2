//! Which CPUs share what, as sysfs says, and how much memory there is room for.

use std::fs;

use crate::run::cpus::parse_list;

/// CPUs that share the last-level cache of this one, itself among them; none if the kernel does
/// not tell.
#[must_use]
pub fn sharing_llc(cpu: u32) -> Option<Vec<u32>> {
    let folder = format!("/sys/devices/system/cpu/cpu{cpu}/cache");
    let levels = fs::read_dir(folder).ok()?.flatten().filter_map(|index| {
        let read = |name| fs::read_to_string(index.path().join(name)).ok();
        let level: u32 = read("level")?.trim().parse().ok()?;
        Some((level, parse_list(&read("shared_cpu_list")?)?))
    });
    levels.max_by_key(|(level, _)| *level).map(|(_, cpus)| cpus)
}

/// Hardware threads of this CPU's core, itself among them; none if the kernel does not tell.
#[must_use]
pub fn sharing_core(cpu: u32) -> Option<Vec<u32>> {
    let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
    parse_list(&fs::read_to_string(path).ok()?)
}

/// Bytes of memory that can be used without pushing anything out; none if the kernel does not
/// tell.
#[must_use]
pub fn room() -> Option<u64> {
    available(&fs::read_to_string("/proc/meminfo").ok()?)
}

fn available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_shares_with_itself_where_the_kernel_tells() {
        for sharing in [sharing_llc(0), sharing_core(0)].into_iter().flatten() {
            assert!(sharing.contains(&0), "{sharing:?}");
        }
        assert_eq!(sharing_core(99_999), None);
    }

    #[test]
    fn available_memory_is_read_in_bytes() {
        assert_eq!(available("MemTotal: 9 kB\nMemAvailable:   12 kB\n"), Some(12 * 1024));
        assert_eq!(available("MemTotal: 9 kB\n"), None);
        assert!(room().is_none_or(|bytes| bytes > 1 << 20));
    }
}
