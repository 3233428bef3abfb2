//! Experiment `phase` as text and JSON.

use comfy_table::{Cell, CellAlignment, Table, TableStyle, presets};
use ntcopy_bench::record::Record;
use ntcopy_bench::stats::phase::{Phase, phases};
use serde_json::{Value, json};

use crate::text;

/// Every phase of every cell.
pub(crate) fn all(record: &Record) -> Vec<Phase> {
    record.cells.iter().flat_map(|cell| phases(record, cell)).collect()
}

/// For a terminal.
pub(crate) fn terminal(record: &Record) -> String {
    format!("{}\n", table(record, presets::NOTHING))
}

/// For a document.
pub(crate) fn markdown(record: &Record) -> String {
    format!("{}\n\n", table(record, presets::ASCII_MARKDOWN))
}

/// What stands above the columns.
pub(crate) const HEADER: [&str; 7] = [
    "phase",
    "non-temporal",
    "settled after, ms",
    "95 % interval",
    "longest",
    "not settled",
    "astray then",
];

/// A row.
pub(crate) fn row(phase: &Phase) -> [String; 7] {
    let ms = |ns: f64| format!("{:.0}", ns / 1e6);
    let sockets = if phase.sockets == 1 { "socket" } else { "sockets" };
    let of_settled = |figure: String| match phase.unsettled == phase.repetitions {
        true => "-".to_owned(),
        false => figure,
    };
    [
        format!("{}: {} {sockets}", phase.number + 1, phase.sockets),
        text::percent(phase.share),
        ms(phase.settled_ns),
        format!("{}-{}", ms(phase.ci.0), ms(phase.ci.1)),
        of_settled(ms(phase.longest_ns)),
        format!("{} of {}", phase.unsettled, phase.repetitions),
        of_settled(format!("{:.1} %", phase.astray * 100.0)),
    ]
}

fn table(record: &Record, style: TableStyle) -> String {
    let mut table = Table::new();
    table.load_style(style).set_width(u16::MAX).set_header(HEADER);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    for phase in all(record) {
        table.add_row(row(&phase).map(Cell::new));
    }
    let lines: Vec<String> = table.lines().map(|line| line.trim_end().to_owned()).collect();
    lines.join("\n")
}

/// The results, for programs.
pub(crate) fn results(record: &Record) -> Vec<Value> {
    let of = |cell: &ntcopy_bench::record::Cell| -> Vec<Value> {
        let result = |phase: &Phase| {
            json!({
                "params": cell.params,
                "mode": "adaptive",
                "metric": "settled_ns",
                "phase": phase.number,
                "sockets": phase.sockets,
                "nontemporal_share": phase.share,
                "median": phase.settled_ns.round() as u64,
                "ci": [phase.ci.0, phase.ci.1],
                "longest": phase.longest_ns.round() as u64,
                "unsettled": phase.unsettled,
                "repetitions": phase.repetitions,
                "astray": phase.astray,
            })
        };
        phases(record, cell).iter().map(result).collect()
    };
    record.cells.iter().flat_map(of).collect()
}
