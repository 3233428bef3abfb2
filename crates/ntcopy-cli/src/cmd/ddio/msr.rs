//! MSR 0xC8B of each package, through `/dev/cpu/N/msr`: eight bytes at the register's number. Its
//! bits are ways of the last-level cache, the highest way leftmost.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt as _;

use super::root::{Root, explain};

/// IIO LLC WAYS: a bit a way of the last-level cache in which devices' writes may allocate.
pub const IIO_LLC_WAYS: u64 = 0xc8b;

/// A package, and the CPU through which its registers are reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Package {
    pub number: u32,
    pub cpu: u32,
}

/// The packages, each with its lowest CPU; one of CPU 0 where sysfs does not tell.
pub fn packages(root: &Root) -> Vec<Package> {
    let mut packages: Vec<Package> = Vec::new();
    let cpus = root.names("/sys/devices/system/cpu");
    let mut cpus: Vec<u32> =
        cpus.iter().filter_map(|name| name.strip_prefix("cpu")?.parse().ok()).collect();
    cpus.sort_unstable();
    for cpu in cpus {
        let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/physical_package_id");
        let Some(number) = root.text(&path).and_then(|text| text.parse().ok()) else { continue };
        if packages.iter().all(|package| package.number != number) {
            packages.push(Package { number, cpu });
        }
    }
    if packages.is_empty() {
        packages.push(Package { number: 0, cpu: 0 });
    }
    packages
}

fn path(cpu: u32) -> String {
    format!("/dev/cpu/{cpu}/msr")
}

fn words(error: &io::Error, cpu: u32) -> String {
    let text = explain(error, &path(cpu));
    if error.kind() == io::ErrorKind::NotFound {
        return format!("{text} (as root: modprobe msr)");
    }
    text
}

/// Reads the register through that CPU.
pub fn read(root: &Root, cpu: u32) -> Result<u64, String> {
    let read = || {
        let mut bytes = [0; 8];
        File::open(root.at(&path(cpu)))?.read_exact_at(&mut bytes, IIO_LLC_WAYS)?;
        Ok(u64::from_le_bytes(bytes))
    };
    read().map_err(|error: io::Error| words(&error, cpu))
}

/// Writes it.
pub fn write(root: &Root, cpu: u32, value: u64) -> Result<(), String> {
    let write = || {
        let file = OpenOptions::new().write(true).open(root.at(&path(cpu)))?;
        file.write_all_at(&value.to_le_bytes(), IIO_LLC_WAYS)
    };
    write().map_err(|error: io::Error| words(&error, cpu))
}

/// The least ways that the hardware takes.
pub const LEAST_WAYS: u32 = 2;

/// The bits of all ways of a cache with `of` ways.
pub fn all_ways(of: u32) -> u64 {
    if of >= 64 { u64::MAX } else { (1 << of) - 1 }
}

/// The highest `ways` ways: where both generations have them when the machine starts.
pub fn highest_ways(ways: u32, of: u32) -> u64 {
    all_ways(of) & !all_ways(of - ways.min(of))
}

/// `way 10 [##.........] way 0`.
pub fn draw_ways(value: u64, of: u32) -> String {
    let way = |number: u32| if value >> number & 1 == 1 { '#' } else { '.' };
    let bar: String = (0..of).rev().map(way).collect();
    format!("way {} [{bar}] way 0", of.saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_masks_come_out() {
        assert_eq!(highest_ways(2, 11), 0x600);
        assert_eq!(highest_ways(4, 11), 0x780);
        assert_eq!(highest_ways(2, 12), 0xc00);
        assert_eq!(highest_ways(11, 11), 0x7ff);
        assert_eq!(all_ways(64), u64::MAX);
    }

    #[test]
    fn the_highest_way_is_leftmost() {
        assert_eq!(draw_ways(0x600, 11), "way 10 [##.........] way 0");
        assert_eq!(draw_ways(0x401, 11), "way 10 [#.........#] way 0");
    }
}
