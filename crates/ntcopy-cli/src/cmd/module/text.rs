//! What `ntcopy module status` prints: for people, and as one JSON object.

use std::fmt::Write as _;

use ntcopy::socket::{Errno, OtherSeries};
use ntcopy_kernel::module::{Lockdown, SecureBoot, Status, Taint};
use serde_json::{Value, json};

use super::{Found, age, shown};

/// Column where values begin.
const VALUE: usize = 20;

fn row(out: &mut String, name: &str, value: &str) {
    let _ = writeln!(out, "  {name:<width$}{value}", width = VALUE - 2);
}

/// For people.
pub fn render(found: &Found) -> String {
    let status = &found.status;
    let mut out = String::new();
    let _ = writeln!(out, "{}\n", verdict(found));
    out.push_str("Kernel\n");
    row(&mut out, "release", &status.release);
    row(&mut out, "MSG_NTCOPY", if status.has_series { "its own" } else { "not its own" });
    if let Some(range) = &status.range {
        let is_one = if status.is_in_range { "this is one" } else { "this is none" };
        row(&mut out, "module is for", &format!("kernels {range}: {is_one}"));
    }
    row(&mut out, "Secure Boot", secure_boot(status));
    row(&mut out, "lockdown", lockdown(status));
    row(&mut out, "takes", takes(status));
    taint(&mut out, status);
    module(&mut out, found);
    files(&mut out, status);
    out
}

/// The first line: how things are, and what to do next.
fn verdict(found: &Found) -> String {
    let status = &found.status;
    if status.has_series {
        return "This kernel knows MSG_NTCOPY itself. It needs no module.".into();
    }
    if status.loaded.is_some() {
        let info = found.info.as_ref().ok().and_then(Option::as_ref);
        return match info.and_then(OtherSeries::of) {
            None => "The module is loaded.".into(),
            Some(other) => format!("No use can be made of the module: {other}."),
        };
    }
    if !status.takes_modules {
        return "This kernel takes no modules.".into();
    }
    if !status.is_in_range {
        return "The module is not for this kernel.".into();
    }
    let has_one = !status.built.is_empty() || status.installed.is_some();
    let next = match (has_one, status.headers.is_some()) {
        (true, _) => "sudo ntcopy module load",
        (false, true) => "ntcopy module build",
        (false, false) => "ntcopy module build, which will tell how to get the kernel's headers",
    };
    format!("The module is not loaded. Next: {next}")
}

fn secure_boot(status: &Status) -> &'static str {
    match status.secure_boot {
        SecureBoot::On => "on: the firmware starts signed kernels only",
        SecureBoot::Off => "off",
        SecureBoot::NoEfi => "none: this machine was not started by EFI",
        SecureBoot::Unknown => "unknown: the firmware's variables cannot be read",
    }
}

fn lockdown(status: &Status) -> &'static str {
    match status.lockdown {
        Some(Lockdown::None) => "none",
        Some(Lockdown::Integrity) => "integrity: root may not change the running kernel",
        Some(Lockdown::Confidentiality) => {
            "confidentiality: root may neither change the running kernel nor read its secrets"
        }
        None => "not in this kernel, or not to be read",
    }
}

/// Which modules the kernel would take now.
fn takes(status: &Status) -> &'static str {
    if !status.takes_modules {
        "no modules"
    } else if status.modules_disabled {
        "no more modules until it is started again (kernel.modules_disabled)"
    } else if status.takes_unsigned() {
        "any module"
    } else {
        "modules only that are signed with a key it knows (module load tells how)"
    }
}

fn taint(out: &mut String, status: &Status) {
    let Some(taint) = &status.taint else {
        row(out, "taint", "not to be read");
        return;
    };
    if taint.value == 0 {
        row(out, "taint", "none");
    }
    let mut name = "taint";
    for Taint { letter, meaning } in &taint.taints {
        row(out, name, &format!("{letter}  {meaning}"));
        name = "";
    }
    if taint.others != 0 {
        row(out, name, &format!("   and other bits, {:#x}", taint.others));
    }
}

fn module(out: &mut String, found: &Found) {
    out.push_str("\nModule\n");
    let Some(loaded) = &found.status.loaded else {
        row(out, "loaded", "no");
        return;
    };
    let version = loaded.version.as_deref().unwrap_or("unknown");
    let state = if loaded.state == "Live" { "" } else { ", on its way in or out" };
    row(out, "loaded", &format!("yes, version {version}{state}"));
    let letters: String = loaded.taints.iter().map(|taint| taint.letter).collect();
    if !letters.is_empty() {
        row(out, "taints with", &letters);
    }
    match &found.info {
        Ok(Some(info)) => {
            row(out, "interface", &format!("series {}", info.series));
            row(out, "attached", &sockets(info.attached));
            row(out, "detached, open", &sockets(info.lingering));
        }
        Ok(None) => row(out, "attached", "unknown: there is no /dev/ntcopy"),
        Err(Errno::ACCESS) => {
            row(out, "attached", "unknown: /dev/ntcopy is for root, and for members of its group");
        }
        Err(errno) => row(out, "attached", &format!("unknown: /dev/ntcopy: {errno}")),
    }
    row(out, "can be attached", "unix streams, UDP; for TCP: ethtool -K DEV tx-nocache-copy on");
    for (pid, name) in &found.holders {
        row(out, "open in", &format!("process {pid} ({name})"));
    }
}

fn sockets(count: u64) -> String {
    format!("{count} socket{}", if count == 1 { "" } else { "s" })
}

fn files(out: &mut String, status: &Status) {
    out.push_str("\nFiles for this kernel\n");
    match &status.headers {
        Some(headers) => row(out, "headers", &shown(headers)),
        None => row(out, "headers", "not here"),
    }
    if let Some(path) = &status.installed {
        row(out, "installed", &shown(path));
    }
    for kept in &status.built {
        let age = age(kept.built_unix_s);
        let note = if kept.is_current { "" } else { ", of other sources than this program's" };
        row(out, "built", &format!("{} ({age}{note})", shown(&kept.path)));
    }
    if status.built.is_empty() && status.installed.is_none() {
        row(out, "built", "none");
    }
}

/// For programs.
pub fn json(found: &Found) -> String {
    let status = &found.status;
    let info = found.info.as_ref().ok().and_then(Option::as_ref);
    let module = status.loaded.as_ref().map_or(Value::Null, |loaded| {
        json!({
            "version": loaded.version,
            "series": info.map(|info| info.series),
            "state": loaded.state,
            "references": loaded.references,
            "taints": loaded.taints,
            "attached": info.map(|info| info.attached),
            "lingering": info.map(|info| info.lingering),
            "holders": found.holders.iter().map(|(pid, name)| json!({ "pid": pid, "name": name }))
                .collect::<Vec<_>>(),
        })
    });
    let object = json!({
        "kernel": {
            "release": status.release,
            "has_msg_ntcopy": status.has_series,
            "is_in_range": status.is_in_range,
            "takes_modules": status.takes_modules && !status.modules_disabled,
            "takes_unsigned_modules": status.takes_modules && !status.modules_disabled
                && status.takes_unsigned(),
            "secure_boot": status.secure_boot,
            "lockdown": status.lockdown,
            "signatures_enforced": status.signatures_enforced,
            "taint": status.taint,
        },
        "module": module,
        "headers": status.headers,
        "installed": status.installed,
        "built": status.built,
    });
    format!("{object:#}\n")
}
