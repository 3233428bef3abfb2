//! A PCI device's configuration space, as sysfs has it.

use std::fs;
use std::io;

use super::root::{Root, explain};

/// Where sysfs keeps the devices.
pub const DEVICES: &str = "/sys/bus/pci/devices";

const PCI_BRIDGE: u16 = 0x0604;
const CAPABILITY_EXPRESS: u8 = 0x10;
const EXPRESS_ROOT_PORT: u8 = 4;
/// Extended capabilities begin here (PCI Express base specification, 7.6).
const EXTENDED: usize = 0x100;

/// The bytes that could be read: all 4096 with root's rights, 64 without.
pub struct Config(Vec<u8>);

impl Config {
    /// Reads it.
    pub fn read(root: &Root, device: &str) -> Result<Config, String> {
        let path = format!("{DEVICES}/{device}/config");
        fs::read(root.at(&path)).map(Config).map_err(|error: io::Error| explain(&error, &path))
    }

    #[cfg(test)]
    pub fn of(bytes: Vec<u8>) -> Config {
        Config(bytes)
    }

    fn byte(&self, at: usize) -> Option<u8> {
        self.0.get(at).copied()
    }

    fn word(&self, at: usize) -> Option<u16> {
        Some(u16::from_le_bytes(self.0.get(at..at + 2)?.try_into().ok()?))
    }

    /// Four bytes, little-endian; none beyond what could be read.
    pub fn dword(&self, at: usize) -> Option<u32> {
        Some(u32::from_le_bytes(self.0.get(at..at + 4)?.try_into().ok()?))
    }

    pub fn vendor(&self) -> u16 {
        self.word(0).unwrap_or(u16::MAX)
    }

    pub fn device(&self) -> u16 {
        self.word(2).unwrap_or(u16::MAX)
    }

    /// Base class and subclass.
    pub fn class(&self) -> u16 {
        self.word(0x0a).unwrap_or(0)
    }

    /// The bus behind a bridge.
    pub fn secondary_bus(&self) -> Option<u8> {
        (self.class() == PCI_BRIDGE).then(|| self.byte(0x19)).flatten()
    }

    /// Whether it is a root port; none if the capability that tells could not be read.
    pub fn is_root_port(&self) -> Option<bool> {
        if self.class() != PCI_BRIDGE {
            return Some(false);
        }
        let mut at = usize::from(self.byte(0x34)? & !3);
        // 48 of the shortest capabilities fill the space: a longer list runs in a circle.
        for _ in 0..48 {
            if at == 0 {
                return Some(false);
            }
            if self.byte(at)? == CAPABILITY_EXPRESS {
                return Some(self.byte(at + 2)? >> 4 == EXPRESS_ROOT_PORT);
            }
            at = usize::from(self.byte(at + 1)? & !3);
        }
        Some(false)
    }

    /// The header of the extended capability that begins at an offset, if one does.
    pub fn extended_capability_at(&self, offset: usize) -> Option<u32> {
        let mut at = EXTENDED;
        // 960 four-byte headers fill the extended space.
        for _ in 0..960 {
            let header = self.dword(at).filter(|header| *header != 0 && *header != u32::MAX)?;
            if at == offset {
                return Some(header);
            }
            at = (header >> 20) as usize & !3;
            if at < EXTENDED {
                return None;
            }
        }
        None
    }
}

/// A class in a word.
pub fn class_name(class: u16) -> &'static str {
    match class >> 8 {
        0x01 => "storage",
        0x02 => "network",
        0x03 => "display",
        0x06 => "bridge",
        0x0c => "serial bus",
        0x12 => "accelerator",
        _ => "device",
    }
}
