//! Messages there and back, as sockperf prints them, and as a comparison.

use ntcopy_record::stats::pingpong::{PERCENTILES, Played, played};
use ntcopy_record::{Cell, Params, Record};
use serde_json::{Value, json};

use super::cpus;
use crate::text;
use crate::versus::{Grid, compared, number, ratio, verdict, word};

const HEADER: [&str; 10] = [
    "message",
    "mode",
    "mean us",
    "99 % interval",
    "p50",
    "p99",
    "p99.9",
    "p50 ratio",
    "verdict",
    "p99 ratio",
];

/// A table for each family; a row for each mode with each message.
pub(crate) fn grids(record: &Record) -> Vec<Grid> {
    let mut grids: Vec<Grid> = Vec::new();
    for cell in &record.cells {
        let heading = heading(&cell.params);
        if grids.last().is_none_or(|grid| grid.heading != heading) {
            grids.push(Grid { heading, header: HEADER.map(str::to_owned).into(), rows: vec![] });
        }
        let mut rows: Vec<Vec<String>> =
            played(record, cell).iter().map(|mode| row(record, mode)).collect();
        if let Some(first) = rows.first_mut() {
            first[0] = number(&cell.params, "message_bytes").map_or_else(String::new, text::size);
        }
        if let Some(grid) = grids.last_mut() {
            grid.rows.extend(rows);
        }
    }
    grids
}

fn row(record: &Record, mode: &Played) -> Vec<String> {
    let is_baseline = mode.mode == record.header.baseline;
    let [_, _, p999, p99, .., p50, _] = mode.percentiles_ns;
    vec![
        String::new(),
        mode.mode.clone(),
        us(mode.mean_ns),
        format!("+/- {}", interval(mode.ci99_ns)),
        us(p50),
        us(p99),
        us(p999),
        ratio(mode.p50.as_ref()),
        verdict(mode.p50.as_ref(), is_baseline),
        super::short(mode.p99.as_ref()),
    ]
}

/// Microseconds with three digits after the point, as sockperf has them.
fn us(ns: f64) -> String {
    format!("{:.3}", ns / 1000.0)
}

/// The half width of an interval in microseconds, with digits enough not to be nothing.
fn interval(ns: f64) -> String {
    format!("{:.6}", ns / 1000.0)
}

/// What a chart of one cell is of.
pub(crate) fn place(params: &Params) -> String {
    let message = number(params, "message_bytes").map_or_else(String::new, text::size);
    format!("{}, messages of {message}", heading(params))
}

fn heading(params: &Params) -> String {
    let family = word(params, "family").unwrap_or("?");
    let mut words = vec![format!("Half a round trip over {family}, microseconds")];
    words.extend(cpus(params));
    words.push("a ratio above 1 is shorter".to_owned());
    words.join(", ")
}

/// What sockperf prints, for each mode in each cell.
pub(crate) fn blocks(record: &Record) -> String {
    let mut out = String::new();
    for cell in &record.cells {
        for mode in played(record, cell) {
            out.push_str(&block(cell, &mode));
            out.push('\n');
        }
    }
    out
}

fn block(cell: &Cell, mode: &Played) -> String {
    let family = word(&cell.params, "family").unwrap_or("?");
    let message = number(&cell.params, "message_bytes").unwrap_or(0);
    let (mean, count) = (us(mode.mean_ns), mode.messages);
    let mut lines = vec![
        format!("========= {family}, {message}-byte messages, mode {}", mode.mode),
        format!(
            "[Valid Duration] RunTime={:.3} sec; SentMessages={count}; ReceivedMessages={count}",
            mode.elapsed_ns as f64 / 1e9
        ),
        format!(
            "====> avg-latency={mean} (std-dev={}, 99.0% ci=+/-{})",
            us(mode.deviation_ns),
            interval(mode.ci99_ns)
        ),
        // One that did not come, came twice or came early ends a run as an error.
        "# dropped messages = 0; # duplicated messages = 0; # out-of-order messages = 0".to_owned(),
        format!("Summary: Latency is {mean} usec"),
        format!(
            "Total {count} observations; each percentile contains {:.2} observations",
            count as f64 / 100.0
        ),
        format!("---> <MAX> observation = {:>8}", us(mode.max_ns)),
    ];
    let percentiles = PERCENTILES.iter().zip(mode.percentiles_ns);
    lines.extend(
        percentiles.map(|(percent, ns)| format!("---> percentile {percent:6.3} = {:>8}", us(ns))),
    );
    lines.push(format!("---> <MIN> observation = {:>8}", us(mode.min_ns)));
    lines.push(String::new());
    lines.join("\n")
}

/// What `--json` adds: everything that is printed, as numbers.
pub(crate) fn json(record: &Record) -> Value {
    let one = |mode: &Played| {
        let percentiles = PERCENTILES.iter().zip(mode.percentiles_ns);
        let percentiles: serde_json::Map<String, Value> =
            percentiles.map(|(percent, ns)| (format!("p{percent}"), (ns as u64).into())).collect();
        json!({
            "mode": mode.mode,
            "messages": mode.messages,
            "elapsed_ns": mode.elapsed_ns,
            "mean_ns": mode.mean_ns,
            "std_dev_ns": mode.deviation_ns,
            "mean_ci99_ns": mode.ci99_ns,
            "min_ns": mode.min_ns as u64,
            "max_ns": mode.max_ns as u64,
            "latency_ns": percentiles,
            "p50": compared(&mode.p50),
            "p99": compared(&mode.p99),
        })
    };
    let cells = record.cells.iter().map(|cell| {
        let modes: Vec<Value> = played(record, cell).iter().map(one).collect();
        json!({"params": cell.params, "modes": modes})
    });
    cells.collect::<Vec<Value>>().into()
}
