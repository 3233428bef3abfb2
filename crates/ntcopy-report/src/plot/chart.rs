//! What is to be drawn, before it has a size.

use std::borrow::Cow;

use ntcopy_judge::Judged;

use crate::text;

/// A plot over a logarithmic axis.
#[derive(Debug)]
pub struct Chart {
    pub axis: Axis,
    /// Whether the vertical axis is logarithmic as well.
    pub is_log: bool,
    pub y_label: Cow<'static, str>,
    pub y_range: (f64, f64),
    pub reference: Option<f64>,
    pub lines: Vec<Line>,
    pub marks: Vec<Mark>,
}

/// What a horizontal axis counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Axis {
    /// Bytes, named so.
    Bytes(Cow<'static, str>),
    /// A number of things, named so.
    Count(Cow<'static, str>),
    /// Percentiles, placed by how rare what lies beyond them is: one in 2, in 10, in 100.
    Rarity,
}

impl Axis {
    pub fn name(&self) -> &str {
        match self {
            Axis::Bytes(name) | Axis::Count(name) => name,
            Axis::Rarity => "percentile",
        }
    }

    /// A place on it as text.
    pub fn label(&self, at: f64) -> String {
        match self {
            Axis::Bytes(_) => text::about_size(at as u64),
            Axis::Count(_) => text::thousands(at),
            Axis::Rarity => format!("p{}", (1e7 * (1.0 - 1.0 / at)).round() / 1e5),
        }
    }
}

/// Where a percentile lies on [`Axis::Rarity`].
pub fn rarity(percentile: f64) -> u64 {
    (100.0 / (100.0 - percentile)).round() as u64
}

#[derive(Debug)]
pub struct Line {
    pub name: String,
    pub slot: usize,
    pub points: Vec<Point>,
}

/// One point with its interval.
#[derive(Debug, Clone, Copy)]
pub struct Point {
    /// The place on the axis.
    pub at: u64,
    pub value: f64,
    pub ci: Option<(f64, f64)>,
}

#[derive(Debug)]
pub struct Mark {
    pub bytes: u64,
    pub label: String,
    pub kind: MarkKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MarkKind {
    Cache,
    LastLevel,
    /// A mode wins everywhere to the right of it.
    Crossing,
}

impl Chart {
    /// The axis's smallest and largest place. None without two different ones: no axis.
    pub fn x_bounds(&self) -> Option<(u64, u64)> {
        let all = || self.lines.iter().flat_map(|line| &line.points).map(|point| point.at);
        let (low, high) = (all().min()?, all().max()?);
        (low > 0 && low < high).then_some((low, high))
    }

    /// The places of all lines, each once.
    pub fn places(&self) -> Vec<u64> {
        let points = self.lines.iter().flat_map(|line| &line.points);
        let mut places: Vec<u64> = points.map(|point| point.at).collect();
        places.sort_unstable();
        places.dedup();
        places
    }
}

/// A range from below the lowest ratio to above the highest, with 1 in it and room for the names of
/// the marks.
pub fn around_one(lines: &[Line]) -> (f64, f64) {
    let highest = tops(lines).fold(1.0, f64::max);
    let lowest = bottoms(lines).fold(1.0, f64::min);
    let room = (highest - lowest).max(0.1);
    ((lowest - room * 0.1).max(0.0), highest + room * 0.25)
}

/// A chart that can be drawn, or none.
pub fn finish(chart: Chart) -> Option<Chart> {
    let finite = chart.y_range.0.is_finite() && chart.y_range.1.is_finite();
    (finite && chart.y_range.0 < chart.y_range.1 && chart.x_bounds().is_some()).then_some(chart)
}

/// The upper ends of the points and their intervals.
pub fn tops(lines: &[Line]) -> impl Iterator<Item = f64> {
    let points = lines.iter().flat_map(|line| &line.points);
    points.map(|point| point.ci.map_or(point.value, |(_, high)| high.max(point.value)))
}

/// The lower ends of the points and their intervals.
pub fn bottoms(lines: &[Line]) -> impl Iterator<Item = f64> {
    let points = lines.iter().flat_map(|line| &line.points);
    points.map(|point| point.ci.map_or(point.value, |(low, _)| low.min(point.value)))
}

/// The caches from a level on that one CPU sees. Level 1 is never where a send's crossover is.
pub fn marks(record: &Judged, from_level: u8) -> Vec<Mark> {
    let machine = &record.machine;
    let inner = machine.caches.iter().filter(|cache| {
        cache.level >= from_level
            && cache.kind != "instruction"
            && cache.size_bytes < machine.llc_bytes
    });
    let mut marks: Vec<Mark> = inner
        .map(|cache| Mark {
            bytes: cache.size_bytes,
            label: format!("L{} {}", cache.level, text::about_size(cache.size_bytes)),
            kind: MarkKind::Cache,
        })
        .collect();
    if machine.llc_bytes > 0 {
        marks.push(Mark {
            bytes: machine.llc_bytes,
            label: format!("last-level cache {}", text::about_size(machine.llc_bytes)),
            kind: MarkKind::LastLevel,
        });
    }
    marks
}
