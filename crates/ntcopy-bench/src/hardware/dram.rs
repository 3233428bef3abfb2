//! Bytes that memory controllers read and wrote, as their PMUs count them: the whole machine's.

use std::path::Path;

use super::pmu::{self, Config, Pmu};

pub const READ: &str = "dram-read-bytes";
pub const WRITE: &str = "dram-write-bytes";
/// Both, where a CPU does not count them apart.
pub const TOTAL: &str = "dram-bytes";

/// A burst, in every memory that these CPUs take.
const BURST_BYTES: f64 = 64.0;

/// Intel's names for reads, by generation: one of a controller's, or one of each sub-channel.
const IMC_READS: [&[&str]; 4] = [
    &["cas_count_read"],
    &["cas_count_read_sch0", "cas_count_read_sch1"],
    &["data_reads"],
    &["data_read"],
];
const IMC_WRITES: [&[&str]; 4] = [
    &["cas_count_write"],
    &["cas_count_write_sch0", "cas_count_write_sch1"],
    &["data_writes"],
    &["data_write"],
];

/// A count to open: one event on one CPU.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Part {
    pub kind: u32,
    pub cpu: u32,
    pub config: Config,
    pub bytes: f64,
}

/// A direction, and all the events that make it up.
#[derive(Debug, Clone, PartialEq)]
pub struct Traffic {
    pub name: &'static str,
    /// Which PMUs and events, for people.
    pub source: String,
    pub parts: Vec<Part>,
}

/// What this machine's memory controllers count; nothing if they have no PMUs. `signature` is the
/// CPU's: AMD's events have no names in sysfs.
pub fn find(root: &Path, signature: &str) -> Vec<Traffic> {
    let names = pmu::names(root).unwrap_or_default();
    let all = |is: fn(&str) -> bool| -> Vec<Pmu> {
        names.iter().filter(|name| is(name)).filter_map(|name| Pmu::read(root, name)).collect()
    };
    let controllers = all(is_imc);
    let free_running = all(|name| name.starts_with("uncore_imc_free_running"));
    for pmus in [&controllers, &free_running] {
        let traffic = intel(pmus);
        if !traffic.is_empty() {
            return traffic;
        }
    }
    let controllers = all(|name| name.starts_with("amd_umc_"));
    if !controllers.is_empty() {
        return umc(&controllers);
    }
    Pmu::read(root, "amd_df").map_or_else(Vec::new, |pmu| data_fabric(&pmu, signature))
}

/// `uncore_imc` or `uncore_imc_<number>`.
fn is_imc(name: &str) -> bool {
    let Some(rest) = name.strip_prefix("uncore_imc") else { return false };
    rest.is_empty()
        || rest
            .strip_prefix('_')
            .is_some_and(|n| !n.is_empty() && n.chars().all(|c| c.is_ascii_digit()))
}

fn intel(pmus: &[Pmu]) -> Vec<Traffic> {
    [(READ, IMC_READS), (WRITE, IMC_WRITES)]
        .into_iter()
        .filter_map(|(name, generations)| {
            generations.iter().find_map(|events| {
                let mut parts = Vec::new();
                for pmu in pmus {
                    for event in *events {
                        let (config, bytes) = pmu.event(event)?;
                        parts.extend(on_all_cpus(pmu, config, bytes));
                    }
                }
                let source = source(pmus, &events.join(" + "));
                (!parts.is_empty()).then_some(Traffic { name, source, parts })
            })
        })
        .collect()
}

/// Zen 4 and later: `umc_cas_cmd`, event 0x0a, of 64 bytes each.
fn umc(pmus: &[Pmu]) -> Vec<Traffic> {
    [
        (READ, "event=0x0a,rdwrmask=0x1", "umc_cas_cmd.rd"),
        (WRITE, "event=0x0a,rdwrmask=0x2", "umc_cas_cmd.wr"),
    ]
    .into_iter()
    .filter_map(|(name, terms, event)| {
        let mut parts = Vec::new();
        for pmu in pmus {
            parts.extend(on_all_cpus(pmu, pmu.config(terms)?, BURST_BYTES));
        }
        Some(Traffic { name, source: source(pmus, event), parts })
    })
    .collect()
}

/// The data fabric, where the controllers' own PMUs are not to be had: one event a channel, so
/// many of them that they take turns.
fn data_fabric(pmu: &Pmu, signature: &str) -> Vec<Traffic> {
    let mut parts = signature.split('-').skip(1).map(|part| part.parse::<u32>().unwrap_or(0));
    let (family, model) = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
    let zen3 = family == 0x19 && matches!(model >> 4, 0 | 2 | 4 | 5);
    let traffic = |name, channels: u64, first: u64, umask: u64, event: &str| {
        let mut parts = Vec::new();
        for channel in 0..channels {
            let terms = format!("event={:#x},umask={umask:#x}", first + 0x40 * channel);
            parts.extend(on_all_cpus(pmu, pmu.config(&terms)?, BURST_BYTES));
        }
        Some(Traffic { name, source: format!("amd_df: {event}, {channels} channels"), parts })
    };
    let list = match family {
        0x17 => vec![traffic(TOTAL, 8, 0x07, 0x38, "dram_channel_data_controller")],
        0x19 if zen3 => vec![traffic(TOTAL, 8, 0x07, 0x38, "dram_channel_data_controller")],
        0x19 => vec![
            traffic(READ, 12, 0x1f, 0x7fe, "local_processor_read_data_beats"),
            traffic(WRITE, 12, 0x1f, 0x7ff, "local_processor_write_data_beats"),
        ],
        0x1a => vec![
            traffic(READ, 12, 0x1f, 0xffe, "local_or_remote_socket_read_data_beats_dram"),
            traffic(WRITE, 12, 0x1f, 0xfff, "local_or_remote_socket_write_data_beats_dram"),
        ],
        _ => Vec::new(),
    };
    list.into_iter().flatten().collect()
}

fn on_all_cpus(pmu: &Pmu, config: Config, bytes: f64) -> impl Iterator<Item = Part> {
    let kind = pmu.kind;
    pmu.cpus.iter().map(move |cpu| Part { kind, cpu: *cpu, config, bytes })
}

fn source(pmus: &[Pmu], events: &str) -> String {
    match pmus {
        [] => events.to_owned(),
        [pmu] => format!("{}: {events}", pmu.name),
        [first, ..] => {
            let kind = first.name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '_');
            format!("{} x {kind}: {events}", pmus.len())
        }
    }
}

#[cfg(test)]
#[path = "dram_tests.rs"]
mod tests;
