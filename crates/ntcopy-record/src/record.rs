//! The record: what was measured, where, and how, one JSON object a line.
//!
//! The format is written down for other programs in `docs/reference/record.md`. Data
//! files hold integers in base units (nanoseconds, bytes); only reports turn
//! them into text.

mod compact;
mod counted;
mod experiment;
mod mode;
mod old;
mod read;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod topology;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use compact::add_series;
pub use counted::Counted;
pub use experiment::ExperimentKind;
pub use mode::{Kernel, Mode, Sends};
pub use read::{ReadError, beside};
pub use topology::{CpuList, NoCpuList, NumaNode, SharedCaches, Topology};

/// Version of the record format. A reader refuses a larger one. Version 2 packs the histograms
/// among a sample's series, and has lines of type `look`; version 3 says what modes are.
pub const FORMAT: u32 = 3;

/// In how many of 1000 an interval may miss the truth, where the number of pairs was set
/// beforehand.
pub const MISSES_PERMILLE: u32 = 50;

/// The name of the file in a record's directory that holds its lines.
pub const FILE_NAME: &str = "record.jsonl";

/// What follows a hardware counter's name in the name of its mark: the part of the time in which it
/// counted, in thousandths. Only where that is less than all of it; the count itself is scaled to
/// the whole time.
pub const COUNTED_PERMILLE: &str = ":counted_permille";

/// Whether a name among a sample's counters is such a mark, and no counter.
#[must_use]
pub fn is_counting_mark(name: &str) -> bool {
    name.ends_with(COUNTED_PERMILLE)
}

/// Adds up by name; a mark beside a counter is as bad as the worst.
pub fn add_counts(whole: &mut BTreeMap<String, u64>, part: &BTreeMap<String, u64>) {
    for (name, count) in part {
        let is_mark = is_counting_mark(name);
        let sum = whole.entry(name.clone()).or_insert(if is_mark { *count } else { 0 });
        *sum = if is_mark { (*sum).min(*count) } else { *sum + count };
    }
}

/// Parameters of a cell, by name: sizes in bytes, counts, names.
pub type Params = BTreeMap<String, Value>;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Line {
    /// The first line: what was run, and by which command.
    Header(Header),
    /// The second line: the machine that ran it.
    Machine(Box<Machine>),
    /// A combination of parameters; samples refer to it by number.
    Cell(Cell),
    /// One timed run of one mode in one cell, its bytes checked.
    Sample(Sample),
    /// With what sampling of a cell ended, where that was not a number of pairs set beforehand.
    Look(Look),
    /// A mode that is not to be had here, and why.
    Unavailable(Unavailable),
    /// A run that failed or whose bytes were wrong. Never a number.
    Error(RunError),
    /// The last line of a record that was not cut short.
    End(End),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// The format's version, [`FORMAT`].
    pub format: u32,
    /// Unique name of the record, `<date>-<time>-<experiment>-<eight hex digits>`.
    pub id: String,
    /// The experiment, by its name as in `ntcopy bench NAME`.
    pub experiment: ExperimentKind,
    /// The command line that made the record, and makes another like it.
    pub command: Vec<String>,
    pub ntcopy: String,
    /// When it began: nanoseconds since 1970-01-01 UTC.
    pub started_unix_ns: u64,
    /// The mode that the others are compared with.
    pub baseline: String,
    /// What the modes are; of formats before 3, by their names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub modes: Vec<Mode>,
    /// Why these results are not timings (a debug kernel, an emulator), if so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_a_timing: Option<String>,
}

/// One cache, as the CPU or the kernel describes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cache {
    /// 1, 2, 3 or 4.
    pub level: u8,
    /// `data`, `instruction` or `unified`.
    pub kind: String,
    pub size_bytes: u64,
    /// Logical CPUs that share it, if known.
    pub shared_by_cpus: Option<u32>,
}

/// A hardware counter that samples may carry, and whether they do on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HardwareCounter {
    /// Its name among a sample's counters.
    pub name: String,
    /// The CPU's or the kernel's own name for what is counted; empty where there is none.
    pub source: String,
    /// Why it is not counted here, in words, if it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// The CPU's own name for itself.
    pub cpu_model: String,
    /// CPUID vendor string, family, model and stepping: `GenuineIntel-6-207-2`.
    pub cpu_signature: String,
    /// Logical CPUs online on the host.
    pub cpus: u32,
    /// Caches as CPUID reports them, innermost first.
    pub caches: Vec<Cache>,
    /// The host's CPU topology; none in records from before it was noted, and where its kernel does
    /// not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology: Option<Box<Topology>>,
    /// Size in bytes of the last-level cache that one CPU sees.
    pub llc_bytes: u64,
    pub memory_bytes: u64,
    /// `host` or the kernel's name in `ntcopy kernel` (`um`, `um:6.12`).
    pub kernel_kind: String,
    /// `uname -r` of the kernel that ran the experiment.
    pub kernel_release: String,
    /// Key of the built kernel in the cache, if it was ours.
    pub kernel_key: Option<String>,
    /// CPUs that the kernel under test had.
    pub kernel_cpus: u32,
    /// The one CPU of the host that all of that kernel was put on, if so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_pin: Option<u32>,
    /// The CPU of the host for each CPU of that kernel, if they are its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kernel_own_cpus: Vec<u32>,
    /// Whether that kernel's memory was in huge pages of the host, as far as it had them free.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub kernel_huge_pages: bool,
    /// libc name and version: `glibc 2.36`.
    pub libc: String,
    /// The byte count from which this libc's memcpy goes non-temporal, if known.
    pub libc_nt_threshold_bytes: Option<u64>,
    /// The same of its memset; none in records from before it was noted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub libc_memset_nt_threshold_bytes: Option<u64>,
    /// Frequency governor of CPU 0, if the kernel tells.
    pub governor: Option<String>,
    /// The hypervisor's CPUID signature, if this is a guest.
    pub hypervisor: Option<String>,
    /// TCP's congestion control for connections that don't choose, in the network namespace that was
    /// measured in; none in records from before it was noted, and in a kernel without TCP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp_congestion_control: Option<String>,
    /// The hardware counters; none in records from before there were any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hardware_counters: Vec<HardwareCounter>,
}

impl Machine {
    /// [`Machine::kernel_own_cpus`] as a list, if there are any.
    #[must_use]
    pub fn own_cpus(&self) -> Option<String> {
        let cpus = self.kernel_own_cpus.iter().map(ToString::to_string);
        cpus.reduce(|list, cpu| format!("{list}, {cpu}"))
    }

    /// Whether a name among a sample's counters is one of the hardware's, or a mark beside one
    /// (`cycles:counted_permille`).
    #[must_use]
    pub fn is_hardware_counter(&self, name: &str) -> bool {
        let name = name.split(':').next().unwrap_or(name);
        self.hardware_counters.iter().any(|counter| counter.name == name)
    }
}

/// A parameter that is a word, if it is there.
pub fn word<'a>(params: &'a Params, name: &str) -> Option<&'a str> {
    params.get(name).and_then(serde_json::Value::as_str)
}

/// A parameter that is a number, if it is there.
pub fn number(params: &Params, name: &str) -> Option<u64> {
    params.get(name).and_then(serde_json::Value::as_u64)
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Number of the cell in this record, from 0.
    pub cell: u32,
    pub params: Params,
}

/// One timed run of one mode.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    pub cell: u32,
    /// Which interleaved pair (or larger group, with more modes) it belongs to, from 0.
    pub pair: u32,
    /// Place in its group, from 0: the order alternates.
    pub position: u32,
    pub mode: String,
    /// Payload bytes moved while the clock ran.
    pub bytes: u64,
    /// Nanoseconds from first byte offered to last byte taken.
    pub elapsed_ns: u64,
    /// Nanoseconds of each phase that was clocked on its own, by name (`send`, `drain`).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub phases_ns: BTreeMap<String, u64>,
    /// By how much counters rose during the run, by name: the kernel's, those that did; and the
    /// hardware's, those that were counted ([`Machine::hardware_counters`]).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counters: BTreeMap<String, u64>,
    /// Figures of the run's parts, in the order in which they came, by name (`walk_ns`).
    #[serde(flatten, with = "compact")]
    pub series: BTreeMap<String, Vec<u64>>,
}

/// The look at a cell's intervals with which its sampling ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Look {
    pub cell: u32,
    /// Groups that were sampled.
    pub pairs: u32,
    /// In how many of 1000 an interval of the cell may miss the truth: sampling went on until it
    /// showed something, so it has to be wider than one of a number of pairs set beforehand.
    pub misses_permille: u32,
    pub end: LookEnd,
}

/// Why sampling of a cell ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LookEnd {
    /// Every interval was a win, a loss or equal.
    Resolved,
    /// The time was up.
    Budget,
    /// The most pairs were sampled.
    Pairs,
}

/// A mode that is not to be had.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Unavailable {
    pub mode: String,
    /// Why, in a sentence that a user can act on.
    pub why: String,
    /// The one cell in which it is not; none: nowhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cell: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunError {
    pub cell: u32,
    pub mode: String,
    pub what: String,
    /// Whether it was a wrong byte, the one failure that no rerun excuses.
    pub wrong_byte: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct End {
    /// Lines of type `sample` before this one.
    pub samples: u64,
    /// Nanoseconds since 1970-01-01 UTC.
    pub ended_unix_ns: u64,
    /// Processes that measured on this machine at the same time; 0 is one of another container.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub beside: BTreeSet<u32>,
}

/// A record that was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    pub header: Header,
    pub machine: Machine,
    pub cells: Vec<Cell>,
    pub samples: Vec<Sample>,
    /// The looks with which sampling of cells ended, where pairs were not set beforehand.
    pub looks: Vec<Look>,
    /// Modes that were not to be had.
    pub unavailable: Vec<Unavailable>,
    pub errors: Vec<RunError>,
    /// Whether the record has its last line. A record that was cut short (a
    /// crash, Ctrl-C) lacks it; what it holds is good all the same.
    pub complete: bool,
    /// As [`End::beside`].
    pub beside: BTreeSet<u32>,
}
