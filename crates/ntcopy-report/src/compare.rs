//! Two sides of records held against each other, as text, as JSON and as a page.

use std::collections::BTreeSet;

use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, presets};
use ntcopy_record::Record;
use ntcopy_record::compare::{Compared, Comparison, Difference, differences, groups, sentences};
use ntcopy_record::params::cell_words;
use ntcopy_record::stats::words;
use serde_json::{Value, json};

use crate::text;

const HEADER: [&str; 5] = ["cell", "A", "B", "B / A", "verdict"];
const WIDTH: u16 = 100;

/// A side: a label, and its records.
#[derive(Debug, Clone, Copy)]
pub struct Side<'a> {
    /// Where the records came from, as the user named it.
    pub place: &'a str,
    /// At least one.
    pub records: &'a [Record],
}

/// The records whose machines are held against each other: the newest of each side.
fn newest<'a>(side: &Side<'a>) -> Option<&'a Record> {
    side.records.iter().max_by_key(|record| record.header.started_unix_ns)
}

/// In what the sides' machines differ, by the newest records of those that were compared; by the
/// newest of all if none was.
pub fn machines(a: &Side<'_>, b: &Side<'_>, comparison: &Comparison) -> Vec<Difference> {
    let in_a = comparison.cells.iter().map(|cell| cell.a.record.as_str()).collect();
    let in_b = comparison.cells.iter().map(|cell| cell.b.record.as_str()).collect();
    match (compared(a, &in_a), compared(b, &in_b)) {
        (Some(a), Some(b)) => differences(a, b),
        _ => Vec::new(),
    }
}

fn compared<'a>(side: &Side<'a>, ids: &BTreeSet<&str>) -> Option<&'a Record> {
    let ours = side.records.iter().filter(|record| ids.contains(record.header.id.as_str()));
    ours.max_by_key(|record| record.header.started_unix_ns).or(newest(side))
}

/// All of it for a terminal: what differs, what it comes to, cell by cell. Ends in a newline.
pub fn terminal(a: &Side<'_>, b: &Side<'_>, comparison: &Comparison) -> String {
    let mut out = String::new();
    for (name, side) in [("A", a), ("B", b)] {
        out.push_str(&format!("{name}: {}\n", described(side)));
    }
    let differ = machines(a, b, comparison);
    if differ.is_empty() {
        out.push_str("The machines are the same, with the same kernel, C library and program.\n");
    } else {
        out.push_str("What differs:\n");
        for one in &differ {
            out.push_str(&format!("  {}: {} in A, {} in B\n", one.what, one.a, one.b));
        }
    }
    out.push('\n');
    for sentence in sentences(comparison) {
        out.push_str(&text::wrapped(&sentence));
    }
    if !comparison.cells.is_empty() {
        out.push('\n');
        out.push_str(&cells(comparison));
    }
    text::ascii_lines(&out)
}

/// `records/a (3 records, 2026-11-21 11:53 UTC, CPU)`.
fn described(side: &Side<'_>) -> String {
    let Some(newest) = newest(side) else { return format!("{} (no records)", side.place) };
    let many = match side.records.len() {
        1 => newest.header.id.clone(),
        count => format!("{count} records, the newest {}", newest.header.id),
    };
    format!(
        "{} ({many}, {}, {})",
        side.place,
        text::utc(newest.header.started_unix_ns),
        newest.machine.cpu_model
    )
}

/// A table for each mode and metric of an experiment.
fn cells(comparison: &Comparison) -> String {
    let mut out = String::new();
    for group in groups(comparison) {
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(WIDTH);
        table.set_header(HEADER.map(Cell::new));
        for column in 1..=3 {
            if let Some(column) = table.column_mut(column) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        for cell in &group {
            table.add_row(row(cell));
        }
        let first = group[0];
        out.push_str(&format!(
            "{}: {} / {}, by {}:\n",
            first.experiment,
            first.mode,
            first.baseline,
            words(first.metric)
        ));
        for line in table.lines() {
            out.push_str(line.trim_end());
            out.push('\n');
        }
        out.push('\n');
    }
    while out.ends_with("\n\n") {
        out.pop();
    }
    out
}

fn row(cell: &Compared) -> [String; 5] {
    [
        cell_words(&cell.params),
        ratio(cell.a.versus.ratio, cell.a.versus.ci),
        ratio(cell.b.versus.ratio, cell.b.versus.ci),
        ratio(cell.ratio, cell.ci),
        verdict(cell).to_owned(),
    ]
}

fn verdict(cell: &Compared) -> &'static str {
    use ntcopy_record::stats::Verdict;
    match cell.verdict {
        Verdict::Win => "better in B",
        Verdict::Loss => "worse in B",
        verdict => verdict.as_str(),
    }
}

fn ratio(ratio: f64, ci: (f64, f64)) -> String {
    text::with_interval(ratio, ci)
}

pub fn object(a: &Side<'_>, b: &Side<'_>, comparison: &Comparison) -> Value {
    let side = |side: &Side<'_>| {
        let ids: Vec<&str> = side.records.iter().map(|record| record.header.id.as_str()).collect();
        json!({
            "place": side.place,
            "records": ids,
            "machine": newest(side).map(|record| &record.machine),
        })
    };
    let differ: Vec<Value> = machines(a, b, comparison)
        .iter()
        .map(|one| json!({"what": one.what, "a": one.a, "b": one.b}))
        .collect();
    json!({
        "a": side(a),
        "b": side(b),
        "differences": differ,
        "sentences": sentences(comparison),
        "cells": comparison.cells.iter().map(cell_json).collect::<Vec<Value>>(),
        "only_a": comparison.only_a,
        "only_b": comparison.only_b,
    })
}

fn cell_json(cell: &Compared) -> Value {
    let figures = |one: &ntcopy_record::compare::Figures| {
        json!({
            "record": one.record,
            "ratio": one.versus.ratio,
            "ci": [one.versus.ci.0, one.versus.ci.1],
            "median": whole(one.versus.median),
            "baseline_median": whole(one.versus.other_median),
        })
    };
    json!({
        "experiment": cell.experiment,
        "params": cell.params,
        "mode": cell.mode,
        "baseline": cell.baseline,
        "metric": cell.metric,
        "a": figures(&cell.a),
        "b": figures(&cell.b),
        "ratio": cell.ratio,
        "ci": [cell.ci.0, cell.ci.1],
        "verdict": cell.verdict.as_str(),
    })
}

/// Bytes and the like have no fractions; seconds have.
fn whole(figure: f64) -> Value {
    if figure < 1000.0 { json!(figure) } else { json!(figure.round() as u64) }
}

/// Headings and rows of the page's table of cells.
pub(crate) fn rows(comparison: &Comparison) -> (Vec<&'static str>, Vec<Vec<String>>) {
    let mut header = vec!["experiment", "mode", "by"];
    header.extend(HEADER);
    let rows = groups(comparison).into_iter().flatten().map(|cell| {
        let mode = format!("{} / {}", cell.mode, cell.baseline);
        let mut all = vec![cell.experiment.to_string(), mode, words(cell.metric).to_owned()];
        all.extend(row(cell));
        all
    });
    (header, rows.collect())
}

/// The lines that say which sides there are.
pub(crate) fn sides(a: &Side<'_>, b: &Side<'_>) -> [String; 2] {
    [described(a), described(b)]
}
