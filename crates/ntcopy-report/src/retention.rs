//! Experiment `retention` as text: sends here, copies in [`copies`].

pub(crate) mod copies;

use comfy_table::{CellAlignment, Table, TableStyle, presets};
use ntcopy_bench::record::{Cell, Record};
use ntcopy_bench::stats::Versus;
use ntcopy_bench::stats::retention::{Felt, felt};

use crate::text;

/// What stands above the columns.
pub(crate) const HEADER: [&str; 6] = [
    "mode",
    "p50, ns a line",
    "p99",
    "victim's speed by copy's",
    "send and walk, us",
    "speed of both by copy's",
];

/// Each cell with a line that says what it is, and its rows.
pub(crate) fn tables(record: &Record) -> Vec<(String, Vec<[String; 6]>)> {
    record
        .cells
        .iter()
        .map(|cell| (heading(cell), felt(record, cell).iter().map(row).collect()))
        .collect()
}

fn heading(cell: &Cell) -> String {
    let size = |name: &str| {
        let bytes = cell.params.get(name).and_then(serde_json::Value::as_u64);
        bytes.map_or_else(|| "?".to_owned(), text::size)
    };
    let sockets = cell.params.get("sockets").and_then(serde_json::Value::as_u64).unwrap_or(1);
    let plural = if sockets == 1 { "" } else { "s" };
    format!(
        "Hot set of {}, objects of {} on {sockets} socket{plural}, out of {}",
        size("hot_set_bytes"),
        size("object_bytes"),
        size("dataset_bytes")
    )
}

fn row(felt: &Felt) -> [String; 6] {
    [
        felt.mode.clone(),
        felt.ci.map_or_else(
            || format!("{:.1}", felt.p50_ns),
            |(low, high)| format!("{:.1} ({low:.1}-{high:.1})", felt.p50_ns),
        ),
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

/// For a terminal.
pub(crate) fn terminal(record: &Record) -> String {
    print(record, presets::NOTHING, "\n")
}

/// For a document.
pub(crate) fn markdown(record: &Record) -> String {
    print(record, presets::ASCII_MARKDOWN, "\n\n")
}

/// Whether the record is of the form with copies.
pub(crate) fn is_of_copies(record: &Record) -> bool {
    record.cells.iter().any(ntcopy_bench::stats::retention::copies::is_one)
}

fn print(record: &Record, style: TableStyle, between: &str) -> String {
    if is_of_copies(record) {
        return copies::print(record, style, between);
    }
    let mut out = String::new();
    for (heading, rows) in tables(record) {
        let mut table = Table::new();
        table.load_style(style).set_width(u16::MAX).set_header(HEADER);
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        table.add_rows(rows);
        let lines: Vec<String> = table.lines().map(|line| line.trim_end().to_owned()).collect();
        out.push_str(&format!("{heading}:{between}{}\n\n", lines.join("\n")));
    }
    out
}
