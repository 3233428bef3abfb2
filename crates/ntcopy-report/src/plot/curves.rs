//! Charts of the experiments that are laid out in tables of ways.

mod waits;

use ntcopy_record::stats::{self, THROUGHPUT};
use ntcopy_record::{Cell, ExperimentKind, Record};

use super::chart::{self, Axis, Chart, Line, Point};
use crate::retention::hot::{self, Hot};
use crate::versus::{number, word};
use crate::{bulk, published, text};

pub(crate) use waits::{of_app, of_http, of_net, of_pingpong};

/// What is said below a chart that has lines of others.
const OF_OTHERS: &str = "Thin lines with hollow points are published figures, of other machines.";
/// What is said where the place of such a line on the axis is not known.
const LEVEL: &str = " They are level, since it is not stated where on the axis they lie.";

/// A chart with the words around it.
#[derive(Debug)]
pub(crate) struct Built {
    /// What it is of, and how to read it, in one line.
    pub caption: String,
    /// What else has to be known of it; may be empty.
    pub note: String,
    /// The chart.
    pub chart: Chart,
}

/// Letters of a caption that are one line where there is room.
const CAPTION_LETTERS: usize = 96;

impl Built {
    /// A chart of something under a heading, how to read it, and what else has to be known. A
    /// heading that would make the caption longer than a line goes below the chart.
    fn new(what: &str, heading: &str, (how, note): (&str, &str), chart: Chart) -> Built {
        let whole = format!("{what}: {heading}. {how}");
        if whole.chars().count() <= CAPTION_LETTERS {
            return Built { caption: whole, note: note.to_owned(), chart };
        }
        let heading = text::sentence(heading);
        let note = if note.is_empty() { heading } else { format!("{heading} {note}") };
        Built { caption: format!("{what}. {how}"), note, chart }
    }
}

/// Every chart of a record of copies, fills, pages or walks.
pub(crate) fn by_size(record: &Record) -> Vec<Built> {
    let mut all = Vec::new();
    for (heading, cells) in groups(record, |cell| bulk::group(&cell.params)) {
        all.extend(rates(record, &heading, &cells));
        all.extend(ratios(record, &heading, &cells));
    }
    all.extend(published_rates(record));
    all
}

/// What a line of a hot set takes, by the hot set, where a record has several beside the same.
pub(crate) fn of_hot_sets(record: &Record) -> Vec<Built> {
    let mut groups: Vec<(String, Vec<Hot>)> = Vec::new();
    for hot in hot::all(record) {
        match groups.iter_mut().find(|(beside, _)| *beside == hot.beside) {
            Some((_, sets)) => sets.push(hot),
            None => groups.push((hot.beside.clone(), vec![hot])),
        }
    }
    groups.iter().filter_map(|(beside, sets)| by_hot_set(record, beside, sets)).collect()
}

fn by_hot_set(record: &Record, beside: &str, sets: &[Hot]) -> Option<Built> {
    let mut lines: Vec<Line> = Vec::new();
    for hot in sets {
        for (index, (mode, ns)) in hot.lines.iter().enumerate() {
            let point = Point { at: hot.bytes, value: *ns, ci: None };
            match lines.iter_mut().find(|line| line.name == *mode) {
                Some(line) => line.points.push(point),
                None => lines.push(ours(mode.clone(), super::slot(mode, index), vec![point])),
            }
        }
    }
    lines.iter_mut().for_each(|line| line.points.sort_by_key(|point| point.at));
    let axis = (Axis::Bytes("hot set".into()), "ns per line");
    let chart = fitted(axis, None, lines, chart::marks(record, 1))?;
    let how = "Lower is better.";
    Some(Built::new("Time of a line by the hot set", &format!("beside {beside}"), (how, ""), chart))
}

/// Lines of others alone: beside ours, on another machine's scale, they would flatten them.
fn panel(axis: (Axis, &'static str), caption: &str, lines: Vec<Line>) -> Option<Built> {
    let mut lines = lines;
    lines.iter_mut().for_each(|line| line.points.retain(|point| point.value > 0.0));
    let chart = around(axis, None, lines, Vec::new())?;
    let note = "Published by others, measured on other machines.".to_owned();
    Some(Built { caption: caption.to_owned(), note, chart })
}

/// Cells with what they have in common, in the order in which they are met.
fn groups(record: &Record, name: impl Fn(&Cell) -> String) -> Vec<(String, Vec<&Cell>)> {
    let mut groups: Vec<(String, Vec<&Cell>)> = Vec::new();
    for cell in &record.cells {
        let name = name(cell);
        match groups.iter_mut().find(|(known, _)| *known == name) {
            Some((_, cells)) => cells.push(cell),
            None => groups.push((name, vec![cell])),
        }
    }
    groups
}

/// A line of our own.
fn ours(name: String, slot: usize, mut points: Vec<Point>) -> Line {
    points.retain(|point| point.at > 0 && point.value.is_finite());
    points.sort_by_key(|point| point.at);
    Line { name, slot: slot % super::SLOTS, is_published: false, points }
}

/// A line that others published.
fn theirs(name: String, slot: usize, points: impl Iterator<Item = (u64, f64)>) -> Line {
    let points = points.map(|(at, value)| Point { at, value, ci: None });
    Line { is_published: true, ..ours(name, slot, points.collect()) }
}

/// A figure that others published without its place on the axis: level over ours.
fn level(name: String, slot: usize, value: f64, ours: &[Line]) -> Line {
    let mut places: Vec<u64> =
        ours.iter().flat_map(|line| &line.points).map(|point| point.at).collect();
    places.sort_unstable();
    places.dedup();
    theirs(name, slot, places.into_iter().map(|at| (at, value)))
}

/// A chart around its points: from 0 where they lie close together, and logarithmic otherwise.
fn fitted(
    (axis, y_label): (Axis, &'static str),
    reference: Option<f64>,
    mut lines: Vec<Line>,
    marks: Vec<chart::Mark>,
) -> Option<Chart> {
    lines.iter_mut().for_each(|line| line.points.retain(|point| point.value > 0.0));
    lines.retain(|line| !line.points.is_empty());
    if lines.iter().all(|line| line.is_published) {
        return None;
    }
    around((axis, y_label), reference, lines, marks)
}

fn around(
    (axis, y_label): (Axis, &'static str),
    reference: Option<f64>,
    lines: Vec<Line>,
    marks: Vec<chart::Mark>,
) -> Option<Chart> {
    let with_reference = |first: f64| reference.unwrap_or(first);
    let high = chart::tops(&lines).fold(with_reference(0.0), f64::max);
    let low = chart::bottoms(&lines).fold(with_reference(f64::INFINITY), f64::min);
    if reference.is_none() && high < 5.0 * low {
        let (is_log, y_range) = (false, (0.0, high * 1.22));
        return chart::finish(Chart {
            axis,
            is_log,
            y_label: y_label.into(),
            y_range,
            reference,
            lines,
            marks,
        });
    }
    // Room above for the names of the marks, however flat the lines are.
    let room = (high / low).powf(0.28).max(1.12);
    let y_range = (low / room.powf(0.3), high * room);
    chart::finish(Chart {
        axis,
        is_log: true,
        y_label: y_label.into(),
        y_range,
        reference,
        lines,
        marks,
    })
}

fn size(cell: &Cell) -> u64 {
    number(&cell.params, "size_bytes").unwrap_or(0)
}

/// Every way against the size.
fn rates(record: &Record, heading: &str, cells: &[&Cell]) -> Option<Built> {
    let is_fork = cells.iter().any(|cell| bulk::is_fork(&cell.params));
    let line = |(index, mode): (usize, &str)| {
        let point = |cell: &&Cell| {
            let rate = stats::mode_median(record, cell.cell, mode, THROUGHPUT)?;
            let value = if is_fork { size(cell) as f64 / rate * 1e6 } else { rate / 1e9 };
            Some(Point { at: size(cell), value, ci: None })
        };
        ours(mode.to_owned(), index, cells.iter().filter_map(point).collect())
    };
    let lines: Vec<Line> = stats::modes(record).into_iter().enumerate().map(line).collect();
    let (what, unit) =
        if is_fork { ("Time of a fork", "us a fork") } else { ("Throughput", "GB/s") };
    let heading = heading.trim_end_matches(", GB/s");
    let chart = fitted((Axis::Bytes("size".into()), unit), None, lines, chart::marks(record, 1))?;
    let note = if record.header.experiment == ExperimentKind::Memcpy {
        "A copy touches twice its size, so that a cache is full at half of its mark."
    } else {
        ""
    };
    let how = if is_fork { "Lower is better." } else { "Higher is better." };
    Some(Built::new(&format!("{what} by size"), heading, (how, note), chart))
}

/// Others' throughput: fills by one thread, with normal stores and past the cache.
fn published_rates(record: &Record) -> Option<Built> {
    let is_alone = |cell: &Cell| number(&cell.params, "threads").is_none_or(|n| n == 1);
    let is_of_fills = record.header.experiment == ExperimentKind::Memset;
    if !is_of_fills || !record.cells.iter().any(is_alone) {
        return None;
    }
    let lines = published::fills().into_iter().enumerate().flat_map(|(index, fills)| {
        let line = |way: &str, slot, rates: Vec<(u64, f64)>| {
            theirs(format!("published: {way}, {}", fills.cpu), slot, rates.into_iter())
        };
        let of = |rate: fn(&(u64, f64, f64)) -> f64| {
            fills.rows.iter().map(|row| (row.0 << 20, rate(row))).collect()
        };
        let slot = 2 * index;
        [
            line(&fills.temporal, slot, of(|row| row.1)),
            line("x86-64-movnt", slot + 1, of(|row| row.2)),
        ]
    });
    panel(
        (Axis::Bytes("size".into()), "GB/s"),
        "Published fills: throughput by size.",
        lines.collect(),
    )
}

/// Which ways a chart of ratios sets against each other: the way, the other, and its look.
fn pairs(record: &Record) -> Vec<(&str, &str)> {
    let modes = stats::modes(record);
    let baseline = record.header.baseline.as_str();
    let wanted: &[(&str, &str)] = match record.header.experiment {
        ExperimentKind::Memset => {
            &[("x86-64-movnt", "x86-64-stosb"), ("x86-64-movnt", "x86-64-stosq"), ("ours", "libc")]
        }
        ExperimentKind::Memcpy => &[("ours", "libc"), ("movnti", "libc")],
        _ => return modes.into_iter().filter(|m| *m != baseline).map(|m| (m, baseline)).collect(),
    };
    let has = |mode: &str| modes.contains(&mode);
    wanted.iter().copied().filter(|(way, other)| has(way) && has(other)).collect()
}

/// One way by another against the size, with what others published of the same.
fn ratios(record: &Record, heading: &str, cells: &[&Cell]) -> Option<Built> {
    let line = |(index, (way, other)): (usize, (&str, &str))| {
        let point = |cell: &&Cell| {
            let versus = stats::versus(record, cell.cell, way, other, THROUGHPUT)?;
            Some(Point { at: size(cell), value: versus.ratio, ci: Some(versus.ci) })
        };
        ours(format!("{way} by {other}"), index, cells.iter().filter_map(point).collect())
    };
    let mut lines: Vec<Line> = pairs(record).into_iter().enumerate().map(line).collect();
    let (published, also) = published_ratios(record, cells, &lines);
    lines.extend(published);
    let heading = heading.trim_end_matches(", GB/s");
    let chart = fitted(
        (Axis::Bytes("size".into()), "times the other"),
        Some(1.0),
        lines,
        chart::marks(record, 1),
    )?;
    let how = "Above 1 the first is faster.";
    Some(Built::new("One way by another", heading, (how, &also), chart))
}

/// Others' ratios, and what has to be said of them.
fn published_ratios(record: &Record, cells: &[&Cell], ours: &[Line]) -> (Vec<Line>, String) {
    let from = ours.len();
    let is_fork = cells.iter().any(|cell| bulk::is_fork(&cell.params));
    let is_sum = cells.iter().any(|cell| word(&cell.params, "task") == Some("sum"));
    let (lines, level) = match record.header.experiment {
        ExperimentKind::Memset => (published_fills(from), ""),
        ExperimentKind::Pages if is_fork => (published_loops(from), ""),
        ExperimentKind::Order if is_sum => (published_walks(ours), LEVEL),
        _ => return (Vec::new(), String::new()),
    };
    (lines, format!("{OF_OTHERS}{level}"))
}

fn published_fills(from: usize) -> Vec<Line> {
    let fills = published::fills().into_iter().enumerate().map(|(index, fills)| {
        let name = format!("published: movnt by {}, {}", fills.temporal, fills.cpu);
        let points = fills.rows.iter().map(|(mib, normal, nt)| (mib << 20, nt / normal));
        theirs(name, from + index, points)
    });
    fills.collect()
}

/// A loop of 2004 with non-temporal stores by one with `rep`, and where there was a third, which
/// copies past the cache and clears into it, that one too.
fn published_loops(from: usize) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for pages in published::pages() {
        let name =
            |what: &str| format!("published: {what}, {}_page(), {}", pages.operation, pages.cpu);
        let nt = pages.rows.iter().map(|(kib, rep, _, nt)| (kib << 10, rep / nt));
        lines.push(theirs(name("NT by rep"), from + lines.len(), nt));
        let mixed = pages
            .mixed
            .iter()
            .filter_map(|(kib, mixed)| Some((kib << 10, pages.rep_s(*kib)? / mixed)));
        lines.push(theirs(name("NT copies and normal clears by rep"), from + lines.len(), mixed));
    }
    lines.retain(|line| !line.points.is_empty());
    lines
}

fn published_walks(ours: &[Line]) -> Vec<Line> {
    let walks = published::walks().into_iter().enumerate().map(|(index, walks)| {
        let name = format!("published: column by row, CPU {}", walks.cpu);
        level(name, ours.len() + index, walks.row_major_ms / walks.column_major_ms, ours)
    });
    walks.collect()
}
