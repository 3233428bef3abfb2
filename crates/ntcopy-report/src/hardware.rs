//! Hardware counters: a table where something was counted, and why not where nothing was.

use comfy_table::{CellAlignment, ContentArrangement, Table, TableStyle, presets};
use ntcopy_record::COUNTED_PERMILLE;
use ntcopy_record::stats;
use ntcopy_record::{Cell, HardwareCounter, Params, Record, Sample};

use crate::net;
use crate::text::{self, cell, cells, wrapped};
use crate::versus::{Grid, number, word};

/// Bytes of a cache line: what core events are counted by.
const LINE_BYTES: f64 = 64.0;

/// More rows than that bury what a terminal shows above them.
const MOST_ROWS: usize = 40;

const WIDTH: u16 = 100;

/// Core events, and memory traffic: a table each where something of it was counted.
pub(crate) fn grids(record: &Record) -> Vec<Grid> {
    let (traffic, events): (Vec<_>, Vec<_>) =
        record.machine.hardware_counters.iter().partition(|counter| is_traffic(counter));
    let tables = [
        ("Hardware events per line of 64 bytes of payload", events),
        ("The machine's memory traffic, bytes a byte of payload", traffic),
    ];
    tables.iter().filter_map(|(heading, counters)| grid(record, heading, counters)).collect()
}

fn grid(record: &Record, heading: &str, counters: &[&HardwareCounter]) -> Option<Grid> {
    let counted = |counter: &&&HardwareCounter| {
        record.samples.iter().any(|sample| sample.counters.contains_key(&counter.name))
    };
    counters.iter().find(counted)?;
    let mut header = vec![String::new(), "mode".to_owned()];
    header.extend(counters.iter().map(|counter| column(&counter.name)));
    let mut rows = Vec::new();
    for cell in &record.cells {
        let mut label = label(cell);
        for mode in stats::modes(record) {
            let samples = record.samples.iter();
            let samples: Vec<&Sample> =
                samples.filter(|s| s.cell == cell.cell && s.mode == mode).collect();
            if samples.is_empty() {
                continue;
            }
            let mut row = vec![std::mem::take(&mut label), mode.to_owned()];
            row.extend(counters.iter().map(|counter| figure(counter, &samples)));
            rows.push(row);
        }
    }
    let scaled = rows.iter().flatten().any(|cell| cell.starts_with('~'));
    let scaled = if scaled { " (~: scaled, since its counter took turns)" } else { "" };
    Some(Grid { heading: format!("{heading}{scaled}"), header, rows })
}

fn is_traffic(counter: &HardwareCounter) -> bool {
    counter.name.ends_with("-bytes")
}

/// Which counters are not to be had and why, those with the same reason together. Ends in no
/// newline; empty where all are to be had, or the record is older than the counters.
pub(crate) fn missing(record: &Record) -> Vec<String> {
    let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
    for counter in &record.machine.hardware_counters {
        let Some(why) = counter.missing.as_deref() else { continue };
        match groups.iter_mut().find(|(other, _)| *other == why) {
            Some((_, names)) => names.push(&counter.name),
            None => groups.push((why, vec![&counter.name])),
        }
    }
    groups.iter().map(|(why, names)| format!("{}: n/a ({why})", names.join(", "))).collect()
}

/// For a terminal; empty where there is nothing to say.
pub(crate) fn terminal(record: &Record) -> String {
    print(record, presets::NOTHING, true)
}

pub(crate) fn markdown(record: &Record) -> String {
    print(record, presets::ASCII_MARKDOWN, false)
}

fn print(record: &Record, style: TableStyle, is_for_terminal: bool) -> String {
    let mut out = String::new();
    for grid in grids(record) {
        if is_for_terminal && grid.rows.len() > MOST_ROWS {
            let rows = grid.rows.len();
            out.push_str(&wrapped(&format!("{}: {rows} rows, with --out.", grid.heading)));
            out.push('\n');
            continue;
        }
        let mut table = Table::new();
        table.load_style(style).set_width(if is_for_terminal { WIDTH } else { u16::MAX });
        table.set_content_arrangement(ContentArrangement::Dynamic);
        table.set_header(cells(&grid.header, is_for_terminal));
        for column in table.column_iter_mut().skip(2) {
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
    let missing = missing(record);
    if !missing.is_empty() && !record.cells.is_empty() {
        let sentence = format!("Hardware counters: {}.", missing.join("; "));
        let sentence = cell(&sentence, is_for_terminal);
        out.push_str(&if is_for_terminal { wrapped(&sentence) } else { sentence + "\n" });
        out.push('\n');
    }
    out
}

/// A name short enough for a column.
fn column(name: &str) -> String {
    match name {
        "instructions" => "instr.",
        "l1d-replacements" => "L1D repl.",
        "llc-loads" => "LLC loads",
        "llc-misses" => "LLC misses",
        "l2-load-misses" => "L2 misses",
        "l3-load-misses" => "L3 misses",
        "dram-read-bytes" => "DRAM read",
        "dram-write-bytes" => "DRAM written",
        "dram-bytes" => "DRAM",
        "mbm-total-bytes" => "MBM total",
        "mbm-local-bytes" => "MBM local",
        other => other,
    }
    .to_owned()
}

/// The median of a mode's samples, or why there is none.
fn figure(counter: &HardwareCounter, samples: &[&Sample]) -> String {
    let per = if is_traffic(counter) { 1.0 } else { LINE_BYTES };
    let figures: Vec<f64> = samples
        .iter()
        .filter(|sample| sample.bytes > 0)
        .filter_map(|sample| {
            let count = *sample.counters.get(&counter.name)? as f64;
            Some(count * per / sample.bytes as f64)
        })
        .collect();
    if figures.is_empty() {
        // Counted, but of no payload: a mode without traffic.
        let counted = samples.iter().any(|sample| sample.counters.contains_key(&counter.name));
        return if counted { "-" } else { "n/a" }.to_owned();
    }
    let mark = format!("{}{COUNTED_PERMILLE}", counter.name);
    let scaled = samples.iter().any(|sample| sample.counters.contains_key(&mark));
    format!("{}{:.2}", if scaled { "~" } else { "" }, stats::median(&figures))
}

fn label(cell: &Cell) -> String {
    let params = &cell.params;
    let size = |name: &str| number(params, name).map(text::size);
    if params.contains_key("connections") {
        return connections(params);
    }
    if let Some(message) = size("message_bytes") {
        return join([word(params, "family").map(str::to_owned), Some(message)]);
    }
    let hot_set = size("hot_set_bytes").map(|size| format!("hot set {size}"));
    hot_set
        .or_else(|| size("in_flight_bytes"))
        .or_else(|| size("size_bytes"))
        .unwrap_or_else(|| format!("cell {}", cell.cell))
}

/// Clients of a server or a proxy: how, what for what, how many.
fn connections(params: &Params) -> String {
    let size = |name: &str| number(params, name).map(text::size);
    let exchange = size("request_bytes").zip(size("response_bytes"));
    join([
        word(params, "family").map(str::to_owned),
        exchange.map(|(request, response)| format!("{request} for {response}")),
        size("object_bytes"),
        Some(net::label(params)),
    ])
}

fn join<const N: usize>(words: [Option<String>; N]) -> String {
    words.into_iter().flatten().collect::<Vec<String>>().join(", ")
}
