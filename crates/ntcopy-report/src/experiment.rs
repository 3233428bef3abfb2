//! What each experiment has to show, a row for each experiment.

use ntcopy_judge::experiments::{Of, experiment};
use ntcopy_judge::stats::{
    BACKEND_CPU, BOTH_CPU_US, CLIENT_CPU, CLIENT_CPU_US, METRICS, P50, P99, PER_CPU, PROXY_CPU,
    SERVER_CPU, SERVER_CPU_US, SERVERS_CPU, THROUGHPUT, Use, WALKS, WALKS_P99,
};
use ntcopy_judge::{Judged, Measured};
use ntcopy_record::{Cell, ExperimentKind, Sends, word};

use crate::view::{self, Column, Curve, Grid, View, What, column};
use crate::{footprint, turns};

/// What the cells of an experiment show.
fn own_views(record: &Judged) -> Vec<View> {
    use ExperimentKind::*;
    match record.header.experiment {
        Retention => hot_sets(),
        App => app(),
        Http => http(record),
        Net => net(),
        Pingpong => pingpong(),
        Memcpy | Memset | Pages | Order => ways(),
        Unix | Try | Footprint | Other(_) => sends(),
    }
}

pub(crate) fn views(record: &Judged) -> Vec<View> {
    if experiment(&record.header.experiment).of != Of::Cells {
        return Vec::new();
    }
    let mut views = own_views(record);
    views.extend(other_metrics(record, &views));
    views.extend(events(record));
    views
}

pub(crate) fn grids(record: &Judged) -> Vec<Grid> {
    match experiment(&record.header.experiment).of {
        Of::Cells => view::grids(record, &views(record)),
        Of::Turns => turns::grids(record),
        Of::Calls => footprint::grids(record),
    }
}

const SHORTER: &str = "a ratio above 1 is shorter";

fn every(_: &Cell) -> bool {
    true
}

fn is_open(cell: &Cell) -> bool {
    word(&cell.params, "form") == Some("open")
}

fn is_closed(cell: &Cell) -> bool {
    !is_open(cell)
}

fn is_fork(cell: &Cell) -> bool {
    word(&cell.params, "form") == Some("fork")
}

/// A metric relative to the baseline, with its verdict.
fn compared(metric: &'static str) -> [Column; 2] {
    [column("ratio", "", What::Ratio(metric)), column("verdict", "", What::Verdict(metric))]
}

fn rate() -> Column {
    column("GB/s", "gb_per_s", What::Rate)
}

fn higher(title: &'static str, unit: &'static str, what: What) -> Curve {
    Curve::Along { title, unit, what, how: "Higher is better." }
}

fn lower(title: &'static str, unit: &'static str, what: What) -> Curve {
    Curve::Along { title, unit, what, how: "Lower is better." }
}

fn rate_curve() -> Curve {
    higher("Throughput", "GB/s", What::Rate)
}

const RATIOS: Curve = Curve::Along {
    title: "Throughput relative to the baseline",
    unit: "times the baseline",
    what: What::Ratio(THROUGHPUT),
    how: "Above 1 the mode wins.",
};

fn nontemporal() -> Column {
    column("NT", "nontemporal_part", What::NonTemporal)
}

/// How long answers took, and how many there were.
fn waits(parts: &[(f64, &str)]) -> Vec<Column> {
    let quantile = |(part, name): &(f64, &str)| {
        column(&format!("{name} us"), &format!("{name}_us"), What::QuantileUs(*part))
    };
    let mut columns: Vec<Column> = parts.iter().map(quantile).collect();
    columns.push(column("p50 ratio", "", What::Short(P50)));
    columns.push(column("p99 ratio", "", What::Ratio(P99)));
    columns.push(column("verdict", "", What::Verdict(P99)));
    columns.push(column("answers", "answers", What::Answers));
    columns
}

const TAIL: [(f64, &str); 4] = [(0.5, "p50"), (0.9, "p90"), (0.99, "p99"), (0.999, "p99.9")];
const PERCENTILES: &[f64] = &[0.5, 0.9, 0.95, 0.99, 0.999, 0.9999, 0.99999];

fn sends() -> Vec<View> {
    let mut columns =
        vec![rate(), column("in sends", "send_share", What::SendShare), nontemporal()];
    columns.extend(compared(THROUGHPUT));
    vec![View { is_of: every, note: "", columns, curves: vec![rate_curve(), RATIOS] }]
}

/// What a line of a hot set takes beside each mode, and what becomes of the traffic.
fn hot_set_columns() -> Vec<Column> {
    vec![
        column("p50 ns", "line_p50_ns", What::LineNs(0.5)),
        column("p99 ns", "line_p99_ns", What::LineNs(0.99)),
        column("slow-down", "slow_down", What::SlowDown),
        column("speed ratio", "", What::Ratio(WALKS)),
        column("verdict", "", What::Verdict(WALKS)),
        column("p99 ratio", "", What::Ratio(WALKS_P99)),
        rate(),
        column("whole", "", What::Short(THROUGHPUT)),
    ]
}

const HOT_SET: &str = "ns per line; slow-down relative to idle, speed and the whole of traffic \
                       and walks relative to the baseline";

fn hot_sets() -> Vec<View> {
    let curve = |title, part| lower(title, "ns per line", What::LineNs(part));
    let curves = vec![
        curve("Time of a line of the hot set", 0.5),
        curve("Time of a line of the hot set, 99th percentile", 0.99),
    ];
    vec![View { is_of: every, note: HOT_SET, columns: hot_set_columns(), curves }]
}

fn http(record: &Judged) -> Vec<View> {
    let cpu = |head: &str, metric: &'static str| column(head, metric, What::CpuPerGb(metric));
    let mut columns = vec![rate()];
    columns.extend(compared(THROUGHPUT));
    let copies_nothing = |mode: &str| record.header.sends(mode) == Sends::CopiesNothing;
    let mut note = "CPU seconds per GB of proxy, backend, client";
    if record.modes.iter().any(|mode| copies_nothing(mode)) {
        columns.push(column("of ceiling", "part_of_ceiling", What::OfCeiling));
        note = "of ceiling: part of the gain of a backend that copies nothing, above 3 %; CPU \
                seconds per GB of proxy, backend, client";
    }
    columns.extend([
        nontemporal(),
        cpu("proxy", PROXY_CPU),
        cpu("backend", BACKEND_CPU),
        cpu("client", CLIENT_CPU),
        column("less CPU", "", What::Short(PER_CPU)),
    ]);
    let both = What::CpuPerGb(SERVERS_CPU);
    let cost = lower("CPU time of proxy and backend for 10^9 bytes", "CPU s/GB", both);
    let curves = vec![rate_curve(), cost];
    vec![
        View { is_of: is_closed, note, columns, curves },
        View {
            is_of: is_open,
            note: SHORTER,
            columns: waits(&TAIL),
            curves: vec![Curve::ByPercentile(PERCENTILES)],
        },
    ]
}

fn net() -> Vec<View> {
    let cpu = |head: &str, metric: &'static str| column(head, metric, What::CpuPerAnswer(metric));
    let mut columns = vec![column("per second", "transactions_per_s", What::AnsweredPerS)];
    columns.extend(compared(THROUGHPUT));
    columns.extend([
        nontemporal(),
        cpu("client us", CLIENT_CPU_US),
        cpu("server us", SERVER_CPU_US),
        column("less CPU", "", What::Short(PER_CPU)),
    ]);
    let both = What::CpuPerAnswer(BOTH_CPU_US);
    let curves = vec![
        higher("Transactions per second", "per second", What::AnsweredPerS),
        lower("CPU time of client and server for a transaction", "CPU us", both),
    ];
    let parts = [TAIL[0], TAIL[1], (0.95, "p95"), TAIL[2], TAIL[3]];
    let note = "without a pause; CPU time for a transaction";
    vec![
        View { is_of: is_closed, note, columns, curves },
        View {
            is_of: every,
            note: SHORTER,
            columns: waits(&parts),
            curves: vec![Curve::ByPercentile(PERCENTILES)],
        },
    ]
}

fn pingpong() -> Vec<View> {
    let mut columns = vec![column("mean us", "mean_us", What::MeanUs)];
    columns.extend(waits(&[TAIL[0], TAIL[2], TAIL[3]]));
    let curves = vec![Curve::ByPercentile(PERCENTILES)];
    vec![View {
        is_of: every,
        note: "half a round trip; a ratio above 1 is shorter",
        columns,
        curves,
    }]
}

fn app() -> Vec<View> {
    let mut large = vec![rate()];
    large.extend(compared(THROUGHPUT));
    large.extend([
        nontemporal(),
        column("CPU s/GB", SERVER_CPU, What::CpuPerGb(SERVER_CPU)),
        column("less CPU", "", What::Short(PER_CPU)),
    ]);
    let curves = vec![Curve::ByPercentile(PERCENTILES)];
    vec![
        View {
            is_of: every,
            note: "small requests; a ratio above 1 is shorter",
            columns: waits(&[TAIL[0], TAIL[2], TAIL[3]]),
            curves,
        },
        View { is_of: every, note: "large values", columns: large, curves: vec![] },
    ]
}

/// Copies, fills, pages and walks in user space.
fn ways() -> Vec<View> {
    let view = |is_of: fn(&Cell) -> bool, head: Column, curve: Curve| {
        let mut columns = vec![head];
        columns.extend(compared(THROUGHPUT));
        View { is_of, note: "", columns, curves: vec![curve, RATIOS] }
    };
    let forks = lower("Time of a fork", "us per fork", What::ForkUs);
    vec![
        view(|cell| !is_fork(cell), rate(), rate_curve()),
        view(is_fork, column("us per fork", "fork_us", What::ForkUs), forks),
    ]
}

/// What is judged and in no other table: so a new metric is shown without a column of its own.
fn other_metrics(record: &Judged, views: &[View]) -> Option<View> {
    let columns = || views.iter().flat_map(|view| &view.columns);
    let is_shown = |name| columns().any(|column| column.what.metric() == Some(name));
    let all: Vec<Measured<'_>> =
        record.cells.iter().flat_map(|cell| record.measured(cell)).collect();
    let has = |name| all.iter().any(|one| one.median(name).is_some());
    let others = METRICS.iter().filter(|metric| metric.used == Use::Judged);
    let others = others.filter(|metric| !is_shown(metric.name) && has(metric.name));
    let columns: Vec<Column> = others
        .flat_map(|metric| {
            let ratio = column(metric.words, "", What::Ratio(metric.name));
            [ratio, column("verdict", "", What::Verdict(metric.name))]
        })
        .collect();
    let note = "other figures relative to the baseline";
    (!columns.is_empty()).then_some(View { is_of: every, note, columns, curves: vec![] })
}

/// Bytes of a cache line: what core events are counted by.
const LINE_BYTES: f64 = 64.0;

/// A table of the hardware events that were counted: memory traffic for a byte of payload, others
/// for a line of it.
fn events(record: &Judged) -> Option<View> {
    let one = |name: &String| {
        let bytes = if name.ends_with("-bytes") { 1.0 } else { LINE_BYTES };
        column(name, &name.replace('-', "_"), What::Event(name.clone(), bytes))
    };
    let columns: Vec<Column> = record.events.iter().map(one).collect();
    let note = "hardware events per line of 64 bytes, memory traffic per byte; ~ is scaled";
    (!columns.is_empty()).then_some(View { is_of: every, note, columns, curves: vec![] })
}
