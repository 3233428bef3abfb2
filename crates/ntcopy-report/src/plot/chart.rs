//! What is to be drawn, before it has a size in pixels.

use ntcopy_bench::record::Record;

use super::slot;
use crate::model::{Group, ModeView};
use crate::text;

/// A plot over the bytes in flight, on a logarithmic axis.
#[derive(Debug)]
pub(crate) struct Chart {
    /// What it shows, in a sentence, for those who cannot see it.
    pub title: String,
    /// The vertical axis.
    pub y_label: &'static str,
    /// The vertical axis, from and to.
    pub y_range: (f64, f64),
    /// A horizontal line of reference.
    pub reference: Option<f64>,
    /// A line a mode.
    pub lines: Vec<Line>,
    /// Sizes of caches.
    pub marks: Vec<Mark>,
}

/// One mode's line.
#[derive(Debug)]
pub(crate) struct Line {
    /// Its look.
    pub slot: usize,
    /// Its points, by bytes in flight.
    pub points: Vec<Point>,
}

/// One point with its interval.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Point {
    /// Bytes in flight.
    pub bytes: u64,
    /// The value.
    pub value: f64,
    /// Its 95 % interval.
    pub ci: Option<(f64, f64)>,
}

/// A size to be marked on the axis.
#[derive(Debug)]
pub(crate) struct Mark {
    /// The size.
    pub bytes: u64,
    /// Its name.
    pub label: String,
    /// Whether it is the last-level cache.
    pub is_last_level: bool,
}

impl Chart {
    /// Smallest and largest bytes in flight. None without two different ones: no axis.
    pub fn x_bounds(&self) -> Option<(u64, u64)> {
        let all = || self.lines.iter().flat_map(|line| &line.points).map(|point| point.bytes);
        let (low, high) = (all().min()?, all().max()?);
        (low > 0 && low < high).then_some((low, high))
    }
}

/// Throughput in Gbit/s against bytes in flight, a line a mode. None where there is no line.
pub(crate) fn crossover(record: &Record, group: &Group<'_>) -> Option<Chart> {
    let scale = 8.0 / 1e9;
    let lines = lines(group, |mode| {
        let rate = mode.rate?;
        let ci = rate.ci.map(|(low, high)| (low * scale, high * scale));
        Some((rate.median * scale, ci))
    });
    let highest = tops(&lines).fold(0.0, f64::max);
    finish(Chart {
        title: format!("Throughput in Gbit/s against bytes in flight; {}", group.heading),
        y_label: "Gbit/s",
        // Room above for the names of the marks.
        y_range: (0.0, highest * 1.22),
        reference: None,
        lines,
        marks: marks(record),
    })
}

/// Each mode's throughput by the baseline's, with the line at 1.
pub(crate) fn ratios(record: &Record, group: &Group<'_>) -> Option<Chart> {
    let lines = lines(group, |mode| {
        let result = mode.result.as_ref()?;
        Some((result.ratio, Some(result.ci)))
    });
    let highest = tops(&lines).fold(1.0, f64::max);
    let lowest = bottoms(&lines).fold(1.0, f64::min);
    let room = (highest - lowest).max(0.1);
    finish(Chart {
        title: format!(
            "Throughput of each mode divided by that of {}, against bytes in flight; {}",
            record.header.baseline, group.heading
        ),
        y_label: "times the baseline",
        y_range: ((lowest - room * 0.1).max(0.0), highest + room * 0.25),
        reference: Some(1.0),
        lines,
        marks: marks(record),
    })
}

fn finish(chart: Chart) -> Option<Chart> {
    let finite = chart.y_range.0.is_finite() && chart.y_range.1.is_finite();
    (finite && chart.y_range.0 < chart.y_range.1 && chart.x_bounds().is_some()).then_some(chart)
}

fn lines(
    group: &Group<'_>,
    value: impl Fn(&ModeView<'_>) -> Option<(f64, Option<(f64, f64)>)>,
) -> Vec<Line> {
    let count = group.cells.first().map_or(0, |cell| cell.modes.len());
    let line = |index: usize| {
        let points: Vec<Point> = group
            .cells
            .iter()
            .filter_map(|cell| {
                let (value, ci) = value(&cell.modes[index])?;
                Some(Point { bytes: cell.in_flight_bytes?, value, ci })
            })
            .filter(|point| point.value.is_finite())
            .collect();
        let mode = group.cells[0].modes[index].mode;
        Line { slot: slot(mode, index), points }
    };
    (0..count).map(line).filter(|line| !line.points.is_empty()).collect()
}

fn tops(lines: &[Line]) -> impl Iterator<Item = f64> {
    let points = lines.iter().flat_map(|line| &line.points);
    points.map(|point| point.ci.map_or(point.value, |(_, high)| high.max(point.value)))
}

fn bottoms(lines: &[Line]) -> impl Iterator<Item = f64> {
    let points = lines.iter().flat_map(|line| &line.points);
    points.map(|point| point.ci.map_or(point.value, |(low, _)| low.min(point.value)))
}

/// The caches from level 2 on that one CPU sees. Level 1 is never where a send's crossover is.
fn marks(record: &Record) -> Vec<Mark> {
    let machine = &record.machine;
    let inner = machine.caches.iter().filter(|cache| {
        cache.level >= 2 && cache.kind != "instruction" && cache.size_bytes < machine.llc_bytes
    });
    let mut marks: Vec<Mark> = inner
        .map(|cache| Mark {
            bytes: cache.size_bytes,
            label: format!("L{} {}", cache.level, text::about_size(cache.size_bytes)),
            is_last_level: false,
        })
        .collect();
    if machine.llc_bytes > 0 {
        marks.push(Mark {
            bytes: machine.llc_bytes,
            label: format!("last-level cache {}", text::about_size(machine.llc_bytes)),
            is_last_level: true,
        });
    }
    marks
}
