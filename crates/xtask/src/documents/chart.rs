//! Makes a panel of a picture from a record and what the index says of a chart.

use ntcopy_judge::Judged;
use ntcopy_judge::claims::hint;
use ntcopy_judge::stats::{WALKS, metric};
use ntcopy_record::{Cell, number};

use super::index::{self, ChartSpec};
use super::{Error, GENERATED};
use ntcopy_report::plot::{self, Axis, Bar, Bars, Chart, LETTER, Line, Point, slot};
use ntcopy_report::svg::{Place, Svg};
use ntcopy_report::{hot, text};

/// The title above a panel, a line of its legend, and the room between panels.
const TITLE: f64 = 26.0;
const ROW: f64 = 20.0;
const GAP: f64 = 24.0;
/// A panel's width, and that of one with bars.
const CHART: Place = (440.0, 300.0);
const BARS: f64 = 300.0;

pub(super) struct Panel {
    svg: Svg,
    size: Place,
}

/// Panels side by side, in a file of its own.
pub(super) fn picture(panels: &[Panel], title: &str) -> String {
    let mut all = Svg::default();
    let (mut x, mut high) = (0.0, 0.0f64);
    for panel in panels {
        all.put((x, 0.0), &panel.svg);
        x += panel.size.0 + GAP;
        high = high.max(panel.size.1);
    }
    all.alone((x - GAP, high), title, GENERATED)
}

pub(super) fn panel(record: &Judged, spec: &ChartSpec) -> Result<Panel, Error> {
    let cells = index::cells(record, &spec.cells)?;
    let drawn = match &spec.along {
        Some(along) => lines(record, spec, along, &cells),
        None => bars(record, spec, &cells),
    };
    drawn.ok_or_else(|| {
        Error::Index(format!("record {}: chart '{}' shows nothing", record.header.id, spec.title))
    })
}

fn unit(spec: &ChartSpec) -> String {
    match &spec.by {
        Some(by) => {
            let known = spec.lines.iter().find(|(mode, _)| mode == by);
            format!("speed relative to {}", known.map_or(by.as_str(), |(_, name)| name))
        }
        None => match metric(&spec.metric) {
            Some(metric) if !metric.unit.is_empty() => metric.unit.to_owned(),
            _ => format!("10^9 {}", spec.metric),
        },
    }
}

fn lines(record: &Judged, spec: &ChartSpec, along: &str, cells: &[&Cell]) -> Option<Panel> {
    let value = |cell: &Cell, mode: &str| match &spec.by {
        Some(by) => {
            let versus = record.versus(cell.cell, mode, by, &spec.metric)?;
            Some((versus.ratio, Some(versus.ci)))
        }
        None => Some((record.median(cell.cell, mode, &spec.metric)? / 1e9, None)),
    };
    let line = |(index, (mode, name)): (usize, &(String, String))| {
        let point = |cell: &&Cell| {
            let (value, ci) = value(cell, mode)?;
            Some(Point { at: number(&cell.params, along)?, value, ci })
        };
        let mut points: Vec<Point> = cells.iter().filter_map(point).collect();
        points.sort_by_key(|point| point.at);
        Line { name: name.clone(), slot: slot(mode, index), points }
    };
    // What the others are relative to is the line at 1.
    let shown = spec.lines.iter().filter(|(mode, _)| spec.by.as_ref() != Some(mode));
    let lines: Vec<Line> = shown.enumerate().map(line).collect();
    let most =
        lines.iter().flat_map(|line| &line.points).map(|point| point.value).fold(0.0, f64::max);
    let name = spec.name.clone().unwrap_or_else(|| along.replace('_', " ")).into();
    let is_bytes = along.ends_with("_bytes");
    let chart = plot::finish(Chart {
        axis: if is_bytes { Axis::Bytes(name) } else { Axis::Count(name) },
        is_log: false,
        y_label: unit(spec).into(),
        y_range: if spec.by.is_some() { plot::around_one(&lines) } else { (0.0, most * 1.08) },
        reference: spec.by.is_some().then_some(1.0),
        lines,
        marks: Vec::new(),
    })?;
    let (mut svg, top) = titled(&spec.title);
    let top = legend(&mut svg, &chart.lines, top);
    svg.put((0.0, top), &plot::draw(&chart, CHART));
    Some(Panel { svg, size: (CHART.0, top + CHART.1) })
}

fn titled(title: &str) -> (Svg, f64) {
    let mut svg = Svg::default();
    svg.text("title", (4.0, ROW), title);
    (svg, TITLE)
}

/// Names with their lines, in as many rows as they need; where the last one ends.
fn legend(svg: &mut Svg, lines: &[Line], top: f64) -> f64 {
    let (mut x, mut y) = (4.0, top);
    for line in lines {
        let wide = 34.0 + line.name.chars().count() as f64 * LETTER;
        if x > 4.0 && x + wide > CHART.0 {
            (x, y) = (4.0, y + ROW);
        }
        let slot = line.slot;
        svg.lines(&format!("line m{slot}"), [[(x, y + 10.0), (x + 24.0, y + 10.0)]]);
        svg.points(&format!("points m{slot}"), &[(x + 12.0, y + 10.0)]);
        svg.text("start", (x + 30.0, y + 14.5), &line.name);
        x += wide + 12.0;
    }
    y + ROW + 4.0
}

/// A group a cell, a bar a mode: nanoseconds that a victim takes for a line of its hot set.
fn bars(record: &Judged, spec: &ChartSpec, cells: &[&Cell]) -> Option<Panel> {
    let group = |cell: &&Cell| {
        let hot = hot::of_cell(record, cell, hint(record, WALKS))?;
        let bar = |(index, (mode, name)): (usize, &(String, String))| {
            Some(Bar::new(name, hot.line(mode)?, index))
        };
        let bars = spec.lines.iter().enumerate().filter_map(bar).collect();
        Some(Bars { name: place(cell), bars })
    };
    let groups: Vec<Bars> = cells.iter().filter_map(group).collect();
    let (mut svg, top) = titled(&spec.title);
    svg.text("start", (4.0, top + 14.0), "ns per line of the hot set");
    let (drawn, (width, height)) = plot::bars(&groups, "ns", BARS);
    svg.put((4.0, top + ROW), &drawn);
    (!groups.is_empty()).then_some(Panel { svg, size: (width + 4.0, top + ROW + height) })
}

/// What a victim's cell is, briefly.
fn place(cell: &Cell) -> String {
    let size = |name: &str| number(&cell.params, name).map_or_else(|| "?".to_owned(), text::size);
    let sockets = number(&cell.params, "sockets").unwrap_or(0);
    let plural = if sockets == 1 { "" } else { "s" };
    format!("{}, {sockets} socket{plural}", size("object_bytes"))
}
