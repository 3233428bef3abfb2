//! What is to be written, and writing it.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt as _;

use super::Refusal;
use super::msr::{self, Package};
use super::pci::{Config, DEVICES};
use super::ports::{PERFCTRLSTS_0, Port, Switch, USE_ALLOCATING_FLOW_WR};
use super::root::{Root, explain};
use super::saved::Saved;
use super::survey::Survey;
use super::ways;

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
    fn new(register: Register, field: u64, old: u64, bits: u64) -> Change {
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

    fn write(&self, root: &Root, value: u64) -> Result<(), String> {
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

/// What makes the highest `wanted` ways those of devices' writes, in every package.
pub fn ways(survey: &Survey, wanted: u32) -> Result<Vec<Change>, Refusal> {
    survey.writable()?;
    let Some(llc_ways) = survey.llc_ways else {
        return Err(Refusal::Unavailable(
            "sysfs does not say how many ways the last-level cache has \
             (cpu0/cache/index3/ways_of_associativity), so no mask can be made"
                .to_owned(),
        ));
    };
    if wanted > llc_ways {
        let why = format!("the last-level cache has {llc_ways} ways, {wanted} are too many");
        return Err(Refusal::Usage(why));
    }
    let field = ways::all(llc_ways);
    let mut changes = Vec::new();
    for (package, value) in &survey.packages {
        let old = *value.as_ref().map_err(|why| Refusal::Failed(why.clone()))?;
        if old & field == 0 || old & !field != 0 {
            return Err(Refusal::Unavailable(format!(
                "MSR 0xC8B of package {} holds {old:#x}, which is no set of the cache's {llc_ways} \
                 ways: it is not the register that it is taken for",
                package.number
            )));
        }
        let bits = ways::highest(wanted, llc_ways);
        changes.push(Change::new(Register::Ways(*package), field, old, bits));
    }
    Ok(changes)
}

/// What switches DDIO for those root ports, or for all of the CPU's.
pub fn switch(survey: &Survey, named: &[String], on: bool) -> Result<Vec<Change>, Refusal> {
    let layout = survey.writable()?;
    let ports = chosen(&survey.ports, named)?;
    if ports.is_empty() {
        return Err(Refusal::Unavailable("no root port of the CPU was found".to_owned()));
    }
    let bits = if on { u64::from(USE_ALLOCATING_FLOW_WR) } else { 0 };
    let change = |port: &&Port| match &port.switch {
        Switch::Here { perfctrlsts_0, .. } => Ok(Change::new(
            Register::Port(port.address.clone()),
            USE_ALLOCATING_FLOW_WR.into(),
            (*perfctrlsts_0).into(),
            bits,
        )),
        Switch::Unreadable(why) if layout.port_switch => {
            Err(Refusal::Failed(format!("{}: {why}", port.address)))
        }
        Switch::Unreadable(_) | Switch::Elsewhere(_) | Switch::None => {
            Err(Refusal::Unavailable(format!(
                "{}: the root ports of {} have no switch in their configuration space. DDIO is \
             switched in the firmware's setup, for the whole machine; `ntcopy ddio ways` sets how \
             much of the cache it gets",
                port.address, layout.name
            )))
        }
    };
    ports.iter().map(change).collect()
}

fn chosen<'a>(ports: &'a [Port], named: &[String]) -> Result<Vec<&'a Port>, Refusal> {
    if named.is_empty() {
        return Ok(ports.iter().collect());
    }
    // `17:00.0` is how lspci says `0000:17:00.0`.
    let is = |port: &Port, name: &str| {
        port.address == name || port.address.strip_prefix("0000:") == Some(name)
    };
    let find = |name: &String| {
        ports.iter().find(|port| is(port, name)).ok_or_else(|| {
            let list: Vec<&str> = ports.iter().map(|port| port.address.as_str()).collect();
            let list = if list.is_empty() { "none".to_owned() } else { list.join(", ") };
            Refusal::Usage(format!("{name} is no root port of the CPU; those are: {list}"))
        })
    };
    named.iter().map(find).collect()
}

/// What takes the registers back to where they were.
pub fn back(root: &Root, survey: &Survey, saved: &[Saved]) -> Result<Vec<Change>, Refusal> {
    let change = |saved: &Saved| {
        let register = saved.register(survey)?;
        let old = register.read(root).map_err(Refusal::Failed)?;
        Ok(Change::new(register, saved.field, old, saved.value))
    };
    saved.iter().map(change).collect()
}

/// Writes them, each read back.
pub fn write(root: &Root, changes: &[Change]) -> Result<(), Refusal> {
    for change in changes.iter().filter(|change| change.is_one()) {
        let done = change.register.write(root, change.new).and_then(|()| {
            let now = change.register.read(root)?;
            if now & change.field == change.new & change.field {
                return Ok(());
            }
            Err(format!(
                "{:#x} was written and {now:#x} is read: the firmware or the chip does not let it \
                 be changed",
                change.new
            ))
        });
        done.map_err(|why| Refusal::Failed(format!("{}: {why}", change.register.name())))?;
    }
    Ok(())
}
