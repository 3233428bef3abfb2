//! Two sides held against each other: the same cells of two machines, two dates, two versions.
//! Pure functions of records.
//!
//! A cell's ratio (a mode by its baseline) was measured interleaved on each side, so the machine's
//! own speed is not in it. What is compared is that ratio: of the one side by that of the other.
//! The sides were measured apart, so the interval draws the pairs of both anew, each by itself.

mod machines;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use crate::claims::{Point, Question, results};
use crate::judged::Judged;
use crate::params::identity;
use crate::stats::{Use, Versus};
use ntcopy_record::lists::grouped;

pub use machines::{Difference, differences, facts, is_same_machine};

/// What both sides answer to one question in the same cell.
#[derive(Debug, Clone, PartialEq)]
pub struct Compared<'r> {
    pub a: Point<'r>,
    pub b: Point<'r>,
    /// The second side's ratio relative to the first one's: a win where the mode does more on the
    /// second side.
    pub versus: Versus,
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

/// The experiment, what was asked in the cell, and what of it.
type Key<'r> = (String, String, Question<'r>);

/// Compares two sides. Where several records of a side have the same cell, the newest counts.
///
/// Cells of a booted kernel are held against those of a booted kernel and those of the host
/// against the host's, unless nothing would be left to compare.
#[must_use]
pub fn compare<'r>(a: &'r [Judged], b: &'r [Judged]) -> Comparison<'r> {
    let strict = compared(a, b, true);
    if strict.cells.is_empty() { compared(a, b, false) } else { strict }
}

fn compared<'r>(a: &'r [Judged], b: &'r [Judged], by_kernel: bool) -> Comparison<'r> {
    let (in_a, in_b) = (answers(a, by_kernel), answers(b, by_kernel));
    let theirs: BTreeMap<&Key<'r>, Point<'r>> = in_b.iter().map(|(key, one)| (key, *one)).collect();
    let both = in_a.iter().filter_map(|(key, a)| Some((*a, *theirs.get(key)?)));
    let both = both.map(|(a, b)| Compared { a, b, versus: b.versus.relative_to(a.versus) });
    let cells: Vec<Compared<'r>> = both.collect();
    let (only_a, only_b) = (in_a.len() - cells.len(), in_b.len() - cells.len());
    Comparison { cells, only_a, only_b }
}

/// Every answer of a side, by what was asked.
fn answers(records: &[Judged], by_kernel: bool) -> Vec<(Key<'_>, Point<'_>)> {
    let mut newest: Vec<&Judged> =
        records.iter().filter(|record| record.header.not_a_timing.is_none()).collect();
    newest.sort_by_key(|record| std::cmp::Reverse(record.header.started_unix_ns));
    let mut seen: BTreeSet<Key<'_>> = BTreeSet::new();
    let mut all = Vec::new();
    for record in newest {
        let kernel = if by_kernel && record.machine.kernel_kind != "host" { "booted " } else { "" };
        let experiment = format!("{kernel}{}", record.header.experiment);
        for point in results(record, &[Use::Judged, Use::Own]) {
            let key = (experiment.clone(), identity(&point.cell.params), point.question);
            if seen.insert(key.clone()) {
                all.push((key, point));
            }
        }
    }
    all.sort_by(|(a, _), (b, _)| a.0.cmp(&b.0));
    all
}

/// The cells, by experiment and question; each group has at least one.
#[must_use]
pub fn groups<'c, 'r>(comparison: &'c Comparison<'r>) -> Vec<Vec<&'c Compared<'r>>> {
    let key = |one: &'c Compared<'r>| ((&one.a.record.header.experiment, one.a.question), one);
    grouped(comparison.cells.iter().map(key)).into_iter().map(|(_, group)| group).collect()
}
