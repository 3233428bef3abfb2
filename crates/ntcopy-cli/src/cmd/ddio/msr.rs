//! MSR 0xC8B of each package, through `/dev/cpu/N/msr`: eight bytes at the register's number.

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
