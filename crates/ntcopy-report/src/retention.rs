//! Experiment `retention` as text: sends here, copies in [`copies`].

pub(crate) mod copies;
pub(crate) mod hot;

use comfy_table::{CellAlignment, Table, TableStyle, presets};
use ntcopy_record::stats::Versus;
use ntcopy_record::stats::retention::{Felt, felt};
use ntcopy_record::{Cell, Record};
use serde_json::Value;

use crate::text;
use crate::versus::{boots, number};

/// What stands above the columns; speeds are relative to this mode.
fn header(baseline: &str) -> [String; 6] {
    [
        "mode".to_owned(),
        "p50, ns per line".to_owned(),
        "p99".to_owned(),
        format!("hot set's speed / {baseline}"),
        "send and walk, us".to_owned(),
        format!("speed of both / {baseline}"),
    ]
}

/// Each cell with a line that says what it is, and its rows.
fn tables(record: &Record) -> Vec<(String, Vec<[String; 6]>)> {
    record
        .cells
        .iter()
        .map(|cell| (heading(cell), felt(record, cell).iter().map(row).collect()))
        .collect()
}

/// The sizes of a cell in words.
pub(crate) struct Sends {
    pub hot_set: String,
    pub object: String,
    pub dataset: String,
    pub sockets: u64,
}

/// What the victim had, and what was sent beside it.
pub(crate) fn sends(cell: &Cell) -> Sends {
    let size = |name: &str| number(&cell.params, name).map_or_else(|| "?".to_owned(), text::size);
    Sends {
        hot_set: size("hot_set_bytes"),
        object: size("object_bytes"),
        dataset: size("dataset_bytes"),
        sockets: number(&cell.params, "sockets").unwrap_or(1),
    }
}

fn heading(cell: &Cell) -> String {
    let Sends { hot_set, object, dataset, sockets } = sends(cell);
    let plural = if sockets == 1 { "" } else { "s" };
    let boots = boots(&cell.params).map_or_else(String::new, |boots| format!("; {boots}"));
    format!(
        "Hot set of {hot_set}, objects of {object} on {sockets} socket{plural}, out of \
         {dataset}{boots}"
    )
}

fn row(felt: &Felt) -> [String; 6] {
    [
        felt.mode.clone(),
        text::line_ns(felt.p50_ns, felt.ci),
        format!("{:.1}", felt.p99_ns),
        versus(felt.against_baseline.as_ref()),
        format!("{:.0}", felt.whole_ns / 1e3),
        versus(felt.whole_against_baseline.as_ref()),
    ]
}

fn versus(versus: Option<&Versus>) -> String {
    versus.map_or_else(String::new, |versus| {
        format!("{} ({})", text::ratio(versus.ratio), text::interval(versus.ci))
    })
}

pub(crate) fn terminal(record: &Record) -> String {
    print(record, presets::NOTHING, true)
}

pub(crate) fn markdown(record: &Record) -> String {
    print(record, presets::ASCII_MARKDOWN, false)
}

/// What `--json` adds: what the victim felt of copies.
pub(crate) fn json(record: &Record) -> Option<Value> {
    is_of_copies(record).then(|| copies::json(record).into())
}

/// Whether the record is of the form with copies.
pub(crate) fn is_of_copies(record: &Record) -> bool {
    record.cells.iter().any(ntcopy_record::stats::retention::copies::is_one)
}

fn print(record: &Record, style: TableStyle, is_for_terminal: bool) -> String {
    if is_of_copies(record) {
        return copies::print(record, style, is_for_terminal);
    }
    let between = if is_for_terminal { "\n" } else { "\n\n" };
    let mut out = String::new();
    for (heading, rows) in tables(record) {
        let mut table = Table::new();
        table.load_style(style).set_width(u16::MAX).set_header(header(&record.header.baseline));
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        table.add_rows(rows.iter().map(|row| text::cells(row, is_for_terminal)));
        let lines: Vec<String> = table.lines().map(|line| line.trim_end().to_owned()).collect();
        out.push_str(&format!("{heading}:{between}{}\n\n", lines.join("\n")));
    }
    out
}
