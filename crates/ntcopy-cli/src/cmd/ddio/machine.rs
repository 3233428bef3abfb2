//! What is known of the machine, and its registers. All of it lies below one folder, so that tests
//! can lay out a machine.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use crate::cmd::{Ended, NOT_AVAILABLE};

/// `perfctrlsts_0`, Use_Allocating_Flow_Wr: writes that miss allocate in the last-level cache.
pub const ALLOCATE: u32 = 1 << 7;
/// IIO LLC WAYS: a bit for each way of the last-level cache.
const WAYS_MSR: u64 = 0xc8b;
/// `perfctrlsts_0` and `perfctrlsts_1`.
const SWITCH: usize = 0x180;
/// Where extended capabilities begin (PCI Express base specification, 7.6).
const EXTENDED: usize = 0x100;
const CPUS: &str = "sys/devices/system/cpu";
const DEVICES: &str = "sys/bus/pci/devices";

pub fn unavailable(why: String) -> Ended {
    Ended { code: NOT_AVAILABLE, why: format!("not available here: {why}") }
}

fn failure(why: String) -> Ended {
    Ended { code: 1, why }
}

pub struct Generation {
    pub name: &'static str,
    /// The lowest of the four PCI device numbers of the CPU's own root ports.
    ports: u16,
    has_switch: bool,
}

/// Volume two of the datasheet, Intel document 614073, page 68.
static SKYLAKE: Generation =
    Generation { name: "Skylake-SP or Cascade Lake-SP", ports: 0x2030, has_switch: true };
static ICE_LAKE: Generation = Generation { name: "Ice Lake-SP", ports: 0x347a, has_switch: false };

fn generation(cpuinfo: &str) -> Result<&'static Generation, String> {
    let field = |name: &str| {
        let lines = cpuinfo.lines().filter_map(|line| line.split_once(':'));
        let mut values = lines.filter(|(key, _)| key.trim() == name).map(|(_, value)| value.trim());
        values.next().unwrap_or("")
    };
    let number = |name: &str| field(name).parse::<u32>().unwrap_or(0);
    if field("vendor_id") != "GenuineIntel" {
        return Err("DDIO is a feature of Intel's servers".to_owned());
    }
    if field("flags").split(' ').any(|flag| flag == "hypervisor") {
        return Err("this is a guest: the registers are the host's, and are set there".to_owned());
    }
    let name = field("model name");
    // Desktop parts share these models. Of Cooper Lake (stepping 10 and up) nothing is published.
    let is_server = number("cpu family") == 6 && name.contains("Xeon");
    match (number("model"), number("stepping")) {
        (85, 0..=7) if is_server => Ok(&SKYLAKE),
        (106, _) if is_server => Ok(&ICE_LAKE),
        (model, stepping) => Err(format!(
            "{name} (model {model} stepping {stepping}) is not among the CPUs whose DDIO registers \
             are known. The firmware's setup may have a switch"
        )),
    }
}

#[derive(Clone)]
pub struct Register {
    pub name: String,
    path: String,
    at: u64,
    bytes: usize,
}

impl Register {
    fn ways(package: u32, cpu: u32) -> Register {
        let name = format!("package {package} (CPU {cpu})");
        Register { name, path: format!("dev/cpu/{cpu}/msr"), at: WAYS_MSR, bytes: 8 }
    }

    pub fn switch(port: &str) -> Register {
        let path = format!("{DEVICES}/{port}/config");
        Register { name: format!("perfctrlsts_0 of {port}"), path, at: SWITCH as u64, bytes: 4 }
    }
}

/// A root port of the CPU.
pub struct Port {
    pub address: String,
    /// `perfctrlsts_0` and `perfctrlsts_1`, or why they are not to be had.
    pub registers: Result<[u32; 2], Ended>,
    /// The devices on the port's own bus, with their network interfaces.
    pub behind: Vec<String>,
}

pub struct DdioMachine {
    root: PathBuf,
    pub generation: &'static Generation,
    pub llc_ways: u32,
    /// MSR 0xC8B of each package, reached through the package's lowest CPU.
    pub ways: Vec<Register>,
    pub ports: Vec<Port>,
}

impl DdioMachine {
    /// Reads no register of a guest, nor of a CPU that is not known.
    pub fn find(root: &Path) -> Result<DdioMachine, Ended> {
        let text = |path: &str| fs::read_to_string(root.join(path)).unwrap_or_default();
        let generation = generation(&text("proc/cpuinfo")).map_err(unavailable)?;
        let path = format!("{CPUS}/cpu0/cache/index3/ways_of_associativity");
        let known = text(&path).trim().parse().ok().filter(|ways| (2..=32).contains(ways));
        let llc_ways = known
            .ok_or_else(|| unavailable(format!("/{path} does not say how many ways there are")))?;
        let ports = ports(root, generation);
        Ok(DdioMachine { root: root.to_owned(), generation, llc_ways, ways: ways(root), ports })
    }

    pub fn read(&self, register: &Register) -> Result<u64, Ended> {
        let mut bytes = [0; 8];
        let file = File::open(self.root.join(&register.path));
        file.and_then(|file| file.read_exact_at(&mut bytes[..register.bytes], register.at))
            .map_err(|error| failed(register, &error))?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// Writes it, and reads it back.
    pub fn write(&self, register: &Register, value: u64) -> Result<(), Ended> {
        let bytes = &value.to_le_bytes()[..register.bytes];
        let file = File::options().write(true).open(self.root.join(&register.path));
        file.and_then(|file| file.write_all_at(bytes, register.at))
            .map_err(|error| failed(register, &error))?;
        match self.read(register)? {
            now if now == value => Ok(()),
            now => Err(failure(format!(
                "{}: {value:#x} was written and {now:#x} is read: the firmware or the chip does \
                 not let it be changed",
                register.name
            ))),
        }
    }
}

fn failed(register: &Register, error: &io::Error) -> Ended {
    let needs = "it needs root, `modprobe msr`, and a kernel that is not locked down";
    failure(format!("/{}: {error}: {needs}", register.path))
}

fn ways(root: &Path) -> Vec<Register> {
    let package = |name: String| {
        let path = root.join(CPUS).join(&name).join("topology/physical_package_id");
        let package = fs::read_to_string(path).ok()?.trim().parse().ok()?;
        Some((package, name.strip_prefix("cpu")?.parse().ok()?))
    };
    let mut cpus: Vec<(u32, u32)> =
        names(&root.join(CPUS)).into_iter().filter_map(package).collect();
    cpus.sort_unstable();
    cpus.dedup_by_key(|(package, _)| *package);
    cpus.into_iter().map(|(package, cpu)| Register::ways(package, cpu)).collect()
}

fn ports(root: &Path, generation: &Generation) -> Vec<Port> {
    let folder = root.join(DEVICES);
    let devices = names(&folder);
    let mut ports = Vec::new();
    for address in &devices {
        let config = fs::read(folder.join(address).join("config")).unwrap_or_default();
        let numbers = (dword(&config, 0), dword(&config, 8));
        let (Some(device), Some(class)) = numbers else {
            continue;
        };
        let is_known = (generation.ports..generation.ports + 4).contains(&((device >> 16) as u16));
        if device & 0xffff != 0x8086 || !is_known || class >> 16 != 0x0604 {
            continue;
        }
        let bus = dword(&config, 0x18).unwrap_or(0) >> 8 & 0xff;
        let bus = format!("{}:{bus:02x}:", address.split(':').next().unwrap_or_default());
        let on_bus = devices.iter().filter(|device| device.starts_with(&bus));
        let behind = on_bus.map(|device| {
            format!("{device} {}", names(&folder.join(device).join("net")).join(", "))
        });
        let (behind, registers) = (behind.collect(), switch(&config, generation));
        ports.push(Port { address: address.clone(), registers, behind });
    }
    ports
}

/// The switch, unless something else is at its place.
fn switch(config: &[u8], generation: &Generation) -> Result<[u32; 2], Ended> {
    if !generation.has_switch {
        let why = "the root ports have no switch, it is in the firmware's setup";
        return Err(unavailable(why.to_owned()));
    }
    match (dword(config, SWITCH), dword(config, SWITCH + 4)) {
        (Some(first), _) if is_capability(config) => Err(unavailable(format!(
            "no switch: at 0x180 is an extended capability ({first:#010x})"
        ))),
        (Some(first), Some(second)) if first != u32::MAX => Ok([first, second]),
        (Some(_), _) => Err(failure("the port does not answer".to_owned())),
        (None, _) => Err(failure("only root may read that far".to_owned())),
    }
}

/// Whether an extended capability begins where the switch should be.
fn is_capability(config: &[u8]) -> bool {
    let mut at = EXTENDED;
    // 960 headers of four bytes fill the extended space; a longer list runs in a circle.
    for _ in 0..960 {
        match dword(config, at) {
            Some(header) if at != SWITCH && header >> 20 >= EXTENDED as u32 => {
                at = (header >> 20) as usize & !3;
            }
            _ => break,
        }
    }
    at == SWITCH
}

fn dword(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// The names in a folder, sorted.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names
}
