//! Requests and responses, and messages there and back.

pub(crate) mod pingpong;

use ntcopy_record::stats::http::is_open;
use ntcopy_record::stats::net::{Exchanged, exchanged};
use ntcopy_record::{Cell, Params, Record};
use serde_json::{Value, json};

use crate::text;
use crate::versus::{Grid, compared, number, ratio, short, verdict, word};

/// CPU microseconds of the processes for a transaction; `less CPU` is that of both.
const THROUGH: [&str; 9] = [
    "connections",
    "mode",
    "per second",
    "ratio",
    "verdict",
    "NT",
    "client us",
    "server us",
    "less CPU",
];

const WAITED: [&str; 10] = [
    "connections",
    "mode",
    "p50 us",
    "p90",
    "p95",
    "p99",
    "p99.9",
    "p50 ratio",
    "p99 ratio",
    "verdict",
];

/// What a table reports of its cells.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Subject {
    /// How much went through without a pause.
    Through,
    RoundTrips,
    /// How long it took at an offered rate.
    OnSchedule,
}

/// The tables of a record: cells that differ only in their connections in one.
pub(crate) fn grids(record: &Record) -> Vec<Grid> {
    let mut grids: Vec<Grid> = Vec::new();
    for subject in [Subject::Through, Subject::RoundTrips, Subject::OnSchedule] {
        let wants_open = subject == Subject::OnSchedule;
        for cell in record.cells.iter().filter(|cell| is_open(cell) == wants_open) {
            let heading = heading(&cell.params, subject);
            if grids.last().is_none_or(|grid| grid.heading != heading) {
                let header: &[&str] = if subject == Subject::Through { &THROUGH } else { &WAITED };
                let header = header.iter().map(|name| (*name).to_owned()).collect();
                grids.push(Grid { heading, header, rows: Vec::new() });
            }
            if let Some(grid) = grids.last_mut() {
                grid.rows.extend(rows(record, cell, subject));
            }
        }
    }
    grids
}

/// A row for each mode; the place only in the first.
fn rows(record: &Record, cell: &Cell, subject: Subject) -> Vec<Vec<String>> {
    let baseline = record.header.baseline.as_str();
    let modes = exchanged(record, cell);
    let mut rows: Vec<Vec<String>> = modes
        .iter()
        .map(|mode| match subject {
            Subject::Through => through_row(mode, baseline),
            Subject::RoundTrips | Subject::OnSchedule => waited_row(mode, baseline),
        })
        .collect();
    if let Some(first) = rows.first_mut() {
        first[0] = label(&cell.params);
    }
    rows
}

fn through_row(mode: &Exchanged, baseline: &str) -> Vec<String> {
    let versus = mode.throughput.as_ref();
    let cpu = |process: usize| {
        mode.cpu_us.map_or("-".to_owned(), |microseconds| format!("{:.2}", microseconds[process]))
    };
    vec![
        String::new(),
        mode.mode.clone(),
        text::thousands(mode.per_s),
        ratio(versus),
        verdict(versus, mode.mode == baseline),
        mode.nontemporal_part.map_or_else(String::new, text::percent),
        cpu(0),
        cpu(1),
        short(mode.per_cpu.as_ref()),
    ]
}

fn waited_row(mode: &Exchanged, baseline: &str) -> Vec<String> {
    let us = |ns: &Option<f64>| ns.map_or("-".to_owned(), microseconds);
    let mut row = vec![String::new(), mode.mode.clone()];
    row.extend(mode.quantiles_ns.iter().map(us));
    row.push(short(mode.p50.as_ref()));
    row.push(ratio(mode.p99.as_ref()));
    let verdict = verdict(mode.p99.as_ref(), mode.mode == baseline);
    row.push(match mode.unanswered {
        0 => verdict,
        late => format!("{verdict}, {} late", text::thousands(late as f64)),
    });
    row
}

/// `15.3`, and without its fraction from 100 on.
fn microseconds(ns: f64) -> String {
    if ns < 100_000.0 { format!("{:.1}", ns / 1000.0) } else { text::thousands(ns / 1000.0) }
}

/// Where the processes were kept, if anywhere.
pub(super) fn cpus(params: &Params) -> Option<String> {
    let (client, server) = (number(params, "client_cpu")?, number(params, "server_cpu")?);
    Some(format!("client on CPU {client}, server on CPU {server}"))
}

/// What cells that differ in their connections have in common.
pub(crate) fn through_heading(params: &Params) -> String {
    heading(params, Subject::Through)
}

/// What a chart of one cell is of.
pub(crate) fn place(params: &Params) -> String {
    let subject = if word(params, "form") == Some("open") {
        Subject::OnSchedule
    } else {
        Subject::RoundTrips
    };
    let heading = heading(params, subject);
    let heading = heading.rsplit_once(", ").map_or(heading.as_str(), |(words, _)| words);
    format!("{heading}, connections {}", label(params))
}

/// What a table's rows have in common.
fn heading(params: &Params, subject: Subject) -> String {
    let how = match subject {
        Subject::Through => "Without a pause",
        Subject::RoundTrips => "Round trips without a pause",
        Subject::OnSchedule => "On a schedule",
    };
    let mut words = vec![how.to_owned()];
    words.extend(word(params, "family").map(str::to_owned));
    let size = |name: &str| number(params, name).map(text::size);
    if let (Some(request), Some(response)) = (size("request_bytes"), size("response_bytes")) {
        words.push(format!("{request} for {response}"));
    }
    words.extend(match (word(params, "between"), number(params, "mtu_bytes")) {
        (Some("veth"), Some(mtu)) => {
            Some(format!("between two namespaces (veth, packets of {mtu} bytes)"))
        }
        (Some("loopback"), _) => Some("over the loopback".to_owned()),
        (other, _) => other.map(str::to_owned),
    });
    words.extend(cpus(params));
    words.push(match subject {
        Subject::Through => "CPU time for a transaction".to_owned(),
        Subject::RoundTrips | Subject::OnSchedule => "a ratio above 1 is shorter".to_owned(),
    });
    words.join(", ")
}

/// How many connections, and the rate if there is one.
pub(crate) fn label(params: &Params) -> String {
    let connections = number(params, "connections").map_or_else(String::new, |n| n.to_string());
    match number(params, "offered_requests_per_1000_s") {
        Some(offered) => format!("{connections}, {}/s", text::thousands(offered as f64 / 1000.0)),
        None => connections,
    }
}

/// What `--json` adds: everything that the tables have, as numbers.
pub(crate) fn json(record: &Record) -> Value {
    let one = |mode: &Exchanged| {
        let [p50, p90, p95, p99, p999] = mode.quantiles_ns.map(|ns| ns.map(|ns| ns as u64));
        let cpu_us =
            mode.cpu_us.map(|[client, server]| json!({"client": client, "server": server}));
        json!({
            "mode": mode.mode,
            "transactions_per_s": mode.per_s,
            "throughput": compared(&mode.throughput),
            "cpu_us": cpu_us,
            "per_cpu": compared(&mode.per_cpu),
            "nontemporal_part": mode.nontemporal_part,
            "latency_ns": {"p50": p50, "p90": p90, "p95": p95, "p99": p99, "p99.9": p999},
            "p50": compared(&mode.p50),
            "p99": compared(&mode.p99),
            "answers": mode.answers,
            "unanswered": mode.unanswered,
        })
    };
    let cells = record.cells.iter().map(|cell| {
        let modes: Vec<Value> = exchanged(record, cell).iter().map(one).collect();
        json!({"params": cell.params, "modes": modes})
    });
    cells.collect::<Vec<Value>>().into()
}
