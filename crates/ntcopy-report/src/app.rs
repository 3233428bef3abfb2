//! A program with small requests beside large ones: how long the small ones took, what came of the
//! large ones, and what that cost.

use ntcopy_record::stats::app::{Capacity, Served, capacities, limit_ns, limit_words, served};
use ntcopy_record::{Cell, Params, Record};
use serde_json::{Value, json};

use crate::text;
use crate::versus::{Grid, boots, compared, number, ratio, short, verdict, word};

const SMALL: [&str; 9] = [
    "connections",
    "mode",
    "p50 us",
    "p99",
    "p99.9",
    "p50 ratio",
    "p99 ratio",
    "verdict",
    "answers",
];

/// The CPU seconds are the program's, per 10^9 bytes.
const LARGE: [&str; 8] =
    ["connections", "mode", "GB/s", "ratio", "verdict", "NT", "CPU s/GB", "less CPU"];

/// The header for cells in which the most multigets within a limit were searched for.
const WITHIN: [&str; 7] =
    ["connections", "mode", "multigets/s", "ratio", "verdict", "found in", "large GB/s"];

/// What a table reports of its cells.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Subject {
    Small,
    Large,
    Within,
}

impl Subject {
    fn header(self) -> &'static [&'static str] {
        match self {
            Subject::Small => &SMALL,
            Subject::Large => &LARGE,
            Subject::Within => &WITHIN,
        }
    }

    /// Whether there is something to report of a cell.
    fn is_of(self, cell: &Cell) -> bool {
        limit_ns(&cell.params).is_some() == (self == Subject::Within)
    }
}

/// The tables of a record: cells that differ only in their connections in one.
pub(crate) fn grids(record: &Record) -> Vec<Grid> {
    let mut grids: Vec<Grid> = Vec::new();
    for subject in [Subject::Small, Subject::Large, Subject::Within] {
        for cell in record.cells.iter().filter(|cell| subject.is_of(cell)) {
            let heading = heading(&cell.params, subject);
            if !grids.iter().any(|grid| grid.heading == heading) {
                let header = subject.header().iter().map(|name| (*name).to_owned()).collect();
                grids.push(Grid { heading: heading.clone(), header, rows: Vec::new() });
            }
            let grid = grids.iter_mut().find(|grid| grid.heading == heading);
            if let Some(grid) = grid {
                grid.rows.extend(rows(record, cell, subject));
            }
        }
    }
    grids
}

/// A row for each mode; the place only in the first.
fn rows(record: &Record, cell: &Cell, subject: Subject) -> Vec<Vec<String>> {
    let baseline = record.header.baseline.as_str();
    let modes = served(record, cell);
    let mut rows: Vec<Vec<String>> = match subject {
        Subject::Small => modes.iter().map(|mode| small_row(mode, baseline)).collect(),
        Subject::Large => {
            let large = modes.iter().filter(|mode| mode.bytes_per_s.is_some());
            large.map(|mode| large_row(mode, baseline)).collect()
        }
        Subject::Within => {
            let found = capacities(record, cell);
            let has_none = found.iter().any(|mode| mode.mode == baseline && mode.held == 0);
            found.iter().map(|mode| within_row(mode, (baseline, has_none))).collect()
        }
    };
    if let Some(first) = rows.first_mut() {
        first[0] = label(&cell.params);
    }
    rows
}

fn small_row(mode: &Served, baseline: &str) -> Vec<String> {
    let us = |ns: Option<f64>| ns.map_or("-".to_owned(), |ns| text::thousands(ns / 1000.0));
    let [p50, _, p99, p999] = mode.quantiles_ns.map(us);
    let answers = text::thousands(mode.answers as f64);
    vec![
        String::new(),
        mode.mode.clone(),
        p50,
        p99,
        p999,
        ratio(mode.p50.as_ref()),
        ratio(mode.p99.as_ref()),
        verdict(mode.p99.as_ref(), mode.mode == baseline),
        match mode.unanswered {
            0 => answers,
            late => format!("{answers}, {} late", text::thousands(late as f64)),
        },
    ]
}

fn large_row(mode: &Served, baseline: &str) -> Vec<String> {
    vec![
        String::new(),
        mode.mode.clone(),
        mode.bytes_per_s.map_or_else(String::new, text::gigabytes_fine),
        ratio(mode.throughput.as_ref()),
        verdict(mode.throughput.as_ref(), mode.mode == baseline),
        mode.nontemporal_part.map_or_else(String::new, text::percent),
        mode.cpu_s_per_gb.map_or_else(|| "-".to_owned(), |seconds| format!("{seconds:.3}")),
        short(mode.per_cpu.as_ref()),
    ]
}

fn within_row(mode: &Capacity, (baseline, has_none): (&str, bool)) -> Vec<String> {
    let is_baseline = mode.mode == baseline;
    vec![
        String::new(),
        mode.mode.clone(),
        mode.per_s.map_or_else(|| "none".to_owned(), text::thousands),
        ratio(mode.versus.as_ref()),
        match has_none && !is_baseline {
            true => format!("{baseline} has none"),
            false => verdict(mode.versus.as_ref(), is_baseline),
        },
        format!("{} of {}", mode.held, mode.searches),
        mode.bytes_per_s.map_or_else(String::new, text::gigabytes_fine),
    ]
}

/// What a chart of one cell is of.
pub(crate) fn place(params: &Params) -> String {
    format!("{}, connections {}", heading(params, Subject::Small), label(params))
}

fn heading(params: &Params, subject: Subject) -> String {
    let mut words = Vec::new();
    let size = |name: &str| number(params, name).map(text::size);
    let app = word(params, "app").unwrap_or("a program");
    let large = match (size("large_bytes"), size("dataset_bytes")) {
        (Some(one), Some(all)) => format!("large values of {one} out of {all}"),
        _ => "large values".to_owned(),
    };
    let rate = match word(params, "large_rate") {
        Some("max") | None => "without a pause".to_owned(),
        Some(rate) => match rate.parse::<f64>() {
            Ok(part) => format!("at {part} of what copy does alone"),
            Err(_) => format!("at {rate}"),
        },
    };
    match subject {
        Subject::Small | Subject::Within => {
            let keys = number(params, "multiget_keys").unwrap_or(0);
            let of = size("small_bytes").unwrap_or_default();
            words.push(format!("{app}, multigets of {keys} values of {of} beside {large}, {rate}"));
        }
        Subject::Large => words.push(format!("{app}, {large}, {rate}")),
    }
    match [number(params, "server_cpu"), number(params, "client_cpu")] {
        [Some(server), Some(client)] if server == client => {
            words.push("program and client on one CPU".to_owned());
        }
        [Some(server), Some(client)] => {
            words.push(format!("the program on CPU {server}, the client on CPU {client}"));
        }
        _ => {}
    }
    words.extend(boots(params));
    words.push(match subject {
        Subject::Small => "a ratio above 1 is shorter".to_owned(),
        Subject::Large => "CPU s/GB of the program".to_owned(),
        Subject::Within => {
            let limit = limit_words(limit_ns(params).unwrap_or_default());
            format!("the most multigets per second at p99 <= {limit}")
        }
    });
    words.join(", ")
}

/// Connections, and what is offered on a schedule.
fn label(params: &Params) -> String {
    let connections = number(params, "connections").map_or_else(String::new, |n| n.to_string());
    match number(params, "offered_bytes_per_s") {
        Some(rate) => format!("{connections}, {} GB/s", text::gigabytes_fine(rate as f64)),
        None => connections,
    }
}

/// What `--json` adds: everything that the tables have, as numbers.
pub(crate) fn json(record: &Record) -> Value {
    let cells = record.cells.iter().map(|cell| {
        if let Some(limit_ns) = limit_ns(&cell.params) {
            let modes = capacities(record, cell);
            let modes: Vec<Value> = modes.iter().map(capacity_json).collect();
            return json!({"params": cell.params, "p99_limit_ns": limit_ns, "modes": modes});
        }
        let modes = served(record, cell);
        let modes: Vec<Value> = modes.iter().map(mode_json).collect();
        json!({"params": cell.params, "modes": modes})
    });
    cells.collect::<Vec<Value>>().into()
}

fn capacity_json(mode: &Capacity) -> Value {
    let lowest = mode.lowest.map(
        |lowest| json!({"multigets_per_s": lowest.per_s, "p99_ns": lowest.p99_ns.round() as u64}),
    );
    json!({
        "mode": mode.mode,
        "multigets_per_s": mode.per_s,
        "multigets_per_s_within_p99": compared(&mode.versus),
        "searches": mode.searches,
        "found": mode.held,
        "lowest": lowest,
        "large_bytes_per_s": mode.bytes_per_s.map(|rate| rate.round() as u64),
    })
}

fn mode_json(mode: &Served) -> Value {
    let [p50, p90, p99, p999] = mode.quantiles_ns.map(|ns| ns.map(|ns| ns as u64));
    json!({
        "mode": mode.mode,
        "latency_ns": {"p50": p50, "p90": p90, "p99": p99, "p99.9": p999},
        "p50": compared(&mode.p50),
        "p99": compared(&mode.p99),
        "answers": mode.answers,
        "unanswered": mode.unanswered,
        "large_bytes_per_s": mode.bytes_per_s.map(|rate| rate.round() as u64),
        "throughput": compared(&mode.throughput),
        "cpu_s_per_gb": mode.cpu_s_per_gb,
        "per_cpu": compared(&mode.per_cpu),
        "nontemporal_part": mode.nontemporal_part,
    })
}
