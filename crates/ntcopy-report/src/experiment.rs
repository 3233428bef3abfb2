//! What each experiment has to show, a row for each experiment.

use ntcopy_judge::experiments::{Of, experiment};
use ntcopy_judge::stats::{
    ANSWERED, BACKEND_CPU, BOTH_CPU_US, CLIENT_CPU, CLIENT_CPU_US, FORK_US, GB_PER_S, LINE_P50_NS,
    LINE_P99_NS, MEAN_US, METRICS, NONTEMPORAL, P50, P50_US, P90_US, P95_US, P99, P99_US, P999_US,
    PER_CPU, PROGRAM_CPU, PROXY_CPU, SEND_SHARE, SERVER_CPU_US, SERVERS_CPU, THROUGHPUT, Use,
    WALKS, WALKS_P99,
};
use ntcopy_judge::{Judged, Measured};
use ntcopy_record::{Cell, ExperimentKind, Sends, word};

use crate::view::{self, Column, Curve, Grid, View, What, column, figures};
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

/// How long answers took, and how many there were.
fn waits<const N: usize>(quantiles: [&'static str; N]) -> Vec<Column> {
    let mut columns = figures(quantiles).to_vec();
    columns.push(column("p50 ratio", "", What::Short(P50)));
    columns.push(column("p99 ratio", "", What::Ratio(P99)));
    columns.push(column("verdict", "", What::Verdict(P99)));
    columns.push(column("answers", "answers", What::Answers));
    columns
}

const PERCENTILES: &[f64] = &[0.5, 0.9, 0.95, 0.99, 0.999, 0.9999, 0.99999];

fn sends() -> Vec<View> {
    let mut columns = figures([GB_PER_S, SEND_SHARE, NONTEMPORAL]).to_vec();
    columns.extend(compared(THROUGHPUT));
    let curves = vec![Curve::Along(GB_PER_S), Curve::Ratios];
    vec![View { is_of: every, note: "", columns, curves }]
}

const HOT_SET: &str = "ns per line; slow-down relative to idle, speed and the whole of traffic \
                       and walks relative to the baseline";

fn hot_sets() -> Vec<View> {
    let mut columns = figures([LINE_P50_NS, LINE_P99_NS]).to_vec();
    columns.extend([
        column("slow-down", "slow_down", What::SlowDown),
        column("speed ratio", "", What::Ratio(WALKS)),
        column("verdict", "", What::Verdict(WALKS)),
        column("p99 ratio", "", What::Ratio(WALKS_P99)),
    ]);
    columns.extend(figures([GB_PER_S]));
    columns.push(column("whole", "", What::Short(THROUGHPUT)));
    let curves = vec![Curve::Along(LINE_P50_NS), Curve::Along(LINE_P99_NS)];
    vec![View { is_of: every, note: HOT_SET, columns, curves }]
}

fn http(record: &Judged) -> Vec<View> {
    let mut columns = figures([GB_PER_S]).to_vec();
    columns.extend(compared(THROUGHPUT));
    let copies_nothing = |mode: &str| record.header.sends(mode) == Sends::CopiesNothing;
    let mut note = "CPU seconds per GB of proxy, backend, client";
    if record.modes.iter().any(|mode| copies_nothing(mode)) {
        columns.push(column("of ceiling", "part_of_ceiling", What::OfCeiling));
        note = "of ceiling: part of the gain of a backend that copies nothing, above 3 %; CPU \
                seconds per GB of proxy, backend, client";
    }
    columns.extend(figures([NONTEMPORAL, PROXY_CPU, BACKEND_CPU, CLIENT_CPU]));
    columns.push(column("less CPU", "", What::Short(PER_CPU)));
    let curves = vec![Curve::Along(GB_PER_S), Curve::Along(SERVERS_CPU)];
    vec![
        View { is_of: is_closed, note, columns, curves },
        View {
            is_of: is_open,
            note: SHORTER,
            columns: waits([P50_US, P90_US, P99_US, P999_US]),
            curves: vec![Curve::ByPercentile(PERCENTILES)],
        },
    ]
}

fn net() -> Vec<View> {
    let mut columns = figures([ANSWERED]).to_vec();
    columns.extend(compared(THROUGHPUT));
    columns.extend(figures([NONTEMPORAL, CLIENT_CPU_US, SERVER_CPU_US]));
    columns.push(column("less CPU", "", What::Short(PER_CPU)));
    let curves = vec![Curve::Along(ANSWERED), Curve::Along(BOTH_CPU_US)];
    let note = "without a pause; CPU time for a transaction";
    vec![
        View { is_of: is_closed, note, columns, curves },
        View {
            is_of: every,
            note: SHORTER,
            columns: waits([P50_US, P90_US, P95_US, P99_US, P999_US]),
            curves: vec![Curve::ByPercentile(PERCENTILES)],
        },
    ]
}

fn pingpong() -> Vec<View> {
    let mut columns = figures([MEAN_US]).to_vec();
    columns.extend(waits([P50_US, P99_US, P999_US]));
    let curves = vec![Curve::ByPercentile(PERCENTILES)];
    vec![View {
        is_of: every,
        note: "half a round trip; a ratio above 1 is shorter",
        columns,
        curves,
    }]
}

fn app() -> Vec<View> {
    let mut large = figures([GB_PER_S]).to_vec();
    large.extend(compared(THROUGHPUT));
    large.extend(figures([NONTEMPORAL, PROGRAM_CPU]));
    large.push(column("less CPU", "", What::Short(PER_CPU)));
    let curves = vec![Curve::ByPercentile(PERCENTILES)];
    vec![
        View {
            is_of: every,
            note: "small requests; a ratio above 1 is shorter",
            columns: waits([P50_US, P99_US, P999_US]),
            curves,
        },
        View { is_of: every, note: "large values", columns: large, curves: vec![] },
    ]
}

/// Copies, fills, pages and walks in user space.
fn ways() -> Vec<View> {
    let view = |is_of: fn(&Cell) -> bool, figure: &'static str| {
        let mut columns = figures([figure]).to_vec();
        columns.extend(compared(THROUGHPUT));
        let curves = vec![Curve::Along(figure), Curve::Ratios];
        View { is_of, note: "", columns, curves }
    };
    vec![view(|cell| !is_fork(cell), GB_PER_S), view(is_fork, FORK_US)]
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
