//! Clients and servers: what went through and what it cost, by connections; how long it took, by
//! percentile.

use ntcopy_record::stats::app::served;
use ntcopy_record::stats::http::{is_open, through, waited};
use ntcopy_record::stats::net::exchanged;
use ntcopy_record::stats::pingpong::{PERCENTILES, played};
use ntcopy_record::{Cell, ExperimentKind, Record};

use super::{Built, fitted, groups, ours, panel, theirs};
use crate::plot::chart::{Axis, Line, Point, rarity};
use crate::plot::slot;
use crate::versus::{number, word};
use crate::{app, http, net, published, text};

/// The percentiles of an HTTP client's waits.
const HTTP: [f64; 4] = [50.0, 90.0, 99.0, 99.9];
/// The percentiles of requests and responses.
const NET: [f64; 5] = [50.0, 90.0, 95.0, 99.0, 99.9];

/// Every chart of such a record.
pub(super) fn of(record: &Record) -> Vec<Built> {
    let mut all = Vec::new();
    if record.header.experiment == ExperimentKind::Pingpong || app::is_of_app(record) {
        all.extend(record.cells.iter().filter_map(|cell| latency(record, cell)));
        all.extend(published_latency(record));
        return all;
    }
    let heading = |cell: &Cell| {
        if http::is_of_http(record) {
            http::heading(&cell.params)
        } else {
            net::through_heading(&cell.params)
        }
    };
    for (heading, mut cells) in groups(record, heading) {
        // On a schedule the throughput is what was offered, and a second point at each place.
        cells.retain(|cell| !is_open(cell));
        all.extend(by_connections(record, &heading, &cells, "throughput"));
        all.extend(by_connections(record, &heading, &cells, "CPU"));
    }
    all.extend(record.cells.iter().filter_map(|cell| latency(record, cell)));
    all.extend(published_latency(record));
    all
}

/// What each mode of a cell did: its name, throughput, CPU cost.
fn done(record: &Record, cell: &Cell) -> Vec<(String, f64, Option<f64>)> {
    if http::is_of_http(record) {
        // Client, proxy, backend: the client is not what is held to account.
        let cpu = |seconds: [f64; 3]| seconds[1] + seconds[2];
        let all = through(record, cell).into_iter();
        all.map(|mode| (mode.mode, mode.bytes_per_s / 1e9, mode.cpu_s_per_gb.map(cpu))).collect()
    } else {
        let all = exchanged(record, cell).into_iter();
        all.map(|mode| (mode.mode, mode.per_s, mode.cpu_us.map(|us| us.iter().sum()))).collect()
    }
}

fn by_connections(
    record: &Record,
    heading: &str,
    cells: &[&Cell],
    what: &'static str,
) -> Option<Built> {
    let mut lines: Vec<Line> = Vec::new();
    for cell in cells {
        let at = number(&cell.params, "connections")?;
        for (index, (mode, rate, cpu)) in done(record, cell).into_iter().enumerate() {
            let value = if what == "CPU" { cpu } else { Some(rate) };
            let Some(value) = value else { continue };
            let point = Point { at, value, ci: None };
            match lines.iter_mut().find(|line| line.name == mode) {
                Some(line) => line.points.push(point),
                None => {
                    let slot = slot(&mode, index);
                    lines.push(ours(mode, slot, vec![point]));
                }
            }
        }
    }
    lines.iter_mut().for_each(|line| line.points.sort_by_key(|point| point.at));
    let is_http = http::is_of_http(record);
    let (unit, words) = match (what, is_http) {
        ("CPU", true) => ("CPU s/GB", "CPU time of proxy and backend for 10^9 bytes"),
        ("CPU", false) => ("CPU us", "CPU time of client and server for a transaction"),
        (_, true) => ("GB/s", "Throughput"),
        (_, false) => ("a second", "Transactions a second"),
    };
    let axis = (Axis::Count("connections"), unit);
    let chart = fitted(axis, None, lines, Vec::new())?;
    let better = if what == "CPU" { "Lower is better." } else { "Higher is better." };
    let heading = heading.trim_end_matches(", CPU s/GB of proxy, backend, client");
    Some(Built::new(words, heading, (better, &beside(record, cells, what)), chart))
}

/// What others published of the same, in words: on the scale of another machine, and with a number
/// of connections that is not stated, it has no place among the lines.
fn beside(record: &Record, cells: &[&Cell], what: &str) -> String {
    let all = |name: &str, wanted: &str| {
        cells.iter().all(|cell| word(&cell.params, name) == Some(wanted))
    };
    match record.header.experiment {
        ExperimentKind::Http if all("scheme", "plain") => proxied(),
        ExperimentKind::Net if all("family", "tcp") => exchanges(what == "CPU"),
        _ => String::new(),
    }
}

/// The chain of proxy and backend.
fn proxied() -> String {
    let said = published::of(&ExperimentKind::Http).into_iter().map(|pair| {
        format!(
            "Published: {} to {} Mbit/s, {}, {} ({}).",
            text::thousands(pair.copy_mbit_per_s),
            text::thousands(pair.nt_mbit_per_s),
            text::ratio(pair.ratio()),
            pair.cpu,
            pair.label
        )
    });
    said.collect::<Vec<String>>().join(" ")
}

/// Requests and responses of 2011. The CPU time of a transaction cannot be told from a share of all
/// CPUs whose number is not stated; how it changed can.
fn exchanges(is_cpu: bool) -> String {
    let said = published::net().into_iter().map(|net| {
        if is_cpu {
            format!(
                "Published: {:.2} % of the machine's CPU time became {:.2} %, which is {} for a \
                 transaction, CPU {} ({}); of how many CPUs is not stated.",
                net.copy_cpu_percent,
                net.nt_cpu_percent,
                text::ratio(net.cpu_ratio()),
                net.cpu,
                net.label
            )
        } else {
            format!(
                "Published: {} became {} a second, {}, CPU {} ({}).",
                text::thousands(net.copy_tps),
                text::thousands(net.nt_tps),
                text::ratio(net.nt_tps / net.copy_tps),
                net.cpu,
                net.label
            )
        }
    });
    said.collect::<Vec<String>>().join(" ")
}

/// How long answers took, by percentile.
fn latency(record: &Record, cell: &Cell) -> Option<Built> {
    let us = |quantiles: &[Option<f64>], of: &[f64]| -> Vec<Point> {
        let known = of.iter().zip(quantiles).filter_map(|(percent, ns)| Some((percent, (*ns)?)));
        let known = known.filter(|(percent, _)| **percent >= 50.0);
        known.map(|(p, ns)| Point { at: rarity(*p), value: ns / 1e3, ci: None }).collect()
    };
    let (heading, modes): (String, Vec<(String, Vec<Point>)>) = match record.header.experiment {
        ExperimentKind::Pingpong => {
            let all = played(record, cell).into_iter();
            let told = |ns: [f64; 8]| us(&ns.map(Some), &PERCENTILES);
            let all = all.map(|mode| (mode.mode, told(mode.percentiles_ns)));
            (net::pingpong::place(&cell.params), all.collect())
        }
        ExperimentKind::Net => {
            let all = exchanged(record, cell).into_iter();
            let all = all.map(|mode| (mode.mode, us(&mode.quantiles_ns, &NET)));
            (net::place(&cell.params), all.collect())
        }
        ExperimentKind::App => {
            let all = served(record, cell).into_iter();
            let all = all.map(|mode| (mode.mode, us(&mode.quantiles_ns, &HTTP)));
            (app::place(&cell.params), all.collect())
        }
        _ if !is_open(cell) => return None,
        _ => {
            let all = waited(record, cell).into_iter();
            let all = all.map(|mode| (mode.mode, us(&mode.quantiles_ns, &HTTP)));
            (http::place(&cell.params), all.collect())
        }
    };
    let lines: Vec<Line> = modes
        .into_iter()
        .enumerate()
        .map(|(index, (mode, points))| {
            let slot = slot(&mode, index);
            ours(mode, slot, points)
        })
        .collect();
    let chart = fitted((Axis::Rarity, "us"), None, lines, Vec::new())?;
    Some(Built::new("Latency by percentile", &heading, ("Lower is better.", ""), chart))
}

/// What others published of latencies, in a panel of its own.
fn published_latency(record: &Record) -> Option<Built> {
    let lines = published_lines(record);
    panel((Axis::Rarity, "us"), "Published latencies by percentile.", lines)
}

fn published_lines(record: &Record) -> Vec<Line> {
    match record.header.experiment {
        ExperimentKind::Net => {
            let all = published::net().into_iter().flat_map(|net| {
                let line = |mode: &str, slot, us: [f64; 3]| {
                    let points = [2, 10, 20].into_iter().zip(us);
                    theirs(format!("published: {mode}, {}", net.label), slot, points)
                };
                [
                    line("copy", 6, net.copy_latency_p50_p90_p95_us),
                    line("nocache", 7, net.nt_latency_p50_p90_p95_us),
                ]
            });
            all.collect()
        }
        ExperimentKind::Pingpong => {
            let all = published::pingpong().into_iter().flat_map(|played| {
                let line = |what: &str, slot, half: &published::PublishedHalf| {
                    // The axis begins where half of the messages were faster.
                    let points = half.percentiles().into_iter().filter(|(p, _)| *p >= 50.0);
                    let points = points.map(|(percent, us)| (rarity(percent), us));
                    theirs(format!("published: {what}, {}", played.cpu), slot, points)
                };
                [line("DDIO off", 6, &played.ddio_off), line("DDIO on", 7, &played.ddio_on)]
            });
            all.collect()
        }
        _ => Vec::new(),
    }
}
