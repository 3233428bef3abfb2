//! What the victim felt of copies: its passes against its own when left alone.
//!
//! A slow-down is a pass's time beside the copies by its time alone, both at the same quantile,
//! in the same interleaved group: 1.30 is a victim that takes 30 % longer.

use std::collections::BTreeMap;

use serde_json::Value;

use super::super::{
    MIN_PAIRS, THROUGHPUT, Versus, WALKS, interval_missing, interval_of, median, modes, versus,
};
use super::LINE_BYTES;
use crate::record::{Cell, Record, Sample};

/// The mode without copies.
pub const IDLE: &str = "idle";
/// The mode of normal copies.
pub const COPY: &str = "copy";
/// The mode with both sides non-temporal.
pub const NT_BOTH: &str = "nt-both";

/// The part of what was offered that a sample has to have copied in time, to count.
pub const LEAST_OF_OFFERED: f64 = 0.98;
/// Normal copies must slow the victim by this much before there is something to be spared.
const FELT: f64 = 0.02;

/// Whether a cell is of this form.
#[must_use]
pub fn is_one(cell: &Cell) -> bool {
    cell.params.get("form").and_then(Value::as_str) == Some("copies")
}

/// Whether the sample's streamer fell behind what it was offered, so that the traffic was not
/// that of the other modes.
#[must_use]
pub fn is_short(sample: &Sample) -> bool {
    let offered = sample.series.get("offered_bytes").and_then(|series| series.first());
    offered.is_some_and(|offered| (sample.bytes as f64) < LEAST_OF_OFFERED * *offered as f64)
}

/// The sample's passes: nanoseconds, and how many took them, ascending; none if it has none.
#[must_use]
pub fn passes(sample: &Sample) -> Option<Vec<(u64, u64)>> {
    let (ns, counts) = (sample.series.get("pass_ns")?, sample.series.get("passes")?);
    let passes: BTreeMap<u64, u64> = ns.iter().copied().zip(counts.iter().copied()).collect();
    let is_whole = ns.len() == counts.len() && counts.iter().any(|count| *count > 0);
    is_whole.then(|| passes.into_iter().collect())
}

/// The time that this part of the passes (0 to 1) did not exceed: the nearest rank.
#[must_use]
pub fn quantile_ns(passes: &[(u64, u64)], part: f64) -> Option<f64> {
    let total: u64 = passes.iter().map(|(_, count)| count).sum();
    let rank = ((part * total as f64).ceil() as u64).clamp(1, total.max(1));
    let mut seen = 0;
    let found = passes.iter().find(|(_, count)| {
        seen += count;
        seen >= rank
    });
    found.map(|(ns, _)| *ns as f64)
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ratio {
    /// The median over the groups.
    pub ratio: f64,
    /// Its 95 % interval: low, high.
    pub ci: (f64, f64),
}

/// What the victim felt in one mode, in one cell.
#[derive(Debug, Clone, PartialEq)]
pub struct Felt {
    pub mode: String,
    /// Nanoseconds a line that 50, 99 and 99.9 in 100 passes did not exceed, over all samples.
    pub line_ns: [f64; 3],
    /// The same by that of `idle`; none of `idle` itself.
    pub by_idle: Option<[f64; 3]>,
    /// The slow-down at p50 and at p99, by groups; none with too few.
    pub slow_down: [Option<Ratio>; 2],
    /// The victim's speed by that alone, at p50: the slow-down turned over.
    pub speed: Option<Versus>,
    /// On the same core: copies and passes together, by those of `copy`.
    pub whole_by_copy: Option<Versus>,
    /// Bytes per second while the clock ran: median of the samples.
    pub traffic_bytes_per_s: f64,
    /// Bytes per second of the copies themselves; none of `idle`.
    pub copy_bytes_per_s: Option<f64>,
    pub passes: u64,
    pub samples: usize,
    /// Samples that do not, since the streamer fell behind.
    pub short: usize,
}

/// What the victim felt in each mode, `idle` first.
#[must_use]
pub fn felt(record: &Record, cell: &Cell) -> Vec<Felt> {
    let mut names = modes(record);
    names.sort_by_key(|mode| *mode != IDLE);
    let idle = pooled(record, cell, IDLE);
    names.into_iter().filter_map(|mode| one(record, cell, mode, idle)).collect()
}

/// Modes that were measured in the cell and have no sample that counts: the streamer always fell
/// behind.
#[must_use]
pub fn always_behind<'a>(record: &'a Record, cell: &Cell) -> Vec<&'a str> {
    let is_behind = |mode: &&str| matches!(of(record, cell, mode), (good, 1..) if good.is_empty());
    modes(record).into_iter().filter(is_behind).collect()
}

/// The samples of a mode, those that count apart from those that do not.
fn of<'a>(record: &'a Record, cell: &Cell, mode: &str) -> (Vec<&'a Sample>, usize) {
    let all = record.samples.iter().filter(|s| s.cell == cell.cell && s.mode == mode);
    let (short, good): (Vec<&Sample>, Vec<&Sample>) = all.partition(|sample| is_short(sample));
    (good, short.len())
}

/// p50, p99 and p99.9 over all samples that count: nanoseconds a line.
fn pooled(record: &Record, cell: &Cell, mode: &str) -> Option<[f64; 3]> {
    let lines = number(cell, "pass_bytes")? as f64 / LINE_BYTES as f64;
    let mut all: BTreeMap<u64, u64> = BTreeMap::new();
    for (ns, count) in of(record, cell, mode).0.into_iter().filter_map(passes).flatten() {
        *all.entry(ns).or_default() += count;
    }
    let all: Vec<(u64, u64)> = all.into_iter().collect();
    let at = |part| Some(quantile_ns(&all, part)? / lines);
    Some([at(0.5)?, at(0.99)?, at(0.999)?])
}

fn one(record: &Record, cell: &Cell, mode: &str, idle: Option<[f64; 3]>) -> Option<Felt> {
    let (good, short) = of(record, cell, mode);
    let line_ns = pooled(record, cell, mode)?;
    let is_idle = mode == IDLE;
    let per_second = |bytes: u64, ns: u64| bytes as f64 * 1e9 / ns.max(1) as f64;
    let traffic: Vec<f64> = good.iter().map(|s| per_second(s.bytes, s.elapsed_ns)).collect();
    let copying: Vec<f64> = good
        .iter()
        .filter_map(|s| Some(per_second(s.bytes, *s.phases_ns.get("copy")?)))
        .filter(|rate| *rate > 0.0)
        .collect();
    let is_same_core = cell.params.get("victim").and_then(Value::as_str) == Some("same-core");
    let has_whole = is_same_core && !is_idle && mode != COPY;
    let ratio = |part| (!is_idle).then(|| slow_down(record, cell, mode, part)).flatten();
    Some(Felt {
        mode: mode.to_owned(),
        line_ns,
        by_idle: idle.filter(|_| !is_idle).map(|idle| [0, 1, 2].map(|at| line_ns[at] / idle[at])),
        slow_down: [ratio(0.5), ratio(0.99)],
        speed: if is_idle { None } else { versus(record, cell.cell, mode, IDLE, WALKS) },
        whole_by_copy: has_whole
            .then(|| versus(record, cell.cell, mode, COPY, THROUGHPUT))
            .flatten(),
        traffic_bytes_per_s: median(&traffic),
        copy_bytes_per_s: (!copying.is_empty()).then(|| median(&copying)),
        passes: good.iter().filter_map(|s| passes(s)).flatten().map(|(_, count)| count).sum(),
        samples: good.len(),
        short,
    })
}

/// A quantile of each sample by that of `idle` in the same group: their median.
fn slow_down(record: &Record, cell: &Cell, mode: &str, part: f64) -> Option<Ratio> {
    let ratios: Vec<f64> =
        groups(record, cell, [mode, IDLE], part).iter().map(|[ours, idle]| ours / idle).collect();
    let interval = || interval_missing(&ratios, record.misses_permille(cell.cell));
    (ratios.len() >= MIN_PAIRS).then(|| Ratio { ratio: median(&ratios), ci: interval() })
}

/// The quantile of each of the modes, in the groups that have a sample of every one that counts.
fn groups<const N: usize>(
    record: &Record,
    cell: &Cell,
    modes: [&str; N],
    part: f64,
) -> Vec<[f64; N]> {
    let mut groups: BTreeMap<u32, [Option<f64>; N]> = BTreeMap::new();
    let samples = record.samples.iter().filter(|s| s.cell == cell.cell && !is_short(s));
    for sample in samples {
        if let Some(at) = modes.iter().position(|mode| *mode == sample.mode) {
            groups.entry(sample.pair).or_insert([None; N])[at] =
                passes(sample).and_then(|passes| quantile_ns(&passes, part));
        }
    }
    let whole = |group: [Option<f64>; N]| {
        let values: Vec<f64> = group.into_iter().flatten().filter(|ns| *ns > 0.0).collect();
        values.try_into().ok()
    };
    groups.into_values().filter_map(whole).collect()
}

/// Whether a slow-down is clearly there, so that there is something to be spared.
#[must_use]
pub fn is_felt(slow_down: &Ratio) -> bool {
    slow_down.ci.0 >= 1.0 + FELT
}

/// How much of the slow-down by normal copies is left in a mode: 0.25 is a quarter. The groups
/// of all three are drawn together for the interval. None where normal copies do not clearly
/// slow the victim: of nothing there is no part.
#[must_use]
pub fn part_of_slow_down(record: &Record, cell: &Cell, mode: &str) -> Option<Ratio> {
    let normal = slow_down(record, cell, COPY, 0.5)?;
    if !is_felt(&normal) {
        return None;
    }
    let groups = groups(record, cell, [mode, COPY, IDLE], 0.5);
    if groups.len() < MIN_PAIRS {
        return None;
    }
    let part = |drawn: &[usize]| {
        let excess = |at: usize| {
            let by_idle: Vec<f64> = drawn.iter().map(|g| groups[*g][at] / groups[*g][2]).collect();
            median(&by_idle) - 1.0
        };
        let (ours, normal) = (excess(0), excess(1));
        (normal > 0.0).then(|| ours / normal)
    };
    let all: Vec<usize> = (0..groups.len()).collect();
    let permille = record.misses_permille(cell.cell);
    Some(Ratio { ratio: part(&all)?, ci: interval_of(groups.len(), permille, part)? })
}

/// A number among the cell's parameters.
#[must_use]
pub fn number(cell: &Cell, name: &str) -> Option<u64> {
    cell.params.get(name).and_then(Value::as_u64)
}

#[cfg(test)]
#[path = "copies_tests.rs"]
pub(crate) mod tests;
