//! Two sides of records held against each other, as text, as JSON and as a page.

use ntcopy_judge::Judged;
use ntcopy_judge::claims::{Claim, Point, Question};
use ntcopy_judge::compare::{Compared, Comparison, Difference, differences, groups};
use ntcopy_judge::params::{axes, axis_words, group_words};
use ntcopy_judge::stats::{Tally, Verdict, words};
use ntcopy_record::Cell;
use ntcopy_record::lists::grouped;
use serde_json::{Value, json};

use crate::table;
use crate::text;
use crate::view::{Entry, Grid};

const HEADER: [&str; 5] = ["cell", "A", "B", "B / A", "verdict"];

/// A side: a label, and its records.
#[derive(Debug, Clone, Copy)]
pub struct Side<'a> {
    /// Where the records came from, as the user named it.
    pub place: &'a str,
    /// At least one.
    pub records: &'a [Judged],
}

/// The records whose machines are held against each other: the newest of each side.
fn newest<'a>(side: &Side<'a>) -> Option<&'a Judged> {
    side.records.iter().max_by_key(|record| record.header.started_unix_ns)
}

/// In what the sides' machines differ, by the newest records of those that were compared; by the
/// newest of all if none was.
pub fn machines(a: &Side<'_>, b: &Side<'_>, comparison: &Comparison<'_>) -> Vec<Difference> {
    let started = |record: &&Judged| record.header.started_unix_ns;
    let in_a = comparison.cells.iter().map(|cell| cell.a.record).max_by_key(started);
    let in_b = comparison.cells.iter().map(|cell| cell.b.record).max_by_key(started);
    match (in_a.or(newest(a)), in_b.or(newest(b))) {
        (Some(a), Some(b)) => differences(a, b),
        _ => Vec::new(),
    }
}

/// All of it for a terminal: what differs, what it comes to, cell by cell. Ends in a newline.
pub fn terminal(a: &Side<'_>, b: &Side<'_>, comparison: &Comparison<'_>) -> String {
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
        out.push_str(table::print(&grids(comparison), true).trim_end());
    }
    text::ascii_lines(&out)
}

/// `records/a (3 records, 2026-11-21 11:53 UTC, CPU)`.
pub(crate) fn described(side: &Side<'_>) -> String {
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

/// Tables for each mode and metric of an experiment, of the cells that differ along an axis alone.
pub(crate) fn grids(comparison: &Comparison<'_>) -> Vec<Grid> {
    groups(comparison).iter().flat_map(|group| tables(group)).collect()
}

fn tables(cells: &[&Compared<'_>]) -> Vec<Grid> {
    let axes = axes(&cells.iter().map(|one| one.a.cell.clone()).collect::<Vec<_>>());
    let rows = cells.iter().map(|one| (group_words(&one.a.cell.params, &axes).0, row(one, &axes)));
    let Point { question: Question { mode, other, metric }, record, .. } = &cells[0].a;
    let experiment = &record.header.experiment;
    let table = |(common, rows): (String, Vec<Vec<Entry>>)| {
        let common = if common.is_empty() { common } else { format!("; {common}") };
        Grid {
            heading: format!("{experiment}: {mode} / {other}, by {}{common}", words(metric)),
            header: HEADER.map(str::to_owned).into(),
            by_mode: false,
            rows,
        }
    };
    grouped(rows).into_iter().map(table).collect()
}

fn row(cell: &Compared<'_>, axes: &[&str]) -> Vec<Entry> {
    let verdict = match cell.versus.verdict() {
        Verdict::Win => "better in B",
        Verdict::Loss => "worse in B",
        verdict => verdict.as_str(),
    };
    let ratios = [cell.a.versus, cell.b.versus, &cell.versus];
    let ratios = ratios.map(|versus| versus.result().to_string());
    let row = [&[axis_words(&cell.a.cell.params, axes)], &ratios[..], &[verdict.to_owned()]];
    row.concat().into_iter().map(Entry::from).collect()
}

pub fn object(a: &Side<'_>, b: &Side<'_>, comparison: &Comparison<'_>) -> Value {
    let side = |side: &Side<'_>| {
        let ids: Vec<&str> = side.records.iter().map(|record| record.header.id.as_str()).collect();
        json!({
            "place": side.place,
            "records": ids,
            "machine": newest(side).map(|record| &record.machine),
        })
    };
    json!({
        "a": side(a),
        "b": side(b),
        "differences": machines(a, b, comparison),
        "sentences": sentences(comparison),
        "cells": comparison.cells.iter().map(cell_json).collect::<Vec<Value>>(),
        "only_a": comparison.only_a,
        "only_b": comparison.only_b,
    })
}

fn cell_json(cell: &Compared<'_>) -> Value {
    let figures = |one: &Point<'_>| {
        json!({
            "record": one.record.header.id,
            "ratio": one.versus.ratio,
            "ci": one.versus.ci,
            "median": whole(one.versus.median),
            "baseline_median": whole(one.versus.other_median),
        })
    };
    let Point { question, record, cell: Cell { params, .. }, .. } = &cell.a;
    json!({
        "experiment": record.header.experiment,
        "params": params,
        "mode": question.mode,
        "baseline": question.other,
        "metric": question.metric,
        "a": figures(&cell.a),
        "b": figures(&cell.b),
        "ratio": cell.versus.ratio,
        "ci": cell.versus.ci,
        "verdict": cell.versus.verdict().as_str(),
    })
}

/// A sentence a mode and metric of each experiment; one for what could not be compared.
pub(crate) fn sentences(comparison: &Comparison<'_>) -> Vec<String> {
    let mut sentences: Vec<String> =
        groups(comparison).iter().filter_map(|group| sentence(group)).collect();
    if comparison.cells.is_empty() {
        sentences.push(
            "Nothing can be compared: the two sides have no cell in common, or too few pairs in it."
                .to_owned(),
        );
    }
    let alone = (comparison.only_a, comparison.only_b);
    if alone != (0, 0) {
        sentences.push(format!("Results on one side only: {} in A, {} in B.", alone.0, alone.1));
    }
    sentences
}

fn sentence(cells: &[&Compared<'_>]) -> Option<String> {
    let first = &cells.first()?.a;
    let claim = Claim::over(cells.iter().map(|cell| &cell.versus))?;
    let says = match claim.verdict {
        Verdict::Win => "does better in B than in A",
        Verdict::Loss => "does worse in B than in A",
        Verdict::Equal => "does as well in B as in A",
        Verdict::Unresolved => "is unresolved between A and B",
    };
    let Tally { wins, losses, .. } = cells.iter().map(|cell| cell.versus.verdict()).collect();
    let (mean, tally) = match cells.len() {
        1 => ("", String::new()),
        all => (
            " (geometric mean)",
            format!("; clearly better in {wins}, clearly worse in {losses} of {all} cells"),
        ),
    };
    Some(format!(
        "{}: {} against {}, by {}, {says}: B's ratio is at {claim} of A's{mean}{tally}.",
        first.record.header.experiment,
        first.question.mode,
        first.question.other,
        words(first.question.metric),
    ))
}

/// Bytes and the like have no fractions; seconds have.
fn whole(figure: f64) -> Value {
    if figure < 1000.0 { json!(figure) } else { json!(figure.round() as u64) }
}

#[cfg(test)]
mod tests;
