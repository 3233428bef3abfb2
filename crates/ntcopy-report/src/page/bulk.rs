//! Copies and fills in user space.

use maud::{Markup, html};
use ntcopy_bench::record::Record;

use super::figure;
use crate::bulk::{self, Grid};
use crate::plot::{self, PlotError};
use crate::{published, text};

/// The charts and the tables.
pub(super) fn section(index: usize, record: &Record) -> Result<Markup, PlotError> {
    let charts = plot::curves::of(record);
    let charts = charts.iter().enumerate().map(|(number, built)| {
        let caption = html! { (built.caption) };
        figure::figure(&format!("r{index}c{number}"), record, &built.chart, &caption)
    });
    let charts = charts.collect::<Result<Vec<Markup>, PlotError>>()?;
    Ok(html! {
        @for chart in &charts { (chart) }
        @for grid in &bulk::grids(record) { (table(grid)) }
        @if record.header.experiment == "memcpy" {
            p { "An asterisk marks the best peer of a row." }
        }
        @for grid in &published(record) { (table(grid)) }
    })
}

/// What others published of the same experiment, in tables of their own.
fn published(record: &Record) -> Vec<Grid> {
    let header = |words: [&str; 4]| words.map(str::to_owned).into();
    let fills = published::fills().into_iter().map(|fills| Grid {
        heading: format!("Published: {}, GB/s", fills.cpu),
        header: header(["size", &fills.temporal, "MOVNTI", "ratio"]),
        rows: fills
            .rows
            .iter()
            .map(|(mib, temporal, nt)| {
                let rate = |gigabytes: &f64| format!("{gigabytes:.1}");
                let ratio = text::ratio(nt / temporal);
                vec![text::size(mib << 20), rate(temporal), rate(nt), ratio]
            })
            .collect(),
    });
    let walks = published::walks().into_iter().map(|walks| Grid {
        heading: format!("Published: a sum, CPU {}, ms", walks.cpu),
        header: header(["", "row", "column", "ratio"]),
        rows: vec![vec![
            "sum".to_owned(),
            text::thousands(walks.row_major_ms),
            text::thousands(walks.column_major_ms),
            text::ratio(walks.row_major_ms / walks.column_major_ms),
        ]],
    });
    match record.header.experiment.as_str() {
        "memset" => fills.collect(),
        "order" => walks.collect(),
        "pages" => pages(),
        "net" => net(),
        "pingpong" => pingpong(),
        _ => Vec::new(),
    }
}

/// The change of 2011 that gave devices `tx-nocache-copy`.
fn net() -> Vec<Grid> {
    let rows = published::net().into_iter().map(|net| {
        let row = |mode: &str, tps: f64, cpu: f64, latency: [f64; 3]| {
            let mut row = vec![mode.to_owned(), text::thousands(tps), format!("{cpu:.1} %")];
            row.extend(latency.map(text::thousands));
            row
        };
        Grid {
            heading: format!("Published: {}, CPU {}", net.label, net.cpu),
            header: ["mode", "per second", "CPU", "p50 us", "p90", "p95"].map(str::to_owned).into(),
            rows: vec![
                row("copy", net.copy_tps, net.copy_cpu_percent, net.copy_latency_p50_p90_p95_us),
                row("nocache", net.nt_tps, net.nt_cpu_percent, net.nt_latency_p50_p90_p95_us),
            ],
        }
    });
    rows.collect()
}

/// What sockperf said of a network card with DDIO off and on.
fn pingpong() -> Vec<Grid> {
    let rows = published::pingpong().into_iter().map(|played| {
        let row = |name: &str, half: &published::PublishedHalf| {
            let us = [half.avg, half.std, half.min, half.p50, half.p99, half.p99_9, half.p99_999];
            let mut row = vec![name.to_owned()];
            row.extend(us.iter().chain([&half.max]).map(|us| format!("{us:.3}")));
            row
        };
        Grid {
            heading: format!(
                "Published: half a round trip of {} over a network, microseconds, {}",
                text::size(played.message_bytes),
                played.cpu
            ),
            header: ["", "mean", "deviation", "min", "p50", "p99", "p99.9", "p99.999", "max"]
                .map(str::to_owned)
                .into(),
            rows: vec![row("DDIO off", &played.ddio_off), row("DDIO on", &played.ddio_on)],
        }
    });
    rows.collect()
}

/// The loops of 2004: how much faster than `rep` each routine made them.
fn pages() -> Vec<Grid> {
    let loops = published::pages().into_iter().map(|pages| Grid {
        heading: format!(
            "Published: the kernel's {}_page(), CPU {}, s",
            pages.operation, pages.cpu
        ),
        header: ["buffer", "rep", "MMX", "ratio", "MMX, non-temporal", "ratio"]
            .map(str::to_owned)
            .into(),
        rows: pages
            .rows
            .iter()
            .map(|(kib, rep, temporal, nontemporal)| {
                let seconds = |time: &f64| format!("{time:.3}");
                vec![
                    text::size(kib << 10),
                    seconds(rep),
                    seconds(temporal),
                    text::ratio(rep / temporal),
                    seconds(nontemporal),
                    text::ratio(rep / nontemporal),
                ]
            })
            .collect(),
    });
    loops.collect()
}

pub(super) fn table(grid: &Grid) -> Markup {
    let second = grid.header.get(1).map(String::as_str);
    let class = if matches!(second, Some("way" | "mode")) { "figures ways" } else { "figures" };
    html! {
        section class="group" {
            h3 { (grid.heading) }
            div class="scroll wide" role="region" aria-label=(grid.heading) tabindex="0" {
                table class=(class) {
                    thead {
                        tr {
                            @for name in &grid.header { th scope="col" { (name) } }
                        }
                    }
                    tbody {
                        @for row in &grid.rows {
                            tr {
                                @for (index, cell) in row.iter().enumerate() {
                                    @if index == 0 { th scope="row" { (cell) } }
                                    @else { td { (cell) } }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}
