//! The typed table: what an experiment shows of its cells, a row for each mode. Text, Markdown, HTML
//! and JSON are made of it, and charts.

use ntcopy_judge::params::{axes, axis_words, group_words};
use ntcopy_judge::stats::{Digits, Verdict, Versus, metric};
use ntcopy_judge::{CEILING, Judged, Measured, Ratio};
use ntcopy_record::lists::grouped;
use ntcopy_record::{Cell, Params, Sends};
use serde_json::{Value, json};

use crate::{text, verdict};

/// One table: what its rows have in common, its columns, its rows.
pub(crate) struct Grid {
    pub heading: String,
    pub header: Vec<String>,
    /// Whether the second column names a mode.
    pub by_mode: bool,
    pub rows: Vec<Vec<Entry>>,
}

/// What stands in one place of a table.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    pub text: String,
    /// What the words come to, of those that are a verdict.
    pub verdict: Option<Verdict>,
}

impl From<String> for Entry {
    fn from(text: String) -> Entry {
        Entry { text, verdict: None }
    }
}

impl From<Verdict> for Entry {
    fn from(verdict: Verdict) -> Entry {
        Entry { text: verdict.as_str().to_owned(), verdict: Some(verdict) }
    }
}

/// What is shown of the cells that it is of.
pub(crate) struct View {
    pub is_of: fn(&Cell) -> bool,
    /// How to read it.
    pub note: &'static str,
    pub columns: Vec<Column>,
    pub curves: Vec<Curve>,
}

#[derive(Debug, Clone)]
pub(crate) struct Column {
    pub head: String,
    /// What programs call it; nothing where the results have it already.
    pub name: String,
    pub what: What,
}

/// The columns of metrics that are shown.
pub(crate) fn figures<const N: usize>(names: [&'static str; N]) -> [Column; N] {
    names.map(|name| column(metric(name).map_or(name, |row| row.head), name, What::Figure(name)))
}

pub(crate) fn column(head: &str, name: &str, what: What) -> Column {
    Column { head: head.to_owned(), name: name.to_owned(), what }
}

/// A chart, a line for each mode.
pub(crate) enum Curve {
    /// A figure along the axis in which the cells differ, by a metric that is shown.
    Along(&'static str),
    /// Throughput relative to the baseline, along that axis.
    Ratios,
    /// A chart for each cell: the latency by the part of the answers.
    ByPercentile(&'static [f64]),
}

/// What can be shown of a mode in a cell.
#[derive(Debug, Clone)]
pub(crate) enum What {
    /// By a metric that is shown.
    Figure(&'static str),
    /// Relative to the baseline by a metric, with its interval.
    Ratio(&'static str),
    /// Relative to another mode.
    RelativeTo(String, &'static str),
    /// The ratio alone, and the verdict alone.
    Short(&'static str),
    Verdict(&'static str),
    Answers,
    SlowDown,
    /// What part it has of the gain of sends that copy nothing.
    OfCeiling,
    /// A hardware event for so many bytes.
    Event(String, f64),
}

/// A figure for a reader, for a program and for a chart.
pub(crate) struct Figure {
    pub entry: Entry,
    pub json: Value,
    pub value: Option<f64>,
    pub ci: Option<(f64, f64)>,
}

impl What {
    /// The metric that it is relative to the baseline by, if it is.
    pub fn metric(&self) -> Option<&'static str> {
        match self {
            What::Ratio(metric) | What::Short(metric) | What::Verdict(metric) => Some(metric),
            _ => None,
        }
    }

    pub fn figure(&self, one: &Measured<'_>) -> Figure {
        match self {
            What::Figure(metric) => number(one.median(metric), |figure| shown(metric, figure)),
            What::Ratio(metric) => versus(one.versus(metric).map(Versus::result), true),
            What::RelativeTo(other, metric) => {
                versus(one.relative_to(other, metric).map(Versus::result), true)
            }
            What::Short(metric) => versus(one.versus(metric).map(Versus::result), false),
            What::Verdict(metric) => {
                let entry = verdict(one, metric);
                Figure { json: entry.text.as_str().into(), entry, value: None, ci: None }
            }
            What::Answers => answers(one),
            What::SlowDown => versus(one.slow_down(), true),
            What::OfCeiling => number(one.part_of_ceiling(), text::percent),
            What::Event(name, per_bytes) => {
                let event = one.event(name, *per_bytes);
                let mark = if event.is_some_and(|(_, is_scaled)| is_scaled) { "~" } else { "" };
                let figure = number(event.map(|(count, _)| count), |count| format!("{count:.2}"));
                Figure { entry: format!("{mark}{}", figure.entry.text).into(), ..figure }
            }
        }
    }
}

/// A figure with as many digits as its metric has.
fn shown(name: &str, figure: f64) -> String {
    match metric(name).map_or(Digits::Few, |metric| metric.digits) {
        Digits::Few => text::figure(figure),
        Digits::Whole => text::thousands(figure),
        Digits::Fixed(digits) => format!("{figure:.digits$}"),
        Digits::Percent => text::percent(figure),
    }
}

fn number(value: Option<f64>, text: impl Fn(f64) -> String) -> Figure {
    let entry = value.map_or("-".to_owned(), text).into();
    Figure { entry, json: value.into(), value, ci: None }
}

fn versus(result: Option<Ratio>, has_interval: bool) -> Figure {
    let Some(result) = result else {
        return Figure { entry: String::new().into(), json: Value::Null, value: None, ci: None };
    };
    let text = if has_interval { result.to_string() } else { text::ratio(result.ratio) };
    Figure {
        entry: text.into(),
        json: json!(result),
        value: Some(result.ratio),
        ci: Some(result.ci),
    }
}

fn verdict(one: &Measured<'_>, metric: &str) -> Entry {
    match one.versus(metric) {
        _ if one.sends() == Sends::Idle && !one.is_baseline() => CEILING.to_owned().into(),
        Some(versus) => versus.verdict().into(),
        None if one.is_baseline() => "baseline".to_owned().into(),
        None => "too few pairs".to_owned().into(),
    }
}

fn answers(one: &Measured<'_>) -> Figure {
    let answers = number(Some(one.answers() as f64), text::thousands);
    match one.unanswered {
        0 => answers,
        late => Figure {
            entry: format!("{}, {} late", answers.entry.text, text::thousands(late as f64)).into(),
            ..answers
        },
    }
}

/// The tables of a record: in each the cells that differ along its axes alone.
pub(crate) fn grids(record: &Judged, views: &[View]) -> Vec<Grid> {
    let axes = axes(&record.cells);
    let mut grids: Vec<Grid> = Vec::new();
    for view in views {
        let of_cell = |cell: &Cell| {
            let mut rows: Vec<Vec<Entry>> =
                record.measured(cell).iter().map(|one| row(view, one)).collect();
            rows.first_mut()?[0] = axis_words(&cell.params, &axes).into();
            Some((heading(&cell.params, &axes, view.note), rows))
        };
        let cells = record.cells.iter().filter(|cell| (view.is_of)(cell));
        let groups = grouped(cells.filter_map(of_cell)).into_iter();
        grids.extend(groups.map(|(heading, rows)| Grid {
            heading,
            header: header(view),
            by_mode: true,
            rows: rows.concat(),
        }));
    }
    grids
}

fn header(view: &View) -> Vec<String> {
    let heads = view.columns.iter().map(|column| column.head.clone());
    ["cell".to_owned(), "mode".to_owned()].into_iter().chain(heads).collect()
}

fn row(view: &View, one: &Measured<'_>) -> Vec<Entry> {
    let figures = view.columns.iter().map(|column| column.what.figure(one).entry);
    let names = [String::new(), one.mode.to_owned()].map(Entry::from);
    names.into_iter().chain(figures).collect()
}

/// What cells have in common, and how to read a table of them.
pub(crate) fn heading(params: &Params, axes: &[&str], note: &str) -> String {
    let (words, details) = group_words(params, axes);
    let mut heading = text::sentence(if words.is_empty() { "results" } else { &words });
    heading.pop();
    if !details.is_empty() {
        heading.push_str(&format!(" ({details})"));
    }
    if note.is_empty() { heading } else { format!("{heading}; {note}") }
}

/// Every figure of the tables for a program: a list of cells and modes.
pub(crate) fn json(record: &Judged, views: &[View]) -> Value {
    let mut list = Vec::new();
    for cell in &record.cells {
        let columns = views.iter().filter(|view| (view.is_of)(cell)).flat_map(|view| &view.columns);
        let columns: Vec<&Column> = columns.filter(|column| !column.name.is_empty()).collect();
        for one in record.measured(cell).iter().filter(|_| !columns.is_empty()) {
            let mut object = json!({"params": cell.params, "mode": one.mode});
            for column in &columns {
                object[&column.name] = column.what.figure(one).json;
            }
            list.push(object);
        }
    }
    list.into()
}

/// What the object of every experiment has.
pub(crate) fn with_results(record: &Judged, results: Vec<Value>) -> Value {
    let mut object = json!({
        "experiment": record.header.experiment,
        "record": record.header.id,
        "machine": record.machine,
        "sentences": verdict::sentences(record),
        "results": results,
    });
    if let Some(why) = &record.header.not_a_timing {
        object["not_a_timing"] = why.as_str().into();
    }
    if !record.beside.is_empty() {
        object["beside"] = json!(record.beside);
    }
    if !record.complete {
        object["complete"] = false.into();
    }
    object
}
