//! The figures that advice rests on: cells of several records, by one size.

use std::collections::BTreeSet;

use super::Decision;
use crate::compare::identity;
use crate::record::{Cell, ExperimentKind, Record};
pub(super) use crate::record::{number, word};
use crate::stats::{self, Tally, Verdict, Versus, geomean, versus};
pub(super) use crate::units::with_interval as figure;
use crate::units::{Bytes, count};

/// A cell's result at its size.
#[derive(Debug, Clone)]
pub struct Point<'a> {
    pub record: &'a Record,
    pub cell: &'a Cell,
    /// What the advice's threshold is compared with: bytes of a call, or in flight.
    pub size_bytes: u64,
    pub versus: Versus,
}

impl Point<'_> {
    pub fn verdict(&self) -> Verdict {
        Verdict::from_interval(self.versus.ci)
    }

    pub fn number(&self, name: &str) -> Option<u64> {
        number(&self.cell.params, name)
    }
}

pub struct Question<'q> {
    pub experiment: ExperimentKind,
    pub mode: &'q str,
    pub other: &'q str,
    pub metric: &'static str,
    pub size: &'q str,
    pub is_about: &'q dyn Fn(&Record, &Cell) -> bool,
}

/// The results, ascending by size. Records come newest first; of one that was measured twice, the
/// newest counts.
pub fn points<'a>(records: &[&'a Record], question: &Question<'_>) -> Vec<Point<'a>> {
    let mut seen = BTreeSet::new();
    let mut points = Vec::new();
    let ours = records.iter().filter(|record| record.header.experiment == question.experiment);
    for &record in ours {
        for cell in record.cells.iter().filter(|cell| (question.is_about)(record, cell)) {
            let Some(size_bytes) = number(&cell.params, question.size) else { continue };
            let key = identity(&cell.params);
            if seen.contains(&key) {
                continue;
            }
            let (mode, other) = (question.mode, question.other);
            let found = versus(record, cell.cell, mode, other, question.metric);
            if let Some(versus) = found {
                seen.insert(key);
                points.push(Point { record, cell, size_bytes, versus });
            }
        }
    }
    points.sort_by_key(|point| point.size_bytes);
    points
}

/// The smallest size from which on every point wins; none if the largest ones do not.
pub fn wins_from(points: &[Point<'_>]) -> Option<u64> {
    let sized = |point: &Point<'_>| (point.size_bytes, point.verdict() == Verdict::Win);
    stats::wins_from(&points.iter().map(sized).collect::<Vec<_>>()).map(|(bytes, _)| bytes)
}

/// What some cells come to together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gain {
    /// The ratio: of one cell its own, of several their geometric mean.
    pub ratio: f64,
    /// Its 95 % interval: low, high.
    pub ci: (f64, f64),
    pub cells: usize,
    /// The cell that gains least.
    pub least: (f64, (f64, f64)),
    /// The cell that gains most.
    pub most: (f64, (f64, f64)),
}

impl Gain {
    /// The gain over some points; none without points.
    pub(super) fn of<'p, 'a: 'p>(points: impl IntoIterator<Item = &'p Point<'a>>) -> Option<Gain> {
        Gain::over(points.into_iter().map(|point| &point.versus))
    }

    /// The gain over some results; none without results.
    pub(super) fn over<'v>(all: impl IntoIterator<Item = &'v Versus>) -> Option<Gain> {
        let all: Vec<&Versus> = all.into_iter().collect();
        let by_ratio = |a: &&&Versus, b: &&&Versus| a.ratio.total_cmp(&b.ratio);
        let (least, most) = (all.iter().min_by(by_ratio)?, all.iter().max_by(by_ratio)?);
        let (ratio, ci) = geomean(all.iter().copied())?;
        let end = |one: &Versus| (one.ratio, one.ci);
        Some(Gain { ratio, ci, cells: all.len(), least: end(least), most: end(most) })
    }

    #[must_use]
    pub fn verdict(&self) -> Verdict {
        Verdict::from_interval(self.ci)
    }

    /// What to do where nothing is to be set.
    pub(super) fn without_setting(&self) -> Decision {
        match self.verdict() {
            Verdict::Loss => Decision::Leave,
            Verdict::Unresolved => Decision::Unresolved,
            Verdict::Win | Verdict::Equal => Decision::AsItIs,
        }
    }
}

/// How points came out, in words: `3 win, 1 loses (worst 0.89x (0.82-0.91) at 48 MiB in flight)`.
pub fn tally(points: &[&Point<'_>], unit: &str) -> String {
    let tally: Tally = points.iter().map(|point| point.verdict()).collect();
    let mut parts = tally.words([
        ("wins", "win"),
        ("loses", "lose"),
        ("makes no difference", "make no difference"),
        ("is unresolved", "are unresolved"),
    ]);
    let worst = worst(points).map(|worst| format!(" (worst {})", at(worst, unit)));
    parts[1] = parts[1].take().map(|lost| lost + &worst.unwrap_or_default());
    parts.into_iter().flatten().collect::<Vec<String>>().join(", ")
}

/// Of those that lose, the one that loses most.
fn worst<'p, 'a>(points: &[&'p Point<'a>]) -> Option<&'p Point<'a>> {
    let losses = points.iter().copied().filter(|point| point.verdict() == Verdict::Loss);
    losses.min_by(|a, b| a.versus.ratio.total_cmp(&b.versus.ratio))
}

/// `0.89x (0.82-0.91) at 48 MiB in flight`
fn at(point: &Point<'_>, unit: &str) -> String {
    let figure = figure(point.versus.ratio, point.versus.ci);
    format!("{figure} at {} {unit}", Bytes(point.size_bytes))
}

/// How many points lose, and the worst of them: `Of 12 cells 1 loses, 0.89x (0.82-0.91) at 48 MiB
/// in flight.`
pub fn losses(points: &[&Point<'_>], unit: &str) -> String {
    let of = cells(points.len());
    let many = points.iter().filter(|point| point.verdict() == Verdict::Loss).count();
    match (worst(points).map(|worst| at(worst, unit)), many) {
        (None, _) => format!("Of {of} none loses."),
        (Some(worst), 1) => format!("Of {of} 1 loses, {worst}."),
        (Some(worst), many) => format!("Of {of} {many} lose, the worst {worst}."),
    }
}

/// The ids of the points' records, each once, newest first.
pub fn ids(points: &[&Point<'_>]) -> Vec<String> {
    let mut headers: Vec<_> = points.iter().map(|point| &point.record.header).collect();
    headers.sort_by_key(|header| std::cmp::Reverse(header.started_unix_ns));
    let mut ids: Vec<String> = headers.into_iter().map(|header| header.id.clone()).collect();
    ids.dedup();
    ids
}

/// A size as an argument: `64KiB`, bare bytes where no unit divides it.
pub fn argument(bytes: u64) -> String {
    Bytes(bytes).argument()
}

pub fn cells(number: usize) -> String {
    count(number, "cell")
}
