//! The figures that advice rests on: cells of several records, by one size.

use std::collections::BTreeSet;
use std::fmt;

use serde::Serialize;

use super::Decision;
use crate::compare::identity;
use crate::record::{Cell, ExperimentKind, Record};
pub(super) use crate::record::{number, word};
use crate::stats::{self, Tally, Verdict, Versus, geomean, versus};
use crate::units::{Bytes, Ratio, count};

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
        self.versus.verdict()
    }

    pub fn number(&self, name: &str) -> Option<u64> {
        number(&self.cell.params, name)
    }
}

/// What is held against what, and by which size.
pub struct Question<'q> {
    pub experiment: ExperimentKind,
    pub mode: &'q str,
    pub other: &'q str,
    pub metric: &'static str,
    pub size: &'q str,
}

/// The results in the cells that it is about, ascending by size. Records come newest first; of one
/// that was measured twice, the newest counts.
pub fn points<'a>(
    records: &[&'a Record],
    question: &Question<'_>,
    is_about: &dyn Fn(&Record, &Cell) -> bool,
) -> Vec<Point<'a>> {
    let mut seen = BTreeSet::new();
    let mut points = Vec::new();
    let ours = records.iter().filter(|record| record.header.experiment == question.experiment);
    for &record in ours {
        for cell in record.cells.iter().filter(|cell| is_about(record, cell)) {
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

/// The points below a size, and those from it on, of some that ascend.
pub fn split<'p, 'a>(points: &'p [Point<'a>], from: u64) -> (&'p [Point<'a>], &'p [Point<'a>]) {
    points.split_at(points.partition_point(|point| point.size_bytes < from))
}

/// What some cells come to together.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Gain {
    /// Of one cell its own ratio, of several their geometric mean.
    #[serde(flatten)]
    pub all: Ratio,
    pub verdict: Verdict,
    pub cells: usize,
    /// The cell that gains least.
    pub least: Ratio,
    /// The cell that gains most.
    pub most: Ratio,
}

impl fmt::Display for Gain {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.all, out)
    }
}

impl Gain {
    /// The gain over some points; none without points.
    pub(super) fn of(points: &[Point<'_>]) -> Option<Gain> {
        Gain::over(points.iter().map(|point| &point.versus))
    }

    /// The gain over some results; none without results.
    pub(super) fn over<'v>(all: impl IntoIterator<Item = &'v Versus>) -> Option<Gain> {
        let all: Vec<&Versus> = all.into_iter().collect();
        let by_ratio = |a: &&&Versus, b: &&&Versus| a.ratio.total_cmp(&b.ratio);
        let (least, most) = (all.iter().min_by(by_ratio)?, all.iter().max_by(by_ratio)?);
        let (least, most) = (least.result(), most.result());
        let mean = geomean(all.iter().copied())?;
        let verdict = Verdict::from_interval(mean.ci);
        Some(Gain { all: mean, verdict, cells: all.len(), least, most })
    }

    /// What to do where nothing is to be set.
    pub(super) fn without_setting(&self) -> Decision {
        match self.verdict {
            Verdict::Loss => Decision::Leave,
            Verdict::Unresolved => Decision::Unresolved,
            Verdict::Win | Verdict::Equal => Decision::AsItIs,
        }
    }
}

/// How points came out, in words: `3 win, 1 loses (worst 0.89x (0.82-0.91) at 48 MiB in flight)`.
pub fn tally(points: &[Point<'_>], unit: &str) -> String {
    let tally: Tally = points.iter().map(Point::verdict).collect();
    let worst = worst(points, unit).map_or(String::new(), |worst| format!(" (worst {worst})"));
    let [loses, lose] = ["loses", "lose"].map(|word| format!("{word}{worst}"));
    tally.words([
        ("wins", "win"),
        (&loses, &lose),
        ("makes no difference", "make no difference"),
        ("is unresolved", "are unresolved"),
    ])
}

/// Those that lose.
pub fn lost<'p, 'a>(points: &'p [Point<'a>]) -> impl Iterator<Item = &'p Point<'a>> {
    points.iter().filter(|point| point.verdict() == Verdict::Loss)
}

/// The one that loses most: `0.89x (0.82-0.91) at 48 MiB in flight`.
fn worst(points: &[Point<'_>], unit: &str) -> Option<String> {
    let worst = lost(points).min_by(|a, b| a.versus.ratio.total_cmp(&b.versus.ratio))?;
    Some(format!("{} at {} {unit}", worst.versus.result(), Bytes(worst.size_bytes)))
}

/// How many points lose, and the worst of them: `Of 12 cells 1 loses, 0.89x (0.82-0.91) at 48 MiB
/// in flight.`
pub fn losses(points: &[Point<'_>], unit: &str) -> String {
    let of = cells(points.len());
    match (worst(points, unit), lost(points).count()) {
        (None, _) => format!("Of {of} none loses."),
        (Some(worst), 1) => format!("Of {of} 1 loses, {worst}."),
        (Some(worst), many) => format!("Of {of} {many} lose, the worst {worst}."),
    }
}

/// The ids of the points' records, each once, newest first.
pub fn ids(points: &[Point<'_>]) -> Vec<String> {
    let mut headers: Vec<_> = points.iter().map(|point| &point.record.header).collect();
    headers.sort_by_key(|header| std::cmp::Reverse(header.started_unix_ns));
    let mut ids: Vec<String> = headers.into_iter().map(|header| header.id.clone()).collect();
    ids.dedup();
    ids
}

pub fn cells(number: usize) -> String {
    count(number, "cell")
}
