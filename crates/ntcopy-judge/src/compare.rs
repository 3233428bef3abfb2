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

use crate::claims::{Claim, Point, Question, questions};
use crate::judged::Judged;
use crate::params::identity;
use crate::stats::{Tally, Use, Verdict, Versus, words};
use ntcopy_record::Cell;
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

/// What one side was asked, before the other one is found.
struct Found<'r> {
    record: &'r Judged,
    cell: &'r Cell,
    question: Question<'r>,
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
    let (in_a, in_b) = (found(a, by_kernel), found(b, by_kernel));
    let theirs: BTreeMap<&Key<'r>, &Found<'r>> = in_b.iter().map(|(key, one)| (key, one)).collect();
    let cells: Vec<Compared<'r>> =
        in_a.iter().filter_map(|(key, ours)| pair(ours, theirs.get(key)?)).collect();
    let both = cells.len();
    Comparison { cells, only_a: in_a.len() - both, only_b: in_b.len() - both }
}

/// Every result of a side, by what was asked.
fn found(records: &[Judged], by_kernel: bool) -> Vec<(Key<'_>, Found<'_>)> {
    let mut newest: Vec<&Judged> =
        records.iter().filter(|record| record.header.not_a_timing.is_none()).collect();
    newest.sort_by_key(|record| std::cmp::Reverse(record.header.started_unix_ns));
    let mut seen: BTreeSet<Key<'_>> = BTreeSet::new();
    let mut all = Vec::new();
    for record in newest {
        let kernel = if by_kernel && record.machine.kernel_kind != "host" { "booted " } else { "" };
        for cell in &record.cells {
            for question in questions(record, &[Use::Judged, Use::Own]) {
                let experiment = format!("{kernel}{}", record.header.experiment);
                let key = (experiment, identity(&cell.params), question);
                let found = Found { record, cell, question };
                if has_figures(&found) && seen.insert(key.clone()) {
                    all.push((key, found));
                }
            }
        }
    }
    all.sort_by(|(a, _), (b, _)| a.0.cmp(&b.0));
    all
}

/// Whether the cell has figures of both modes, however few.
fn has_figures(Found { record, cell, question }: &Found<'_>) -> bool {
    let Question { mode, other, metric } = *question;
    let has_figure = |mode| record.median(cell.cell, mode, metric).is_some();
    question.of(record, cell).is_some() || has_figure(mode) && has_figure(other)
}

fn pair<'r>(ours: &Found<'r>, theirs: &Found<'r>) -> Option<Compared<'r>> {
    let answer = |one: &Found<'r>| one.question.of(one.record, one.cell);
    let (a, b) = (answer(ours)?, answer(theirs)?);
    Some(Compared { a, b, versus: b.versus.relative_to(a.versus) })
}

/// The cells, by experiment and question; each group has at least one.
#[must_use]
pub fn groups<'c, 'r>(comparison: &'c Comparison<'r>) -> Vec<Vec<&'c Compared<'r>>> {
    let key = |one: &'c Compared<'r>| ((&one.a.record.header.experiment, one.a.question), one);
    grouped(comparison.cells.iter().map(key)).into_iter().map(|(_, group)| group).collect()
}

/// A sentence a mode and metric of each experiment; one for what could not be compared.
#[must_use]
pub fn sentences(comparison: &Comparison<'_>) -> Vec<String> {
    let mut sentences: Vec<String> =
        groups(comparison).iter().filter_map(|group| sentence(group)).collect();
    if comparison.cells.is_empty() {
        sentences.push(
            "Nothing can be compared: the two sides have no cell in common, or too few pairs in it."
                .to_owned(),
        );
    }
    let alone = (comparison.only_a, comparison.only_b);
    if alone != (0, 0) {
        sentences.push(format!("Results on one side only: {} in A, {} in B.", alone.0, alone.1));
    }
    sentences
}

fn sentence(cells: &[&Compared<'_>]) -> Option<String> {
    let first = &cells.first()?.a;
    let claim = Claim::over(cells.iter().map(|cell| &cell.versus))?;
    let says = match claim.verdict {
        Verdict::Win => "does better in B than in A",
        Verdict::Loss => "does worse in B than in A",
        Verdict::Equal => "does as well in B as in A",
        Verdict::Unresolved => "is unresolved between A and B",
    };
    let Tally { wins, losses, .. } = cells.iter().map(|cell| cell.versus.verdict()).collect();
    let (mean, tally) = match cells.len() {
        1 => ("", String::new()),
        all => (
            " (geometric mean)",
            format!("; clearly better in {wins}, clearly worse in {losses} of {all} cells"),
        ),
    };
    Some(format!(
        "{}: {} against {}, by {}, {says}: B's ratio is at {claim} of A's{mean}{tally}.",
        first.record.header.experiment,
        first.question.mode,
        first.question.other,
        words(first.question.metric),
    ))
}
