//! The registers that are changed, and what a change of one is.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt as _;

use super::msr::{self, Package};
use super::pci::{Config, DEVICES};
use super::ports::PERFCTRLSTS_0;
use super::root::{Root, explain};

/// A register of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Register {
    /// MSR 0xC8B of a package.
    Ways(Package),
    /// `perfctrlsts_0` of the root port with that address.
    Port(String),
}

/// One register's old and new value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    pub register: Register,
    /// The bits that are ours to change; the others are written back as they are.
    pub field: u64,
    pub old: u64,
    pub new: u64,
}

impl Change {
    pub fn new(register: Register, field: u64, old: u64, bits: u64) -> Change {
        Change { register, field, old, new: old & !field | bits & field }
    }

    /// Whether there is anything to write.
    pub fn is_one(&self) -> bool {
        self.old != self.new
    }
}

impl Register {
    /// Reads it.
    pub fn read(&self, root: &Root) -> Result<u64, String> {
        match self {
            Register::Ways(package) => msr::read(root, package.cpu),
            Register::Port(address) => Config::read(root, address)?
                .dword(PERFCTRLSTS_0 as usize)
                .map(u64::from)
                .ok_or_else(|| format!("{address}: only root may read that far")),
        }
    }

    /// Writes it.
    pub fn write(&self, root: &Root, value: u64) -> Result<(), String> {
        match self {
            Register::Ways(package) => msr::write(root, package.cpu, value),
            Register::Port(address) => {
                let path = format!("{DEVICES}/{address}/config");
                let value = u32::try_from(value).map_err(|_| format!("{address}: 32 bits only"))?;
                let file = OpenOptions::new().write(true).open(root.at(&path));
                file.and_then(|file| file.write_all_at(&value.to_le_bytes(), PERFCTRLSTS_0))
                    .map_err(|error| explain(&error, &path))
            }
        }
    }

    /// Its name, for messages.
    pub fn name(&self) -> String {
        match self {
            Register::Ways(package) => {
                format!("MSR 0xC8B of package {} (CPU {})", package.number, package.cpu)
            }
            Register::Port(address) => format!("perfctrlsts_0 of {address}"),
        }
    }
}
