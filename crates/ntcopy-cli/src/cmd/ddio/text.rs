//! What people read: 80 columns.

use std::fmt::Write as _;

use super::cpu::{Cpu, Maker};
use super::msr;
use super::ports::{Port, Switch};
use super::register::{Change, Register};
use super::survey::Survey;

const WIDTH: usize = 80;

/// What there is.
pub fn status(survey: &Survey, saved: bool) -> String {
    let mut out = String::new();
    cpu(&mut out, survey);
    if !survey.packages.is_empty() {
        out.push_str(
            "\nWays of the last-level cache that devices' writes allocate in (MSR 0xC8B)\n",
        );
        packages(&mut out, survey);
    }
    if let Some(layout) = survey.cpu.layout().filter(|_| !survey.cpu.guest) {
        out.push_str("\nRoot ports of the CPU (perfctrlsts_0, configuration space 0x180)\n");
        if survey.ports.is_empty() {
            out.push_str("  none was found\n");
        }
        survey.ports.iter().for_each(|port| port_lines(&mut out, port, layout.name));
    }
    if saved {
        out.push_str("\nChanged since the start: `ntcopy ddio restore` takes it back.\n");
    }
    out
}

fn cpu(out: &mut String, survey: &Survey) {
    let Cpu { vendor, family, model, stepping, name, .. } = &survey.cpu;
    let known = survey.cpu.layout().map_or(String::new(), |layout| format!(": {}", layout.name));
    let _ = writeln!(out, "CPU\n  {name}");
    match survey.cpu.maker {
        Maker::Arm | Maker::Other if vendor.is_empty() || vendor == "Arm" => {
            let _ = writeln!(out, "  {}", if vendor.is_empty() { "unknown maker" } else { vendor });
        }
        _ => {
            let _ = writeln!(
                out,
                "  {vendor} family {family} model {model} stepping {stepping}{known}"
            );
        }
    }
    if let Some(why) = survey.refusal() {
        out.push('\n');
        let mut sentence = why;
        if let Some(first) = sentence.get(..1).map(str::to_uppercase) {
            sentence.replace_range(..1, &first);
        }
        if !sentence.ends_with('.') {
            sentence.push('.');
        }
        wrapped(out, "", 0, &sentence);
    }
}

fn packages(out: &mut String, survey: &Survey) {
    for (package, value) in &survey.packages {
        let label = format!("  package {}  ", package.number);
        match (value, survey.llc_ways) {
            (Ok(value), Some(of)) => {
                let count = (value & msr::all_ways(of)).count_ones();
                let _ = writeln!(out, "{label}{value:#x}  {}", msr::draw_ways(*value, of));
                let _ = writeln!(
                    out,
                    "{:width$}{count} of {of} ways{}",
                    "",
                    share(survey, count, of),
                    width = label.len()
                );
            }
            (Ok(value), None) => {
                let _ = writeln!(out, "{label}{value:#x} (of how many ways is not known)");
            }
            (Err(why), _) => wrapped(out, &label, label.len(), why),
        }
    }
}

fn share(survey: &Survey, count: u32, of: u32) -> String {
    let Some(bytes) = survey.llc_bytes else { return String::new() };
    let mib = |bytes: f64| format!("{:.1} MiB", bytes / f64::from(1 << 20));
    let part = bytes as f64 * f64::from(count) / f64::from(of);
    format!(", {} of {}", mib(part), mib(bytes as f64))
}

fn port_lines(out: &mut String, port: &Port, generation: &str) {
    let label = format!("  {}  ", port.address);
    let bit = |bit: Option<bool>| u8::from(bit == Some(true));
    let text = match &port.switch {
        Switch::Here { .. } => format!(
            "{}   Use_Allocating_Flow_Wr={} NoSnoopOpWrEn={} TPHDIS={}",
            if port.switch.is_on() == Some(true) { "on " } else { "off" },
            bit(port.switch.is_on()),
            bit(port.switch.no_snoop()),
            bit(port.switch.hints_disabled())
        ),
        Switch::Elsewhere(header) => format!(
            "no switch here: at 0x180 is an extended capability ({header:#010x}). {generation} is \
             switched in the firmware's setup"
        ),
        Switch::None => {
            format!("no switch here: {generation} is switched in the firmware's setup")
        }
        Switch::Unreadable(why) => format!("unknown: {why}"),
    };
    wrapped(out, &label, label.len(), &text);
    for device in &port.behind {
        let _ = writeln!(out, "{:width$}{device}", "", width = label.len());
    }
}

/// What is, or would be, written.
pub fn changes(survey: &Survey, changes: &[Change], yes: bool) -> String {
    let mut out = String::new();
    for change in changes {
        match &change.register {
            Register::Ways(_) => ways_change(&mut out, survey, change),
            Register::Port(_) => port_change(&mut out, survey, change),
        }
    }
    let closing = match (changes.iter().any(Change::is_one), yes) {
        (false, _) => "It is so already: nothing to write.",
        (true, false) => "Nothing was written. With --yes it is.",
        (true, true) => "Written, and read back.",
    };
    out.push_str(closing);
    out.push('\n');
    out
}

fn ways_change(out: &mut String, survey: &Survey, change: &Change) {
    let of = survey.llc_ways.unwrap_or(64 - change.field.leading_zeros());
    let _ = writeln!(out, "{}: {:#x} -> {:#x}", change.register.name(), change.old, change.new);
    for (when, value) in [("old", change.old), ("new", change.new)] {
        let count = (value & change.field).count_ones();
        let _ = writeln!(out, "  {when}  {}  {count} of {of} ways", msr::draw_ways(value, of));
    }
}

fn port_change(out: &mut String, survey: &Survey, change: &Change) {
    let bit = |value: u64| u8::from(value & change.field != 0);
    let _ = writeln!(
        out,
        "{}: {:#010x} -> {:#010x}\n  Use_Allocating_Flow_Wr {} -> {}",
        change.register.name(),
        change.old,
        change.new,
        bit(change.old),
        bit(change.new)
    );
    let Register::Port(address) = &change.register else { return };
    let Some(port) = survey.ports.iter().find(|port| port.address == *address) else { return };
    for device in &port.behind {
        let _ = writeln!(out, "  behind it: {device}");
    }
    if bit(change.new) == 0 && port.switch.hints_disabled() == Some(false) {
        wrapped(
            out,
            "  ",
            2,
            "Writes that carry a processing hint (TPH) still allocate: TPHDIS is 0, and is left.",
        );
    }
}

/// Words after a label, broken at [`WIDTH`], further lines indented.
fn wrapped(out: &mut String, label: &str, indent: usize, text: &str) {
    let mut line = label.to_owned();
    let mut fresh = true;
    for word in text.split(' ') {
        if !fresh && line.chars().count() + 1 + word.chars().count() > WIDTH {
            let _ = writeln!(out, "{}", line.trim_end());
            line = " ".repeat(indent);
            fresh = true;
        }
        if !fresh {
            line.push(' ');
        }
        line.push_str(word);
        fresh = false;
    }
    let _ = writeln!(out, "{}", line.trim_end());
}
