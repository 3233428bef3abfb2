//! Two sides held against each other: the same cells of two machines, two dates, two versions.
//! Pure functions of records.
//!
//! A cell's ratio (a mode by its baseline) was measured interleaved on each side, so the machine's
//! own speed is not in it. What is compared is that ratio: of the one side by that of the other.
//! The sides were measured apart, so the interval draws the pairs of both anew, each by itself.

mod machines;
mod sentences;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use crate::lists::grouped;
use crate::record::{Cell, Params, Record};
use crate::stats::{
    DISPLACED, METRICS, TURNS, Verdict, Versus, footprint, interval_of_quotients, modes, turns,
    versus,
};
use crate::units::Ratio;

pub use machines::{Difference, differences, facts, is_same_machine};
pub use sentences::sentences;

/// Parameters that say where and by what a cell was measured, and not what was.
const NOT_ASKED: [&str; 16] = [
    "primed_lines",
    "threshold_cycles",
    "app_version",
    "offered_bytes_per_s",
    "cpus",
    "hardware_counters",
    "note",
    "ours_path",
    "stream_path",
    "region_bytes",
    "libc_tuned_threshold_bytes",
    "iterations",
    "pipe_bytes",
    "sndbuf_bytes",
    "starts",
    "offered_requests_per_1000_s",
];

/// What was asked in a cell, in one line: cells of two records with the same one are the same.
///
/// Left out is what the machine had a say in: CPUs, paths, sizes that follow from its caches.
#[must_use]
pub fn identity(params: &Params) -> String {
    let asked: BTreeMap<&str, &serde_json::Value> = params
        .iter()
        .map(|(name, value)| (name.as_str(), value))
        .filter(|(name, _)| !NOT_ASKED.contains(name) && !name.starts_with("path_"))
        .filter(|(name, _)| !name.ends_with("_cpu"))
        .collect();
    let words: Vec<String> = asked.iter().map(|(name, value)| format!("{name}={value}")).collect();
    words.join(" ")
}

/// One side's result in a cell.
#[derive(Debug, Clone, PartialEq)]
pub struct Figures<'r> {
    pub record: &'r Record,
    pub cell: &'r Cell,
    /// The mode against its baseline.
    pub versus: Versus,
}

/// The same cell, mode and metric on both sides.
#[derive(Debug, Clone, PartialEq)]
pub struct Compared<'r> {
    pub mode: &'r str,
    /// Its name in [`METRICS`].
    pub metric: &'static str,
    pub a: Figures<'r>,
    pub b: Figures<'r>,
    /// The second side's ratio by the first one's.
    pub quotient: Ratio,
    /// Win: the mode does more on the second side than on the first.
    pub verdict: Verdict,
}

/// All that two sides have in common.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Comparison<'r> {
    /// By experiment, then in the order of the first side's cells.
    pub cells: Vec<Compared<'r>>,
    /// Results that only the first side has.
    pub only_a: usize,
    /// Results that only the second side has.
    pub only_b: usize,
}

/// One result of one side, before the other one's is found.
struct Found<'a> {
    record: &'a Record,
    cell: &'a Cell,
    mode: &'a str,
    metric: &'static str,
}

type Key = (String, String, String, String, &'static str);

/// Compares two sides. Where several records of a side have the same cell, the newest counts.
///
/// Cells of a booted kernel are held against those of a booted kernel and those of the host
/// against the host's, unless nothing would be left to compare.
#[must_use]
pub fn compare<'r>(a: &'r [Record], b: &'r [Record]) -> Comparison<'r> {
    let strict = compared(a, b, true);
    if strict.cells.is_empty() { compared(a, b, false) } else { strict }
}

fn compared<'r>(a: &'r [Record], b: &'r [Record], by_kernel: bool) -> Comparison<'r> {
    let (in_a, in_b) = (found(a, by_kernel), found(b, by_kernel));
    let theirs: BTreeMap<&Key, &Found<'r>> = in_b.iter().map(|(key, one)| (key, one)).collect();
    let cells: Vec<Compared<'r>> =
        in_a.iter().filter_map(|(key, ours)| pair(ours, theirs.get(key)?)).collect();
    let both = cells.len();
    Comparison { cells, only_a: in_a.len() - both, only_b: in_b.len() - both }
}

/// Every result of a side, by what was asked.
fn found(records: &[Record], by_kernel: bool) -> Vec<(Key, Found<'_>)> {
    let mut newest: Vec<&Record> =
        records.iter().filter(|record| record.header.not_a_timing.is_none()).collect();
    newest.sort_by_key(|record| std::cmp::Reverse(record.header.started_unix_ns));
    let mut seen: BTreeSet<Key> = BTreeSet::new();
    let mut all = Vec::new();
    for record in newest {
        let baseline = record.header.baseline.as_str();
        let kernel = if by_kernel && record.machine.kernel_kind != "host" { "booted " } else { "" };
        for cell in &record.cells {
            for mode in modes(record).into_iter().filter(|mode| *mode != baseline) {
                for metric in METRICS.iter().filter(|metric| metric.is_whole) {
                    let metric = metric.name;
                    let experiment = format!("{kernel}{}", record.header.experiment);
                    let key = (
                        experiment,
                        identity(&cell.params),
                        mode.to_owned(),
                        baseline.to_owned(),
                        metric,
                    );
                    let both = if metric == DISPLACED { [mode, mode] } else { [mode, baseline] };
                    let has_both = both.iter().all(|name| has(record, cell, name));
                    if has_both && seen.insert(key.clone()) {
                        all.push((key, Found { record, cell, mode, metric }));
                    }
                }
            }
        }
    }
    all.retain(|(_, one)| is_metric_of(one));
    all.sort_by(|(a, _), (b, _)| a.0.cmp(&b.0));
    all
}

fn has(record: &Record, cell: &Cell, mode: &str) -> bool {
    record.samples.iter().any(|sample| sample.cell == cell.cell && sample.mode == mode)
}

/// Whether the cell's samples have a figure by this metric at all.
fn is_metric_of(one: &Found<'_>) -> bool {
    match one.metric {
        TURNS => return turns::versus(one.record).is_some(),
        DISPLACED => return footprint::versus(one.record, one.cell, one.mode).is_some(),
        _ => {}
    }
    let ours = one.record.samples.iter().find(|s| s.cell == one.cell.cell && s.mode == one.mode);
    ours.is_some_and(|sample| {
        crate::stats::rate(&one.record.header.experiment, sample, one.metric).is_some()
    })
}

fn pair<'r>(ours: &Found<'r>, theirs: &Found<'r>) -> Option<Compared<'r>> {
    let (a, b) = (figures(ours)?, figures(theirs)?);
    let permille = a.versus.misses_permille.min(b.versus.misses_permille);
    let ci = interval_of_quotients(&[(&b.versus.ratios, &a.versus.ratios)], permille);
    let (quotient, verdict) =
        (Ratio { ratio: b.versus.ratio / a.versus.ratio, ci }, Verdict::from_interval(ci));
    Some(Compared { mode: ours.mode, metric: ours.metric, a, b, quotient, verdict })
}

fn figures<'r>(one: &Found<'r>) -> Option<Figures<'r>> {
    let Found { record, cell, mode, metric } = *one;
    let versus = match metric {
        TURNS => turns::versus(record)?,
        DISPLACED => footprint::versus(record, cell, mode)?,
        metric => versus(record, cell.cell, mode, &record.header.baseline, metric)?,
    };
    Some(Figures { record, cell, versus })
}

/// The cells, by experiment, mode and metric; each group has at least one.
#[must_use]
pub fn groups<'c, 'r>(comparison: &'c Comparison<'r>) -> Vec<Vec<&'c Compared<'r>>> {
    let key =
        |cell: &'c Compared<'r>| ((&cell.a.record.header.experiment, cell.mode, cell.metric), cell);
    grouped(comparison.cells.iter().map(key)).into_iter().map(|(_, group)| group).collect()
}

/// All cells of a mode together: the geometric mean of the ratios of their ratios, with its
/// interval; none without cells.
#[must_use]
pub fn overall(cells: &[&Compared<'_>]) -> Option<Ratio> {
    if cells.is_empty() {
        return None;
    }
    let logs: f64 = cells.iter().map(|cell| cell.quotient.ratio.ln()).sum();
    let lists: Vec<(&[f64], &[f64])> = cells
        .iter()
        .map(|cell| (cell.b.versus.ratios.as_slice(), cell.a.versus.ratios.as_slice()))
        .collect();
    let sides = cells.iter().flat_map(|cell| [&cell.a.versus, &cell.b.versus]);
    let permille = sides.map(|versus| versus.misses_permille).min()?;
    let ci = interval_of_quotients(&lists, permille);
    Some(Ratio { ratio: (logs / cells.len() as f64).exp(), ci })
}
