//! Copies and fills in user space, and whatever else is laid out in tables of ways, as text.

use comfy_table::{CellAlignment, Table, TableStyle, presets};
use ntcopy_record::stats::peers::{AgainstBest, OURS, against_best, geomean};
use ntcopy_record::stats::{self, MIN_PAIRS, THROUGHPUT, Versus};
use ntcopy_record::{Cell, ExperimentKind, Params, Record};
use serde_json::{Value, json};

use crate::net;
use crate::text::{self, cell, cells, wrapped};
use crate::versus::{Grid, number, word};

/// Bytes of a cache line: what hardware events of copies and fills are counted by.
const LINE_BYTES: u64 = 64;

/// A table for each combination of threads and heat; a row a size, a column a way.
pub(crate) fn side_by_side(record: &Record) -> Vec<Grid> {
    let modes = stats::modes(record);
    let best = against_best(record);
    let mut grids: Vec<Grid> = Vec::new();
    for cell in &record.cells {
        let heading = heading(&cell.params);
        if grids.last().is_none_or(|grid| grid.heading != heading) {
            let mut header = vec!["size".to_owned()];
            header.extend(modes.iter().map(|mode| (*mode).to_owned()));
            header.extend(["ours / libc".to_owned(), "ours / best peer".to_owned()]);
            grids.push(Grid { heading, header, rows: Vec::new() });
        }
        let row = row(record, cell, &modes, best.iter().find(|best| best.cell == cell.cell));
        if let Some(grid) = grids.last_mut() {
            grid.rows.push(row);
        }
    }
    grids
}

fn row(record: &Record, cell: &Cell, modes: &[&str], best: Option<&AgainstBest>) -> Vec<String> {
    let baseline = record.header.baseline.as_str();
    let mut row = vec![number(&cell.params, "size_bytes").map_or_else(String::new, text::size)];
    for mode in modes {
        let rate = stats::mode_median(record, cell.cell, mode, THROUGHPUT);
        let mark = if best.is_some_and(|best| best.peer == *mode) { "*" } else { "" };
        row.push(rate.map_or("-".to_owned(), |rate| format!("{}{mark}", text::gigabytes(rate))));
    }
    let ours = stats::versus(record, cell.cell, OURS, baseline, THROUGHPUT);
    row.push(compared(ours.as_ref()));
    row.push(compared(best.map(|best| &best.versus)));
    row
}

/// `1.31 (1.28-1.35)`.
fn compared(versus: Option<&Versus>) -> String {
    versus.map_or_else(String::new, |versus| {
        format!("{:.2} ({})", versus.ratio, text::interval(versus.ci))
    })
}

/// A table for each number of threads; a row for each way in each cell.
pub(crate) fn one_a_row(record: &Record) -> Vec<Grid> {
    let events = events(record);
    let unit = unit(record);
    let mut header: Vec<String> =
        ["", "way", unit.rate, "ratio", "95 % interval", "verdict"].map(str::to_owned).into();
    header.extend(events.iter().map(|event| format!("{event} {}", unit.each)));
    let mut grids: Vec<Grid> = Vec::new();
    for cell in &record.cells {
        let heading = heading(&cell.params);
        if grids.last().is_none_or(|grid| grid.heading != heading) {
            grids.push(Grid { heading, header: header.clone(), rows: Vec::new() });
        }
        let rows =
            stats::modes(record).into_iter().filter_map(|mode| way(record, cell, mode, &events));
        let mut rows: Vec<Vec<String>> = rows.collect();
        if let Some(first) = rows.first_mut() {
            first[0] = label(&cell.params);
        }
        if let Some(grid) = grids.last_mut() {
            grid.rows.extend(rows);
        }
    }
    grids
}

fn way(record: &Record, cell: &Cell, mode: &str, events: &[String]) -> Option<Vec<String>> {
    let rate = stats::mode_median(record, cell.cell, mode, THROUGHPUT)?;
    let baseline = record.header.baseline.as_str();
    let versus = (mode != baseline)
        .then(|| stats::versus(record, cell.cell, mode, baseline, THROUGHPUT))
        .flatten();
    let verdict = match &versus {
        Some(versus) => versus.verdict().as_str(),
        None if mode == baseline => "baseline",
        None => "too few pairs",
    };
    let mut row = vec![
        String::new(),
        mode.to_owned(),
        rate_figure(cell, rate),
        versus.as_ref().map_or_else(String::new, |versus| fine_ratio(versus.ratio)),
        versus.as_ref().map_or_else(String::new, |versus| fine_interval(versus.ci)),
        verdict.to_owned(),
    ];
    row.extend(events.iter().map(|event| per_line(record, cell, mode, event)));
    Some(row)
}

/// The same as [`text::ratio`], and small ones to a third digit: a walk against the grain may be a
/// hundred times slower.
fn fine_ratio(ratio: f64) -> String {
    if ratio < 0.1 { format!("{ratio:.3}x") } else { text::ratio(ratio) }
}

fn fine_interval((low, high): (f64, f64)) -> String {
    if low < 0.1 { format!("{low:.3}-{high:.3}") } else { text::interval((low, high)) }
}

/// The hardware events that were counted anywhere in the record.
fn events(record: &Record) -> Vec<String> {
    let mut events: Vec<String> = Vec::new();
    for name in record.samples.iter().flat_map(|sample| sample.counters.keys()) {
        let has_its_place = record.machine.is_hardware_counter(name);
        if name != "nontemporal_bytes" && !has_its_place && !events.contains(name) {
            events.push(name.clone());
        }
    }
    events
}

/// The median of an event, by line of 64 bytes.
fn per_line(record: &Record, cell: &Cell, mode: &str, event: &str) -> String {
    let samples = record.samples.iter().filter(|s| s.cell == cell.cell && s.mode == mode);
    let counts: Vec<f64> = samples
        .filter_map(|sample| {
            let each = each_bytes(cell);
            Some(*sample.counters.get(event)? as f64 * each as f64 / sample.bytes as f64)
        })
        .collect();
    if counts.is_empty() { "-".to_owned() } else { format!("{:.2}", stats::median(&counts)) }
}

/// What cells on one axis of sizes have in common.
pub(crate) fn group(params: &Params) -> String {
    let heading = heading(params);
    let heading = heading.split("; ").next().unwrap_or(&heading);
    match word(params, "task") {
        Some(task) => format!("{task}, {heading}"),
        None => heading.to_owned(),
    }
}

/// What a table's rows have in common.
fn heading(params: &Params) -> String {
    let mut words = Vec::new();
    match number(params, "threads") {
        // Two processes that take turns are not threads.
        _ if is_fork(params) => {}
        Some(1) | None => words.push("1 thread".to_owned()),
        Some(threads) => words.push(format!("{threads} threads")),
    }
    if let (Some(source), Some(destination)) = (word(params, "source"), word(params, "destination"))
    {
        words.push(format!("source {source}, destination {destination}"));
    }
    words.extend(pages_heading(params));
    words.extend(number(params, "value").map(|value| format!("value {value}")));
    words.extend(word(params, "cpus").map(|cpus| format!("CPU {cpus}")));
    words.extend(word(params, "pages").map(|pages| format!("{pages} pages")));
    if word(params, "source") == Some("cold") || word(params, "destination") == Some("cold") {
        let region = number(params, "region_bytes").map(text::about_size);
        words.extend(region.map(|region| format!("out of {region}")));
    }
    let counters = word(params, "hardware_counters").map(|text| format!("; {text}"));
    let unit = if is_fork(params) { "" } else { ", GB/s" };
    format!("{}{unit}{}", words.join(", "), counters.unwrap_or_default())
}

fn label(params: &Params) -> String {
    let size = number(params, "size_bytes").map_or_else(String::new, text::size);
    match (word(params, "task"), number(params, "side")) {
        (Some(task), Some(side)) => format!("{task}, {side} x {side}"),
        _ => size,
    }
}

pub(crate) fn terminal(record: &Record, grids: Vec<Grid>) -> String {
    let is_pingpong = record.header.experiment == ExperimentKind::Pingpong;
    let mut out = if is_pingpong { net::pingpong::blocks(record) } else { String::new() };
    out.push_str(&print(record, grids, presets::NOTHING, true));
    out.push_str(&remark(record));
    out
}

pub(crate) fn markdown(record: &Record, grids: Vec<Grid>) -> String {
    let mut out = print(record, grids, presets::ASCII_MARKDOWN, false);
    out.push_str(&remark(record).replace('*', "\\*"));
    out
}

/// What a mark means, where there are any.
fn remark(record: &Record) -> String {
    let is_marked =
        record.header.experiment == ExperimentKind::Memcpy && !against_best(record).is_empty();
    if is_marked {
        "* the best peer; ratios are medians of pairs with their 95 % interval.\n\n".to_owned()
    } else {
        String::new()
    }
}

fn print(record: &Record, grids: Vec<Grid>, style: TableStyle, is_for_terminal: bool) -> String {
    let is_memcpy = record.header.experiment == ExperimentKind::Memcpy;
    let mut out = String::new();
    for grid in grids {
        let mut table = Table::new();
        table.load_style(style).set_width(u16::MAX);
        table.set_header(cells(&grid.header, is_for_terminal));
        for column in table.column_iter_mut().skip(if is_memcpy { 1 } else { 2 }) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        if is_for_terminal {
            table.column_iter_mut().for_each(|column| {
                column.set_padding((0, 1));
            });
        }
        table.add_rows(grid.rows.iter().map(|row| cells(row, is_for_terminal)));
        let lines: Vec<String> = table.lines().map(|line| line.trim_end().to_owned()).collect();
        let heading = cell(&format!("{}:", grid.heading), is_for_terminal);
        let heading = if is_for_terminal { wrapped(&heading) } else { heading + "\n\n" };
        out.push_str(&format!("{heading}{}\n\n", lines.join("\n")));
    }
    out
}

/// What `--json` adds: ours against the best peer of each cell.
pub(crate) fn json(record: &Record) -> Option<Value> {
    let cells = against_best(record);
    let (mean, ci) = geomean(&cells)?;
    let list: Vec<Value> = cells
        .iter()
        .filter(|best| best.versus.ratios.len() >= MIN_PAIRS)
        .map(|best| {
            json!({
                "params": record.cell(best.cell).map(|cell| cell.params.clone()),
                "peer": best.peer,
                "ratio": best.versus.ratio,
                "ci": [best.versus.ci.0, best.versus.ci.1],
            })
        })
        .collect();
    Some(json!({"geomean": mean, "ci": [ci.0, ci.1], "cells": list}))
}

/// What the rows of a table of pages, cleared or copied, have in common.
fn pages_heading(params: &Params) -> Option<String> {
    if let (Some(user), Some(usage)) = (word(params, "user"), word(params, "use")) {
        let amount = if usage == "byte" { "one byte a page" } else { "every byte" };
        return Some(format!("fork() loop, the {user} writes {amount}"));
    }
    let read = match word(params, "read_back")? {
        "none" => "nothing read back",
        "some" => "100 bytes of each read back",
        _ => "all read back",
    };
    Some(format!("{} pages, {read}", word(params, "action")?))
}

/// What a table's figures are of.
struct Unit {
    rate: &'static str,
    each: &'static str,
}

fn unit(record: &Record) -> Unit {
    if record.cells.first().is_some_and(|cell| is_fork(&cell.params)) {
        Unit { rate: "us a fork", each: "a fork" }
    } else {
        Unit { rate: "GB/s", each: "a line" }
    }
}

/// Whether a cell is a loop of forks.
pub(crate) fn is_fork(params: &Params) -> bool {
    word(params, "form") == Some("fork")
}

/// A median of bytes by second: as such, or as the time of a fork.
fn rate_figure(cell: &Cell, bytes_per_s: f64) -> String {
    match number(&cell.params, "size_bytes").filter(|_| is_fork(&cell.params)) {
        Some(buffer_bytes) => format!("{:.1}", buffer_bytes as f64 / bytes_per_s * 1e6),
        None => text::gigabytes_fine(bytes_per_s),
    }
}

/// Bytes for which a counter's figure is given.
fn each_bytes(cell: &Cell) -> u64 {
    number(&cell.params, "size_bytes").filter(|_| is_fork(&cell.params)).unwrap_or(LINE_BYTES)
}
