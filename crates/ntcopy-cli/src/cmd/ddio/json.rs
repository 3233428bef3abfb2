//! What programs read. Register values are hexadecimal text, as the datasheets have them.

use serde_json::{Value, json};

use super::msr;
use super::msr::IIO_LLC_WAYS;
use super::ports::{PERFCTRLSTS_0, Port, Switch};
use super::register::{Change, Register};
use super::survey::Survey;

/// What there is.
pub fn status(survey: &Survey, saved: bool) -> String {
    let cpu = &survey.cpu;
    let packages: Vec<Value> = survey
        .packages
        .iter()
        .map(|(package, value)| match value {
            Ok(value) => {
                let field = survey.llc_ways.map_or(u64::MAX, msr::all_ways);
                json!({
                    "package": package.number,
                    "cpu": package.cpu,
                    "value": hex(*value),
                    "ways": (value & field).count_ones(),
                })
            }
            Err(why) => json!({"package": package.number, "cpu": package.cpu, "error": why}),
        })
        .collect();
    object(&json!({
        "cpu": {
            "vendor": cpu.vendor,
            "family": cpu.family,
            "model": cpu.model,
            "stepping": cpu.stepping,
            "name": cpu.name,
        },
        "generation": cpu.layout().map(|layout| layout.name),
        "guest": cpu.guest,
        "not_writable": survey.refusal(),
        "llc_ways": survey.llc_ways,
        "llc_bytes": survey.llc_bytes,
        "ways_msr": hex(IIO_LLC_WAYS),
        "packages": packages,
        "port_register": hex(PERFCTRLSTS_0),
        "ports": survey.ports.iter().map(port).collect::<Vec<Value>>(),
        "changed": saved,
    }))
}

fn port(port: &Port) -> Value {
    let (value, why) = match &port.switch {
        Switch::Here { perfctrlsts_0, .. } => (Some(hex((*perfctrlsts_0).into())), None),
        Switch::Elsewhere(header) => {
            (None, Some(format!("an extended capability is there: {header:#010x}")))
        }
        Switch::None => (None, Some("no switch in this generation's root ports".to_owned())),
        Switch::Unreadable(why) => (None, Some(why.clone())),
    };
    json!({
        "address": port.address,
        "device": format!("8086:{:04x}", port.device),
        "on": port.switch.is_on(),
        "value": value,
        "no_snoop_op_wr_en": port.switch.no_snoop(),
        "tphdis": port.switch.hints_disabled(),
        "no_switch": why,
        "behind": port.behind,
    })
}

/// What is, or would be, written.
pub fn changes(changes: &[Change], yes: bool) -> String {
    let list: Vec<Value> = changes
        .iter()
        .map(|change| {
            let mut object = match &change.register {
                Register::Ways(package) => json!({"package": package.number, "cpu": package.cpu}),
                Register::Port(address) => json!({"port": address}),
            };
            object["old"] = hex(change.old).into();
            object["new"] = hex(change.new).into();
            object["written"] = (yes && change.is_one()).into();
            object
        })
        .collect();
    object(&json!({"dry_run": !yes, "changes": list}))
}

fn hex(value: u64) -> String {
    format!("{value:#x}")
}

fn object(value: &Value) -> String {
    format!("{value:#}\n")
}
