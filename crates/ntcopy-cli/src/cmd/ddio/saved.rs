//! The values from before the first change, in a file that does not outlive the boot: a reset
//! puts the registers back as well.

use std::fs;
use std::io::{self, Write as _};

use serde::{Deserialize, Serialize};

use super::Refusal;
use super::register::{Change, Register};
use super::root::Root;
use super::survey::Survey;

const FOLDER: &str = "/run/ntcopy";
const FILE: &str = "/run/ntcopy/ddio.json";
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
const FORMAT: u32 = 1;

#[derive(Serialize, Deserialize)]
struct Contents {
    format: u32,
    /// The boot that the values belong to.
    boot_id: Option<String>,
    registers: Vec<Saved>,
}

/// What one register held.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Saved {
    /// The package whose MSR 0xC8B it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    package: Option<u32>,
    /// The root port whose `perfctrlsts_0` it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    port: Option<String>,
    /// The bits that were changed.
    pub field: u64,
    /// The whole value before.
    pub value: u64,
}

impl Saved {
    fn of(change: &Change) -> Saved {
        let (package, port) = match &change.register {
            Register::Ways(package) => (Some(package.number), None),
            Register::Port(address) => (None, Some(address.clone())),
        };
        Saved { package, port, field: change.field, value: change.old }
    }

    fn is_of(&self, other: &Saved) -> bool {
        (self.package, &self.port) == (other.package, &other.port)
    }

    /// The register, if this machine still has it.
    pub fn register(&self, survey: &Survey) -> Result<Register, Refusal> {
        let package = |number: u32| {
            survey.packages.iter().map(|(package, _)| package).find(|p| p.number == number)
        };
        let register = match (self.package, &self.port) {
            (Some(number), None) => package(number).map(|package| Register::Ways(*package)),
            (None, Some(address)) => {
                let known = survey.ports.iter().any(|port| port.address == *address);
                known.then(|| Register::Port(address.clone()))
            }
            _ => None,
        };
        register.ok_or_else(|| {
            Refusal::Failed(format!("{FILE} names a register that this machine does not have"))
        })
    }
}

fn failed(root: &Root, error: impl std::fmt::Display) -> Refusal {
    Refusal::Failed(format!("{}: {error}", root.at(FILE).display()))
}

/// The values of this boot, if anything was changed.
pub fn read(root: &Root) -> Result<Option<Vec<Saved>>, Refusal> {
    let text = match fs::read_to_string(root.at(FILE)) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(root, error)),
    };
    let contents: Contents = serde_json::from_str(&text).map_err(|error| failed(root, error))?;
    if contents.format != FORMAT {
        return Err(failed(root, format!("format {}, not {FORMAT}", contents.format)));
    }
    // They may be another boot's, where /run was not emptied.
    let same_boot = contents.boot_id == root.text(BOOT_ID);
    Ok(same_boot.then_some(contents.registers))
}

/// Keeps the old values of registers that are changed for the first time.
pub fn remember(root: &Root, changes: &[Change]) -> Result<(), Refusal> {
    let mut registers = read(root)?.unwrap_or_default();
    let before = registers.len();
    for change in changes.iter().filter(|change| change.is_one()) {
        let saved = Saved::of(change);
        if !registers.iter().any(|other| other.is_of(&saved)) {
            registers.push(saved);
        }
    }
    if registers.len() == before {
        return Ok(());
    }
    let contents = Contents { format: FORMAT, boot_id: root.text(BOOT_ID), registers };
    let keep = || -> io::Result<()> {
        fs::create_dir_all(root.at(FOLDER))?;
        let mut file = tempfile::NamedTempFile::new_in(root.at(FOLDER))?;
        serde_json::to_writer_pretty(&mut file, &contents)?;
        file.write_all(b"\n")?;
        file.persist(root.at(FILE))?;
        Ok(())
    };
    keep().map_err(|error| failed(root, format!("{error}; nothing was written to the hardware")))
}

/// Forgets them, once they have been written back.
pub fn forget(root: &Root) -> Result<(), Refusal> {
    fs::remove_file(root.at(FILE)).map_err(|error| failed(root, error))
}
