//! What is to be written, and writing it.

use super::Refusal;
use super::msr;
use super::ports::{Port, Switch, USE_ALLOCATING_FLOW_WR};
use super::register::{Change, Register};
use super::root::Root;
use super::saved::Saved;
use super::survey::Survey;

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
    let field = msr::all_ways(llc_ways);
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
        let bits = msr::highest_ways(wanted, llc_ways);
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
