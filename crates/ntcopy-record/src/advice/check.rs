//! Measuring a piece of advice again: which command, and what came of it.

use std::collections::BTreeSet;

use serde_json::Value;

use super::Decision;
use super::points::{Gain, Point, argument};
use crate::compare::identity;
use crate::record::Record;
use crate::stats::{Versus, versus};

/// The most sizes that are measured again: the smallest, the largest, and one between.
const MOST_SIZES: usize = 3;
/// And none above this, if there are others: memory that is mapped for one check takes longer than
/// the check.
const MOST_BYTES: u64 = 1 << 30;

/// How to measure a piece of advice again.
#[derive(Debug, Clone, PartialEq)]
pub struct Check {
    /// The arguments of `ntcopy`, without what says where the record goes.
    pub args: Vec<String>,
    cells: Vec<String>,
    mode: String,
    other: String,
    metric: &'static str,
}

/// What the second measurement came to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Judged {
    /// Ratio and interval over the same cells.
    pub gain: Gain,
    /// Whether the whole interval lies above 1 again.
    pub held: bool,
}

impl Check {
    /// The check of the cells that advice rests on: a command, and its options with the parameters
    /// whose values of these cells they take.
    pub(super) fn new(
        command: &[&str],
        options: &[(&str, &str)],
        points: &[&Point<'_>],
        (mode, other, metric): (&str, &str, &'static str),
    ) -> Check {
        let points = distinct(points);
        let mut args: Vec<String> = command.iter().map(|word| (*word).to_owned()).collect();
        for (option, name) in options {
            let values = values(&points, name);
            if !values.is_empty() {
                args.extend([(*option).to_owned(), values]);
            }
        }
        Check {
            args,
            cells: points.iter().map(|point| identity(&point.cell.params)).collect(),
            mode: mode.to_owned(),
            other: other.to_owned(),
            metric,
        }
    }

    #[must_use]
    pub fn cells(&self) -> usize {
        self.cells.len()
    }
}

/// The points at no more than three sizes: the smallest, the largest and the one in the
/// middle. Others would say the same, and take their time.
fn distinct<'p, 'a>(points: &[&'p Point<'a>]) -> Vec<&'p Point<'a>> {
    let mut sizes: Vec<u64> = points.iter().map(|point| point.size_bytes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    if sizes.first().is_some_and(|smallest| *smallest <= MOST_BYTES) {
        sizes.retain(|size| *size <= MOST_BYTES);
    }
    if sizes.len() > MOST_SIZES {
        sizes = vec![sizes[0], sizes[sizes.len() / 2], sizes[sizes.len() - 1]];
    }
    points.iter().copied().filter(|point| sizes.contains(&point.size_bytes)).collect()
}

/// A parameter's different values over some points, as a list on the command line.
fn values(points: &[&Point<'_>], name: &str) -> String {
    let found = points.iter().filter_map(|point| point.cell.params.get(name));
    let list: Vec<String> = if name.ends_with("_bytes") {
        let sizes: BTreeSet<u64> = found.filter_map(Value::as_u64).collect();
        sizes.into_iter().map(argument).collect()
    } else {
        let word = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        found.map(word).collect::<BTreeSet<String>>().into_iter().collect()
    };
    list.join(",")
}

/// Judges a second measurement: did the advice hold? None if the record has none of its cells.
///
/// Cells that the record has beside the advice's own (a command line can only ask for whole
/// grids) are left out.
#[must_use]
pub fn judge(check: &Check, record: &Record) -> Option<Judged> {
    let cells = record.cells.iter().filter(|cell| check.cells.contains(&identity(&cell.params)));
    let all: Vec<Versus> = cells
        .filter_map(|cell| versus(record, cell.cell, &check.mode, &check.other, check.metric))
        .collect();
    let gain = Gain::over(&all)?;
    Some(Judged { gain, held: gain.ci.0 > 1.0 })
}

/// The pieces of advice that are worth most and can be measured again, most valuable first.
///
/// What is set for a whole machine goes before what one program does; then the larger gain, by the
/// lower end of its interval.
#[must_use]
pub fn most_valuable(all: &[super::Advice], count: usize) -> Vec<&super::Advice> {
    let mut worth: Vec<&super::Advice> = all
        .iter()
        .filter(|advice| advice.decision == Decision::Set && advice.check.is_some())
        .collect();
    let least = |advice: &super::Advice| advice.gain.map_or(0.0, |gain| gain.ci.0);
    worth.sort_by(|a, b| {
        let by_gain = least(b).total_cmp(&least(a));
        b.topic.is_setting().cmp(&a.topic.is_setting()).then(by_gain)
    });
    // Two pieces of advice may rest on the same cells; to measure these twice tells no more.
    let mut seen: Vec<&Check> = Vec::new();
    worth.retain(|advice| {
        advice.check.as_ref().is_some_and(|check| {
            let is_new = !seen.contains(&check);
            seen.push(check);
            is_new
        })
    });
    worth.truncate(count);
    worth
}
