//! The findings for people: short sections, aligned, 80 columns.

use std::fmt::Write as _;
use std::path::Path;

use ntcopy::cpu::{Cache, FEATURES, Feature, Use};
use ntcopy_bench::hardware::Resctrl;
use ntcopy_record::units::count;
use ntcopy_report::text::{about_size, hanging};

use super::{Findings, meaning};
use crate::cmd::module_or_not;

const WIDTH: usize = 80;
/// Column where values begin.
const VALUE: usize = 20;

/// The whole text, with its last newline.
pub fn render(found: &Findings) -> String {
    let mut out = String::new();
    machine(&mut out, found);
    caches(&mut out, found);
    instructions(&mut out, found);
    libc(&mut out, found);
    kernel(&mut out, found);
    counters(&mut out, found);
    for warning in &found.warnings {
        out.push('\n');
        out.push_str(&hanging("Warning: ", &warning.what, WIDTH));
        if let Some(fix) = &warning.fix {
            // On a line of its own, uncut, so that it can be copied.
            let _ = writeln!(out, "         To correct it for a program:\n  {fix}");
        }
    }
    out
}

fn title(out: &mut String, title: &str) {
    let gap = if out.is_empty() { "" } else { "\n" };
    let _ = writeln!(out, "{gap}{title}");
}

fn row(out: &mut String, name: &str, value: &str) {
    let label = format!("  {name:<width$}", width = VALUE - 2);
    out.push_str(&hanging(&label, value, WIDTH));
}

fn machine(out: &mut String, found: &Findings) {
    title(out, "CPU");
    row(out, "model", &found.cpu.model_name);
    row(out, "signature", &found.cpu.signature());
    row(out, "usable here", &count(found.cpus_usable, "CPU"));
    let guest = match &found.cpu.hypervisor {
        Some(hypervisor) => format!("yes, of {hypervisor}"),
        None => "no sign of it".to_owned(),
    };
    row(out, "guest", &guest);
}

fn caches(out: &mut String, found: &Findings) {
    let (cpuid, sysfs) = (&found.cpu.caches, &found.cpu.sysfs_caches);
    title(out, &format!("{:<20}{:<12}{:<12}line, ways, shared by", "Caches", "CPUID", "sysfs"));
    let mut all: Vec<&Cache> = cpuid.iter().collect();
    let same = |a: &Cache, b: &Cache| (a.level, a.kind) == (b.level, b.kind);
    all.extend(sysfs.iter().filter(|cache| !cpuid.iter().any(|other| same(other, cache))));
    if all.is_empty() {
        row(out, "unknown", "neither CPUID nor sysfs describes them");
    }
    for cache in all {
        let size = |list: &[Cache]| {
            list.iter().find(|other| same(other, cache)).map(|other| other.size_bytes)
        };
        let (a, b) = (size(cpuid), size(sysfs));
        let shared = cache.shared_by_cpus.map_or(String::new(), |n| {
            // CPUID counts reserved identifiers: an upper bound.
            format!(", at most {}", count(n as usize, "CPU"))
        });
        let flag = if a.is_some() && b.is_some() && a != b { "  <- differs" } else { "" };
        let name = format!("L{} {}", cache.level, cache.kind.name());
        let known = |bytes: Option<u64>| bytes.map_or("-".to_owned(), about_size);
        let value = format!(
            "{:<12}{:<12}{} B, {}{shared}{flag}",
            known(a),
            known(b),
            cache.line_bytes,
            cache.ways
        );
        let _ = writeln!(out, "  {name:<width$}{value}", width = VALUE - 2);
    }
    if let Some(bytes) = found.cpu.legacy_l3_bytes {
        row(out, "L3, legacy leaf", &about_size(bytes));
    }
}

fn instructions(out: &mut String, found: &Findings) {
    title(out, "Instructions");
    for (used_for, name) in [
        (Use::NtStore, "NT store"),
        (Use::NtLoad, "NT load"),
        (Use::Line, "cache lines"),
        (Use::Rep, "string copies"),
    ] {
        let of = FEATURES.iter().filter(|feature| feature.used_for == used_for);
        let (here, missing): (Vec<&Feature>, Vec<&Feature>) =
            of.partition(|feature| found.cpu.has(feature.name));
        let here: Vec<&str> = here.iter().map(|feature| feature.instructions).collect();
        let here = if here.is_empty() { "none".to_owned() } else { here.join(", ") };
        row(out, name, &here);
        if !missing.is_empty() {
            let missing: Vec<&str> = missing.iter().map(|feature| feature.name).collect();
            row(out, "", &format!("not here: {}", missing.join(", ")));
        }
    }
}

fn libc(out: &mut String, found: &Findings) {
    let libc = &found.libc;
    title(out, "C library");
    row(out, "name", &format!("{} {}", libc.name, libc.version));
    let from = |bytes: Option<u64>| match bytes {
        Some(bytes) => format!("from {} on", about_size(bytes)),
        None => "unknown".to_owned(),
    };
    row(out, "memcpy goes NT", &from(libc.memcpy_nt_threshold_bytes));
    let memset = match (libc.memset_nt_threshold_bytes, libc.memcpy_nt_threshold_bytes) {
        (None, Some(_)) => "never (glibc has that from 2.40 on)".to_owned(),
        (bytes, _) => from(bytes),
    };
    row(out, "memset goes NT", &memset);
    row(out, "known from", libc.source);
    let believed = libc.l3_believed_bytes.map_or("unknown".to_owned(), about_size);
    row(out, "believes in L3 of", &believed);
}

fn kernel(out: &mut String, found: &Findings) {
    let kernel = &found.kernel;
    title(out, "Kernel");
    let kind = if kernel.user_mode { ", a user-mode kernel" } else { "" };
    row(out, "release", &format!("{} ({}){kind}", kernel.release, kernel.machine));
    let flag = match (&kernel.probe_error, kernel.msg_ntcopy) {
        (Some(error), _) => format!("cannot be used: {error}"),
        (None, true) if kernel.support == "module" => {
            "by the module, on sockets that opt in: unix streams".to_owned()
        }
        (None, true) => "yes, on sockets that opt in by SO_NTCOPY".to_owned(),
        (None, false) => format!(
            "no ({}; ntcopy bench unix --kernel um boots a kernel that has it)",
            module_or_not()
        ),
    };
    row(out, "MSG_NTCOPY", &flag);
    // A container's network namespace does not show the machine's settings.
    let hidden =
        if kernel.msg_ntcopy { "not to be seen in this network namespace" } else { "not there" };
    let setting = kernel.sysctl_ntcopy.map_or(hidden.to_owned(), |setting| setting.to_string());
    row(out, "net.core.ntcopy", &setting);
}

fn counters(out: &mut String, found: &Findings) {
    title(out, "Hardware counters");
    for counter in &found.counters {
        row(out, &counter.name, &meaning(counter));
    }
    row(out, "resctrl", Resctrl::of(Path::new("/")).meaning());
}
