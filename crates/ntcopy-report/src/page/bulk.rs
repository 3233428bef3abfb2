//! Copies and fills in user space.

use maud::{Markup, html};
use ntcopy_bench::record::Record;

use crate::bulk::{self, Grid};
use crate::{published, text};

/// The tables.
pub(super) fn section(record: &Record) -> Markup {
    html! {
        @for grid in &bulk::grids(record) { (table(grid)) }
        @if record.header.experiment == "memcpy" {
            p { "An asterisk marks the best peer of a row." }
        }
        @for grid in &published(record) { (table(grid)) }
    }
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
        _ => Vec::new(),
    }
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
    html! {
        section class="group" {
            h3 { (grid.heading) }
            div class="scroll wide" role="region" aria-label=(grid.heading) tabindex="0" {
                table {
                    thead {
                        tr {
                            @for (index, name) in grid.header.iter().enumerate() {
                                th scope="col" class=[(index > 0).then_some("number")] { (name) }
                            }
                        }
                    }
                    tbody {
                        @for row in &grid.rows {
                            tr {
                                @for (index, cell) in row.iter().enumerate() {
                                    @if index == 0 { th scope="row" { (cell) } }
                                    @else { td class="number" { (cell) } }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}
