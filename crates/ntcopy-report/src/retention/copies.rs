//! The form with copies, as text and as data.

use comfy_table::{CellAlignment, ColumnConstraint, Table, TableStyle};
use ntcopy_record::stats::Versus;
use ntcopy_record::stats::retention::copies::{
    Felt, Ratio, always_behind, felt, number, part_of_slow_down,
};
use ntcopy_record::{Cell, Record};
use serde_json::{Value, json};

use crate::text;

const HEADER: [&str; COLUMNS] = [
    "hot set",
    "mode",
    "p50 ns",
    "p99",
    "p99.9",
    "slow-down at p50",
    "at p99",
    "GB/s",
    "copies",
    "whole relative to copy",
];
const COLUMNS: usize = 10;
/// The columns of traffic: what was offered, which says nothing on the same core, where it follows
/// the passes; and copies and passes together, which says nothing side by side.
const TRAFFIC: usize = 7;
const WHOLE: usize = 9;

/// Parameters in which the cells of one group may differ.
const VARYING: [&str; 5] =
    ["hot_set_bytes", "pass_bytes", "rate_bytes_per_s", "asked_rate_bytes_per_s", "note"];

/// Cells that differ in their hot sets alone, with what the victim felt in each.
pub(crate) struct Group<'a> {
    pub heading: String,
    /// Whether victim and streamer take turns on one core.
    pub is_same_core: bool,
    /// What a reader has to know of them.
    pub note: Option<String>,
    /// By hot set; with the modes whose streamer always fell behind.
    pub cells: Vec<(&'a Cell, Vec<Felt>, Vec<&'a str>)>,
}

/// The record's cells in groups, in the order in which they are met.
pub(crate) fn groups(record: &Record) -> Vec<Group<'_>> {
    let mut groups: Vec<(String, Group<'_>)> = Vec::new();
    for cell in &record.cells {
        let asked = number(cell, "asked_rate_bytes_per_s").or(number(cell, "rate_bytes_per_s"));
        let kept = cell.params.iter().filter(|(name, _)| !VARYING.contains(&name.as_str()));
        let key = format!("{asked:?} {:?}", kept.collect::<Vec<_>>());
        let entry = (cell, felt(record, cell), always_behind(record, cell));
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, group)) => group.cells.push(entry),
            None => {
                let group = Group {
                    heading: heading(cell, asked),
                    is_same_core: is_same_core(cell),
                    note: string(cell, "note").map(str::to_owned),
                    cells: vec![entry],
                };
                groups.push((key, group));
            }
        }
    }
    groups.into_iter().map(|(_, group)| group).collect()
}

fn string<'a>(cell: &'a Cell, name: &str) -> Option<&'a str> {
    cell.params.get(name).and_then(Value::as_str)
}

fn is_same_core(cell: &Cell) -> bool {
    string(cell, "victim") == Some("same-core")
}

fn heading(cell: &Cell, asked: Option<u64>) -> String {
    let size = |name: &str| number(cell, name).map_or_else(|| "?".to_owned(), text::size);
    let cpu = |name: &str| {
        number(cell, name).map_or_else(|| "no CPU".to_owned(), |cpu| format!("CPU {cpu}"))
    };
    let (object, dataset) = (size("object_bytes"), size("dataset_bytes"));
    let victim = cpu("victim_cpu");
    if is_same_core(cell) {
        return format!(
            "Another program on the same core ({victim}): a copy of {object} out of {dataset}, a \
             pass, a copy, a pass"
        );
    }
    let rate =
        asked.map_or(String::new(), |rate| format!(" at {} GB/s", text::gigabytes(rate as f64)));
    format!(
        "Another program ({victim}) alongside copies ({}): copies of {object} out of {dataset}{rate}",
        cpu("streamer_cpu")
    )
}

fn rows(group: &Group<'_>) -> Vec<[String; COLUMNS]> {
    let mut rows = Vec::new();
    for (cell, felt, behind) in &group.cells {
        let first = rows.len();
        rows.extend(felt.iter().map(row));
        let mut say = |what: &str, why: &str| {
            let mut row: [String; COLUMNS] = Default::default();
            (row[1], row[2]) = (what.to_owned(), why.to_owned());
            rows.push(row);
        };
        behind.iter().for_each(|mode| say(mode, "behind"));
        if felt.is_empty() && behind.is_empty() {
            say("not available", "");
        }
        let is_lowered = number(cell, "asked_rate_bytes_per_s").is_some();
        for row in rows[first..].iter_mut().filter(|row| is_lowered && !row[TRAFFIC].is_empty()) {
            row[TRAFFIC].push('*');
        }
        rows[first][0] = hot_set(cell);
    }
    rows
}

fn row(felt: &Felt) -> [String; COLUMNS] {
    let [p50, p99, p999] = felt.line_ns.map(|ns| format!("{ns:.1}"));
    let [at_p50, at_p99] = felt.slow_down;
    let rate = |rate: Option<f64>| rate.map_or_else(String::new, text::gigabytes);
    let is_idle = felt.mode == "idle";
    [
        String::new(),
        felt.mode.clone(),
        p50,
        p99,
        p999,
        at_p50.map_or_else(String::new, ratio_text),
        // Its interval is on the page and in the JSON: here is no room for both.
        at_p99.map_or_else(String::new, |ratio| text::ratio(ratio.ratio)),
        rate(Some(felt.traffic_bytes_per_s).filter(|_| !is_idle)),
        rate(felt.copy_bytes_per_s),
        whole(felt.whole_by_copy.as_ref()),
    ]
}

pub(crate) fn hot_set(cell: &Cell) -> String {
    number(cell, "hot_set_bytes").map_or_else(|| "?".to_owned(), text::size)
}

fn ratio_text(ratio: Ratio) -> String {
    format!("{} ({})", text::ratio(ratio.ratio), text::interval(ratio.ci))
}

fn whole(versus: Option<&Versus>) -> String {
    versus
        .map_or_else(String::new, |versus| ratio_text(Ratio { ratio: versus.ratio, ci: versus.ci }))
}

/// What the columns mean, below the tables.
pub(crate) fn legend(record: &Record) -> String {
    let mut legend =
        "p50, p99, p99.9: nanoseconds per line of the other program's passes. Slow-down: a \
                      pass by one that was left alone. GB/s: what was copied while the clock ran; \
                      copies: how fast a copy was."
            .to_owned();
    if record.cells.iter().any(|cell| number(cell, "asked_rate_bytes_per_s").is_some()) {
        legend.push_str(" *: less was offered than was asked for, since a mode cannot copy more.");
    }
    if record.cells.iter().any(|cell| !always_behind(record, cell).is_empty()) {
        legend.push_str(" behind: the streamer never kept up with what it was offered.");
    }
    if record.cells.iter().any(is_same_core) {
        legend.push_str(
            " Whole relative to copy: speed of copies and passes together, divided by that with \
             normal copies.",
        );
    }
    legend
}

/// For a terminal, or for a document.
pub(super) fn print(record: &Record, style: TableStyle, is_for_terminal: bool) -> String {
    let words = |words: &str| match is_for_terminal {
        true => text::wrapped(words),
        false => format!("{words}\n"),
    };
    let between = if is_for_terminal { "\n" } else { "\n\n" };
    let mut out = String::new();
    for group in groups(record) {
        let mut table = Table::new();
        table.load_style(style).set_width(u16::MAX).set_header(HEADER);
        for column in table.column_iter_mut().skip(2) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        table.add_rows(rows(&group).iter().map(|row| text::cells(row, is_for_terminal)));
        hide(&mut table, if group.is_same_core { TRAFFIC } else { WHOLE });
        let note = group.note.as_ref().map_or(String::new(), |note| format!(" ({note})"));
        let lines: Vec<String> = table.lines().map(|line| line.trim_end().to_owned()).collect();
        let heading = text::cell(&format!("{}{note}:", group.heading), is_for_terminal);
        out.push_str(words(&heading).trim_end());
        out.push_str(&format!("{between}{}\n\n", lines.join("\n")));
    }
    format!("{out}{}\n", words(&legend(record)))
}

fn hide(table: &mut Table, column: usize) {
    if let Some(column) = table.column_mut(column) {
        column.set_constraint(ColumnConstraint::Hidden);
    }
}

/// For programs: what the victim felt in each cell and mode.
pub(crate) fn json(record: &Record) -> Vec<Value> {
    let mut list = Vec::new();
    for cell in &record.cells {
        for felt in felt(record, cell) {
            let ratio = |ratio: Option<Ratio>| {
                ratio.map(|ratio| json!({"ratio": ratio.ratio, "ci": [ratio.ci.0, ratio.ci.1]}))
            };
            list.push(json!({
                "params": cell.params,
                "mode": felt.mode,
                "line_ns": {"p50": felt.line_ns[0], "p99": felt.line_ns[1],
                            "p99_9": felt.line_ns[2]},
                "slow_down": {"p50": ratio(felt.slow_down[0]), "p99": ratio(felt.slow_down[1]),
                              "p99_9": felt.by_idle.map(|by_idle| by_idle[2])},
                "part_of_copys_slow_down": ratio(part_of_slow_down(record, cell, &felt.mode)),
                "traffic_bytes_per_s": felt.traffic_bytes_per_s.round() as u64,
                "copy_bytes_per_s": felt.copy_bytes_per_s.map(|rate| rate.round() as u64),
                "passes": felt.passes,
                "samples": felt.samples,
                "samples_that_fell_behind": felt.short,
            }));
        }
    }
    list
}
