//! Makes a panel of a picture from a record and what the index says of a chart.

use ntcopy_record::stats::{PER_CPU, THROUGHPUT, WALKS, mode_median, versus};
use ntcopy_record::{Cell, Record};

use super::Error;
use super::index::{self, ChartSpec};
use super::svg::{Body, Group, Line, Panel};
use crate::text;
use crate::versus::{number, word};

/// Bytes of a line, the unit of a walk.
const LINE_BYTES: u64 = 64;

/// The panel.
pub(super) fn panel(record: &Record, spec: &ChartSpec) -> Result<Panel, Error> {
    let cells = index::cells(record, &spec.cells)?;
    let (unit, body) = match &spec.along {
        Some(along) => (unit(spec), lines(record, spec, along, &cells)),
        None => ("ns a line of the hot set".to_owned(), bars(record, spec, &cells)),
    };
    if body.is_empty() {
        let what = format!("record {}: chart '{}' shows nothing", record.header.id, spec.title);
        return Err(Error::Index(what));
    }
    Ok(Panel { title: spec.title.clone(), unit, body })
}

fn unit(spec: &ChartSpec) -> String {
    match (&spec.by, spec.metric.as_str()) {
        (Some(by), _) => {
            let known = spec.lines.iter().find(|(mode, _)| mode == by);
            format!("speed relative to {}", known.map_or(by.as_str(), |(_, name)| name))
        }
        (None, THROUGHPUT) => "GB/s".to_owned(),
        (None, PER_CPU) => "GB for a CPU second".to_owned(),
        (None, other) => format!("10^9 {other}"),
    }
}

fn lines(record: &Record, spec: &ChartSpec, along: &str, cells: &[&Cell]) -> Body {
    let at = |cell: &Cell| number(&cell.params, along);
    let value = |cell: &Cell, mode: &str| match &spec.by {
        Some(by) if by == mode => Some(1.0),
        Some(by) => Some(versus(record, cell.cell, mode, by, &spec.metric)?.ratio),
        None => Some(mode_median(record, cell.cell, mode, &spec.metric)? / 1e9),
    };
    let line = |(mode, name): &(String, String)| {
        let point = |cell: &&Cell| Some((at(cell)?, value(cell, mode)?));
        let mut points: Vec<(u64, f64)> = cells.iter().filter_map(point).collect();
        points.sort_by_key(|(at, _)| *at);
        Line { name: name.clone(), points }
    };
    Body::Lines {
        name: spec.name.clone().unwrap_or_else(|| along.replace('_', " ")),
        is_bytes: along.ends_with("_bytes"),
        is_ratio: spec.by.is_some(),
        lines: spec.lines.iter().map(line).collect(),
    }
}

/// A group a cell, a bar a mode: nanoseconds that a victim takes for a line of its hot set.
fn bars(record: &Record, spec: &ChartSpec, cells: &[&Cell]) -> Body {
    let group = |cell: &&Cell| {
        let lines = number(&cell.params, "pass_bytes")
            .or_else(|| number(&cell.params, "hot_set_bytes"))
            .map_or(1, |bytes| bytes / LINE_BYTES) as f64;
        let ns = |mode: &str| Some(1e9 / mode_median(record, cell.cell, mode, WALKS)? / lines);
        let values = spec.lines.iter().map(|(mode, _)| ns(mode)).collect();
        Group { name: place(cell), values }
    };
    Body::Bars {
        names: spec.lines.iter().map(|(_, name)| name.clone()).collect(),
        groups: cells.iter().map(group).collect(),
    }
}

/// What a victim's cell is, briefly.
fn place(cell: &Cell) -> String {
    let size = |name: &str| number(&cell.params, name).map_or_else(|| "?".to_owned(), text::size);
    match (number(&cell.params, "sockets"), word(&cell.params, "victim")) {
        (Some(1), _) => format!("{}, 1 socket", size("object_bytes")),
        (Some(sockets), _) => format!("{}, {sockets} sockets", size("object_bytes")),
        (None, Some("same-core")) => size("hot_set_bytes"),
        (None, _) => format!("{}, neighbour", size("hot_set_bytes")),
    }
}
