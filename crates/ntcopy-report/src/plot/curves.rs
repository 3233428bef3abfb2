//! Charts of what tables show: a figure along the axis in which cells differ, and latencies by
//! percentile.

use ntcopy_judge::Judged;
use ntcopy_judge::params::{axes, cell_words, group_words};
use ntcopy_judge::stats::{Better, THROUGHPUT, metric};
use ntcopy_record::lists::grouped;
use ntcopy_record::{Cell, number};

use super::chart::{self, Axis, Chart, Line, Point, around_one, rarity};
use super::slot;
use crate::text;
use crate::view::{Curve, View, What};

/// A chart with the words around it.
#[derive(Debug)]
pub(crate) struct Built {
    /// What it is of, and how to read it, in one line.
    pub caption: String,
    pub chart: Chart,
}

/// Every chart of a record.
pub(crate) fn all(record: &Judged, views: &[View]) -> Vec<Built> {
    let mut all = Vec::new();
    for view in views {
        let cells: Vec<&Cell> = record.cells.iter().filter(|cell| (view.is_of)(cell)).collect();
        for curve in &view.curves {
            match *curve {
                Curve::Along(name) => {
                    let Some(metric) = metric(name) else { continue };
                    let how = match metric.better {
                        Better::More => "Higher is better.",
                        Better::Less => "Lower is better.",
                    };
                    let of = along(record, &cells, (&What::Figure(name), metric.unit));
                    all.extend(built(of, metric.words, how));
                }
                Curve::Ratios => {
                    let what = (&What::Ratio(THROUGHPUT), "times the baseline");
                    let of = along(record, &cells, what);
                    all.extend(built(
                        of,
                        "throughput relative to the baseline",
                        "Above 1 the mode wins.",
                    ));
                }
                Curve::ByPercentile(parts) => {
                    all.extend(cells.iter().filter_map(|cell| by_percentile(record, cell, parts)));
                }
            }
        }
    }
    all
}

fn built(charts: Vec<(String, Chart)>, title: &str, how: &str) -> impl Iterator<Item = Built> {
    charts.into_iter().map(move |(words, chart)| {
        let of = if words.is_empty() { words } else { format!(": {words}") };
        Built { caption: format!("{} {how}", text::sentence(&format!("{title}{of}"))), chart }
    })
}

/// A figure along the first axis of the cells: a chart for each group that differs in it alone, with
/// what the group has in common.
pub(crate) fn along(record: &Judged, cells: &[&Cell], what: (&What, &str)) -> Vec<(String, Chart)> {
    let Some(axis) = axes(&record.cells).first().copied() else { return Vec::new() };
    // What follows from the axis differs with it.
    let axes = [axis, "sockets", "side"];
    let axes = if axis == "connections" { &axes[..1] } else { &axes[..] };
    let charts = grouped(cells.iter().map(|cell| (group_words(&cell.params, axes), *cell)))
        .into_iter()
        .filter_map(|((words, _), cells)| Some((words, of_group(record, &cells, axis, what)?)));
    charts.collect()
}

fn of_group(
    record: &Judged,
    cells: &[&Cell],
    axis: &str,
    (what, unit): (&What, &str),
) -> Option<Chart> {
    let mut lines: Vec<Line> = Vec::new();
    for cell in cells {
        let Some(at) = number(&cell.params, axis).filter(|at| *at > 0) else { continue };
        for one in record.measured(cell) {
            let figure = what.figure(&one);
            let Some(value) = figure.value.filter(|value| value.is_finite() && *value > 0.0) else {
                continue;
            };
            put(&mut lines, one.mode, Point { at, value, ci: figure.ci });
        }
    }
    lines.iter_mut().for_each(|line| line.points.sort_by_key(|point| point.at));
    let name = axis.trim_end_matches("_bytes").replace('_', " ");
    let name = if axis == "in_flight_bytes" { "bytes in flight".to_owned() } else { name };
    let is_ratio = matches!(what, What::Ratio(_) | What::RelativeTo(..));
    let is_of_bytes = axis.ends_with("_bytes");
    let level = if axis == "in_flight_bytes" { 2 } else { 1 };
    fitted(Chart {
        axis: if is_of_bytes { Axis::Bytes(name.into()) } else { Axis::Count(name.into()) },
        is_log: false,
        y_label: unit.to_owned().into(),
        y_range: around_one(&lines),
        reference: is_ratio.then_some(1.0),
        lines,
        marks: if is_of_bytes { chart::marks(record, level) } else { Vec::new() },
    })
}

/// A point in the line of its mode.
fn put(lines: &mut Vec<Line>, mode: &str, point: Point) {
    match lines.iter_mut().find(|line| line.name == mode) {
        Some(line) => line.points.push(point),
        None => {
            let slot = slot(mode, lines.len()) % super::SLOTS;
            lines.push(Line { name: mode.to_owned(), slot, points: vec![point] });
        }
    }
}

fn by_percentile(record: &Judged, cell: &Cell, parts: &[f64]) -> Option<Built> {
    let mut lines = Vec::new();
    for one in record.measured(cell) {
        for part in parts {
            if let Some(ns) = one.quantile_ns(*part) {
                let at = rarity(100.0 * part);
                put(&mut lines, one.mode, Point { at, value: ns / 1e3, ci: None });
            }
        }
    }
    let chart = fitted(Chart {
        axis: Axis::Rarity,
        is_log: false,
        y_label: "us".into(),
        y_range: (0.0, 1.0),
        reference: None,
        lines,
        marks: Vec::new(),
    })?;
    let words = cell_words(&cell.params);
    Some(Built { caption: format!("Latency by percentile: {words}. Lower is better."), chart })
}

/// A chart whose values begin at 0 where they lie close together, and are logarithmic otherwise;
/// ratios close to 1 lie around it.
fn fitted(mut chart: Chart) -> Option<Chart> {
    let first = chart.reference;
    let high = chart::tops(&chart.lines).fold(first.unwrap_or(0.0), f64::max);
    let low = chart::bottoms(&chart.lines).fold(first.unwrap_or(f64::INFINITY), f64::min);
    if high < 5.0 * low {
        if first.is_none() {
            chart.y_range = (0.0, high * 1.22);
        }
        return chart::finish(chart);
    }
    // Room above for the names of the marks, however flat the lines are.
    let room = (high / low).powf(0.28).max(1.12);
    chart.is_log = true;
    chart.y_range = (low / room.powf(0.3), high * room);
    chart::finish(chart)
}
