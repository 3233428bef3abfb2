//! Clients and servers: what went through and what it cost, by connections; how long it took, by
//! percentile.

use ntcopy_record::stats::app::{Served, served};
use ntcopy_record::stats::http::{Through, Waited, is_open, through, waited};
use ntcopy_record::stats::net::{Exchanged, exchanged};
use ntcopy_record::stats::pingpong::{PERCENTILES, Played, played};
use ntcopy_record::{Cell, ExperimentKind, Params, Record};

use super::{Built, fitted, groups, ours, panel, theirs};
use crate::plot::chart::{Axis, Line, Point, rarity};
use crate::plot::slot;
use crate::published::{self, PublishedHalf};
use crate::versus::{number, word};
use crate::{app, http, net, text};

/// The percentiles of an HTTP client's waits.
const HTTP: [f64; 4] = [50.0, 90.0, 99.0, 99.9];
/// The percentiles of requests and responses.
const NET: [f64; 5] = [50.0, 90.0, 95.0, 99.0, 99.9];

/// Charts of a proxy's clients.
pub(crate) fn of_http(record: &Record) -> Vec<Built> {
    let load = Load {
        heading: http::heading,
        done: |record, cell| {
            // Client, proxy, backend: the client is not what is held to account.
            let cpu = |seconds: [f64; 3]| seconds[1] + seconds[2];
            let told =
                |mode: Through| (mode.mode, mode.bytes_per_s / 1e9, mode.cpu_s_per_gb.map(cpu));
            through(record, cell).into_iter().map(told).collect()
        },
        throughput: ("GB/s", "Throughput"),
        cpu: ("CPU s/GB", "CPU time of proxy and backend for 10^9 bytes"),
        beside: |cells, _| proxied(cells),
    };
    let mut all = load.charts(record);
    all.extend(latencies(record, |cell| {
        let told = |mode: Waited| (mode.mode, us(&mode.quantiles_ns, &HTTP));
        let modes = || waited(record, cell).into_iter().map(told).collect();
        is_open(cell).then(|| (http::place(&cell.params), modes()))
    }));
    all
}

/// Charts of requests and responses.
pub(crate) fn of_net(record: &Record) -> Vec<Built> {
    let load = Load {
        heading: net::through_heading,
        done: |record, cell| {
            let cpu = |us: [f64; 2]| us.iter().sum();
            let told = |mode: Exchanged| (mode.mode, mode.per_s, mode.cpu_us.map(cpu));
            exchanged(record, cell).into_iter().map(told).collect()
        },
        throughput: ("per second", "Transactions per second"),
        cpu: ("CPU us", "CPU time of client and server for a transaction"),
        beside: exchanges,
    };
    let mut all = load.charts(record);
    all.extend(latencies(record, |cell| {
        let told = |mode: Exchanged| (mode.mode, us(&mode.quantiles_ns, &NET));
        let modes = exchanged(record, cell).into_iter().map(told).collect();
        Some((net::place(&cell.params), modes))
    }));
    all.extend(published_latency(published::net().into_iter().flat_map(|net| {
        let line = |mode: &str, slot, us: [f64; 3]| {
            let points = [2, 10, 20].into_iter().zip(us);
            theirs(format!("published: {mode}, {}", net.label), slot, points)
        };
        [
            line("copy", 6, net.copy_latency_p50_p90_p95_us),
            line("nocache", 7, net.nt_latency_p50_p90_p95_us),
        ]
    })));
    all
}

/// Charts of messages there and back.
pub(crate) fn of_pingpong(record: &Record) -> Vec<Built> {
    let mut all = latencies(record, |cell| {
        let told = |mode: Played| (mode.mode, us(&mode.percentiles_ns.map(Some), &PERCENTILES));
        let modes = played(record, cell).into_iter().map(told).collect();
        Some((net::pingpong::place(&cell.params), modes))
    });
    all.extend(published_latency(published::pingpong().into_iter().flat_map(|played| {
        let line = |what: &str, slot, half: &PublishedHalf| {
            // The axis begins where half of the messages were faster.
            let points = half.percentiles().into_iter().filter(|(p, _)| *p >= 50.0);
            let points = points.map(|(percent, us)| (rarity(percent), us));
            theirs(format!("published: {what}, {}", played.cpu), slot, points)
        };
        [line("DDIO off", 6, &played.ddio_off), line("DDIO on", 7, &played.ddio_on)]
    })));
    all
}

/// Charts of a program's small requests.
pub(crate) fn of_app(record: &Record) -> Vec<Built> {
    latencies(record, |cell| {
        let told = |mode: Served| (mode.mode, us(&mode.quantiles_ns, &HTTP));
        let modes = served(record, cell).into_iter().map(told).collect();
        Some((app::place(&cell.params), modes))
    })
}

/// A mode, its throughput, its CPU cost.
type Done = (String, f64, Option<f64>);

/// What went through and what it cost, by connections.
struct Load {
    heading: fn(&Params) -> String,
    /// What each mode of a cell did.
    done: fn(&Record, &Cell) -> Vec<Done>,
    /// Unit and words.
    throughput: (&'static str, &'static str),
    cpu: (&'static str, &'static str),
    /// What others published of the same, in words: on the scale of another machine, and with a
    /// number of connections that is not stated, it has no place among the lines.
    beside: fn(&[&Cell], is_cpu: bool) -> String,
}

impl Load {
    fn charts(&self, record: &Record) -> Vec<Built> {
        let mut all = Vec::new();
        for (heading, mut cells) in groups(record, |cell| (self.heading)(&cell.params)) {
            // On a schedule the throughput is what was offered, and a second point at each place.
            cells.retain(|cell| !is_open(cell));
            all.extend(
                [false, true]
                    .into_iter()
                    .filter_map(|is_cpu| self.by_connections(record, &heading, &cells, is_cpu)),
            );
        }
        all
    }

    fn by_connections(
        &self,
        record: &Record,
        heading: &str,
        cells: &[&Cell],
        is_cpu: bool,
    ) -> Option<Built> {
        let mut lines: Vec<Line> = Vec::new();
        for cell in cells {
            let at = number(&cell.params, "connections")?;
            for (index, (mode, rate, cpu)) in (self.done)(record, cell).into_iter().enumerate() {
                let value = if is_cpu { cpu } else { Some(rate) };
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
        let (unit, words) = if is_cpu { self.cpu } else { self.throughput };
        let chart = fitted((Axis::Count("connections".into()), unit), None, lines, Vec::new())?;
        let better = if is_cpu { "Lower is better." } else { "Higher is better." };
        let heading = heading.trim_end_matches(", CPU s/GB of proxy, backend, client");
        Some(Built::new(words, heading, (better, &(self.beside)(cells, is_cpu)), chart))
    }
}

fn all_are(cells: &[&Cell], name: &str, wanted: &str) -> bool {
    cells.iter().all(|cell| word(&cell.params, name) == Some(wanted))
}

/// The chain of proxy and backend.
fn proxied(cells: &[&Cell]) -> String {
    if !all_are(cells, "scheme", "plain") {
        return String::new();
    }
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

/// Requests and responses of 2011. The CPU time of a transaction cannot be computed from a share of
/// all CPUs whose number is not stated; how it changed can.
fn exchanges(cells: &[&Cell], is_cpu: bool) -> String {
    if !all_are(cells, "family", "tcp") {
        return String::new();
    }
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
                "Published: {} became {} per second, {}, CPU {} ({}).",
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

/// Latencies as points, by percentile.
fn us(quantiles: &[Option<f64>], of: &[f64]) -> Vec<Point> {
    let known = of.iter().zip(quantiles).filter_map(|(percent, ns)| Some((percent, (*ns)?)));
    let known = known.filter(|(percent, _)| **percent >= 50.0);
    known.map(|(p, ns)| Point { at: rarity(*p), value: ns / 1e3, ci: None }).collect()
}

/// A cell's heading, and its modes with their points.
type Latencies = (String, Vec<(String, Vec<Point>)>);

/// How long answers took.
fn latencies(record: &Record, of: impl Fn(&Cell) -> Option<Latencies>) -> Vec<Built> {
    let chart = |cell: &Cell| {
        let (heading, modes) = of(cell)?;
        let line = |(index, (mode, points)): (usize, (String, Vec<Point>))| {
            let slot = slot(&mode, index);
            ours(mode, slot, points)
        };
        let lines = modes.into_iter().enumerate().map(line).collect();
        let chart = fitted((Axis::Rarity, "us"), None, lines, Vec::new())?;
        Some(Built::new("Latency by percentile", &heading, ("Lower is better.", ""), chart))
    };
    record.cells.iter().filter_map(chart).collect()
}

/// What others published of latencies, in a panel of its own.
fn published_latency(lines: impl Iterator<Item = Line>) -> Option<Built> {
    panel((Axis::Rarity, "us"), "Published latencies by percentile.", lines.collect())
}
