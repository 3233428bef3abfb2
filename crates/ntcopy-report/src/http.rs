//! Clients of a proxy: what went through, what it cost, how long answers took, and what was left of
//! a hot set beside the backend.

use ntcopy_record::stats::http::{Through, Waited, is_open, through, waited};
use ntcopy_record::stats::retention::{Felt, felt};
use ntcopy_record::{Cell, Params, Record};
use serde_json::{Value, json};

use crate::text;
use crate::versus::{Grid, boots, compared, number, ratio, short, verdict, word};

/// CPU seconds of the processes per 10^9 bytes; `less CPU` is that of proxy and backend.
const THROUGH: [&str; 10] = [
    "connections",
    "mode",
    "GB/s",
    "ratio",
    "verdict",
    "NT",
    "proxy",
    "backend",
    "client",
    "less CPU",
];

const WAITED: [&str; 10] = [
    "connections",
    "mode",
    "p50 us",
    "p90",
    "p99",
    "p99.9",
    "p50 ratio",
    "p99 ratio",
    "verdict",
    "answers",
];

/// What a victim beside the backend felt; the ratio is its speed by that beside the baseline.
const KEPT: [&str; 6] = ["connections", "mode", "hot set, ns per line", "p99", "ratio", "verdict"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    Through,
    Waited,
    Kept,
}

impl Of {
    /// Whether a cell has rows in such a table.
    fn has(self, cell: &Cell) -> bool {
        match self {
            Of::Through => !is_open(cell),
            Of::Waited => is_open(cell),
            Of::Kept => number(&cell.params, "hot_set_bytes").is_some(),
        }
    }

    fn header(self) -> Vec<String> {
        match self {
            Of::Through => THROUGH.map(str::to_owned).into(),
            Of::Waited => WAITED.map(str::to_owned).into(),
            Of::Kept => KEPT.map(str::to_owned).into(),
        }
    }

    fn heading(self, params: &Params) -> String {
        let units = match self {
            Of::Through => "CPU s/GB of proxy, backend, client",
            Of::Waited => "a ratio above 1 is shorter",
            Of::Kept => "a ratio above 1 is faster",
        };
        format!("{}, {units}", common(params))
    }

    /// A row for each mode; the place only in the first.
    fn rows(self, record: &Record, cell: &Cell) -> Vec<Vec<String>> {
        let baseline = record.header.baseline.as_str();
        let mut rows: Vec<Vec<String>> = match self {
            Of::Through => {
                through(record, cell).iter().map(|one| through_row(one, baseline)).collect()
            }
            Of::Waited => {
                waited(record, cell).iter().map(|one| waited_row(one, baseline)).collect()
            }
            Of::Kept => felt(record, cell).iter().map(|one| kept_row(one, baseline)).collect(),
        };
        if let Some(first) = rows.first_mut() {
            first[0] = label(&cell.params);
        }
        rows
    }
}

/// The tables of a record: cells that differ only in their connections in one.
pub(crate) fn grids(record: &Record) -> Vec<Grid> {
    let mut grids: Vec<Grid> = Vec::new();
    for of in [Of::Through, Of::Waited, Of::Kept] {
        for cell in record.cells.iter().filter(|cell| of.has(cell)) {
            let heading = of.heading(&cell.params);
            let grid = match grids.iter().position(|grid| grid.heading == heading) {
                Some(index) => &mut grids[index],
                None => {
                    grids.push(Grid { heading, header: of.header(), rows: Vec::new() });
                    grids.last_mut().expect("one was put there")
                }
            };
            grid.rows.extend(of.rows(record, cell));
        }
    }
    grids
}

fn through_row(through: &Through, baseline: &str) -> Vec<String> {
    let versus = through.throughput.as_ref();
    let cpu = |process: usize| {
        through.cpu_s_per_gb.map_or("-".to_owned(), |seconds| format!("{:.3}", seconds[process]))
    };
    vec![
        String::new(),
        through.mode.clone(),
        text::gigabytes_fine(through.bytes_per_s),
        ratio(versus),
        verdict(versus, through.mode == baseline),
        through.nontemporal_part.map_or_else(String::new, text::percent),
        cpu(1),
        cpu(2),
        cpu(0),
        short(through.per_cpu.as_ref()),
    ]
}

fn waited_row(waited: &Waited, baseline: &str) -> Vec<String> {
    let us = |ns: Option<f64>| ns.map_or("-".to_owned(), |ns| text::thousands(ns / 1000.0));
    let [p50, p90, p99, p999] = waited.quantiles_ns.map(us);
    let answers = text::thousands(waited.answers as f64);
    vec![
        String::new(),
        waited.mode.clone(),
        p50,
        p90,
        p99,
        p999,
        short(waited.p50.as_ref()),
        ratio(waited.p99.as_ref()),
        verdict(waited.p99.as_ref(), waited.mode == baseline),
        match waited.unanswered {
            0 => answers,
            late => format!("{answers}, {} late", text::thousands(late as f64)),
        },
    ]
}

fn kept_row(felt: &Felt, baseline: &str) -> Vec<String> {
    let versus = felt.against_baseline.as_ref();
    vec![
        String::new(),
        felt.mode.clone(),
        text::line_ns(felt.p50_ns, felt.ci),
        format!("{:.1}", felt.p99_ns),
        ratio(versus),
        verdict(versus, felt.mode == baseline),
    ]
}

/// What a chart of one cell is of.
pub(crate) fn place(params: &Params) -> String {
    format!("{}, connections and rate {}", common(params), label(params))
}

/// What a chart's cells have in common.
pub(crate) fn heading(params: &Params) -> String {
    let of = if word(params, "form") == Some("open") { Of::Waited } else { Of::Through };
    of.heading(params)
}

/// What cells that differ only in their connections have in common.
fn common(params: &Params) -> String {
    let is_on_schedule = word(params, "form") == Some("open");
    let how = if is_on_schedule { "On a schedule" } else { "Without a pause" };
    let mut words = vec![how.to_owned()];
    words.extend(word(params, "stack").map(|stacks| stacks.replace(',', " and ")));
    words.extend(word(params, "scheme").map(|scheme| match scheme {
        "plain" => "HTTP".to_owned(),
        "tls" => "HTTPS".to_owned(),
        "ktls" => "HTTPS by the kernel's TLS".to_owned(),
        other => other.to_owned(),
    }));
    words.extend(word(params, "transport").map(|how| match number(params, "mtu_bytes") {
        Some(mtu) => format!("TCP to a backend behind devices ({how}, packets of {mtu} bytes)"),
        None => format!("{how} sockets to the backend"),
    }));
    words.extend(word(params, "congestion").map(|name| format!("congestion control {name}")));
    let (object, data) = (number(params, "object_bytes"), number(params, "dataset_bytes"));
    if let (Some(object), Some(data)) = (object, data) {
        words.push(format!("objects of {} out of {}", text::size(object), text::size(data)));
    }
    words.extend(number(params, "workers").map(|workers| match workers {
        1 => "a worker each".to_owned(),
        more => format!("{more} workers each"),
    }));
    words.extend(boots(params));
    words.extend(
        number(params, "sndbuf_bytes").map(|b| format!("send buffers of {}", text::size(b))),
    );
    words.extend(
        number(params, "nginx_buffer_bytes")
            .map(|b| format!("nginx's buffers of {}", text::size(b))),
    );
    words.extend(
        number(params, "haproxy_pipe_bytes")
            .map(|b| format!("HAProxy's pipes of {}", text::size(b))),
    );
    words.extend(word(params, "splice").map(|how| format!("HAProxy's splicing {how}")));
    words.extend(
        number(params, "hot_set_bytes")
            .map(|b| format!("a hot set of {} on the backend's CPU", text::size(b))),
    );
    match ["client_cpu", "proxy_cpu", "backend_cpu"].map(|name| number(params, name)) {
        [Some(client), Some(proxy), Some(backend)] => {
            words.push(format!("client, proxy, backend on CPU {client}, {proxy}, {backend}"));
        }
        [_, _, Some(backend)] => words.push(format!("the backend on CPU {backend}")),
        _ => {}
    }
    words.join(", ")
}

fn label(params: &Params) -> String {
    let connections = number(params, "connections").map_or_else(String::new, |n| n.to_string());
    match number(params, "offered_requests_per_1000_s") {
        Some(offered) => format!("{connections}, {}/s", text::thousands(offered as f64 / 1000.0)),
        None => connections,
    }
}

/// What `--json` adds: everything that the tables have, as numbers.
pub(crate) fn json(record: &Record) -> Value {
    let cpu = |seconds: Option<[f64; 3]>| {
        seconds.map(|[client, proxy, backend]| {
            json!({"client": client, "proxy": proxy, "backend": backend})
        })
    };
    let cells = record.cells.iter().map(|cell| {
        let mut modes: Vec<Value> = Vec::new();
        modes.extend(through(record, cell).iter().map(|through| {
            json!({
                "mode": through.mode,
                "bytes_per_s": through.bytes_per_s.round() as u64,
                "throughput": compared(&through.throughput),
                "cpu_s_per_gb": cpu(through.cpu_s_per_gb),
                "per_cpu": compared(&through.per_cpu),
                "nontemporal_part": through.nontemporal_part,
            })
        }));
        modes.extend(waited(record, cell).iter().map(|waited| {
            let [p50, p90, p99, p999] = waited.quantiles_ns.map(|ns| ns.map(|ns| ns as u64));
            json!({
                "mode": waited.mode,
                "latency_ns": {"p50": p50, "p90": p90, "p99": p99, "p99.9": p999},
                "p50": compared(&waited.p50),
                "p99": compared(&waited.p99),
                "answers": waited.answers,
                "unanswered": waited.unanswered,
                "cpu_s_per_gb": cpu(waited.cpu_s_per_gb),
            })
        }));
        let mut told = json!({"params": cell.params, "modes": modes});
        let kept = felt(record, cell);
        if !kept.is_empty() {
            told["hot_set"] = kept.iter().map(kept_json).collect();
        }
        told
    });
    cells.collect::<Vec<Value>>().into()
}

/// What a victim felt beside one mode: nanoseconds a line, and its speed by the baseline's.
fn kept_json(felt: &Felt) -> Value {
    json!({
        "mode": felt.mode,
        "line_ns": {"p50": felt.p50_ns, "p99": felt.p99_ns},
        "walks": felt.walks,
        "speed": compared(&felt.against_baseline),
    })
}
