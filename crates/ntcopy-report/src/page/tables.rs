//! Tables of a record, and what others published of its experiment.

use maud::{Markup, html};
use ntcopy_record::{ExperimentKind, Record};

use super::{figure, scroll_wide};
use crate::experiment;
use crate::plot::curves;
use crate::published::{self, PublishedPages};
use crate::text;
use crate::view::Grid;

/// A published loop: KiB; seconds with `rep`, with MMX, with MMX past the cache.
type Loop = (u64, f64, f64, f64);

/// The charts and the tables.
pub(super) fn section(index: usize, record: &Record) -> Markup {
    let shown = experiment::shown(record);
    let charts = curves::all(record, &shown.views(record));
    let grids = shown.grids(record);
    html! {
        @if record.cells.is_empty() { p { "The record holds no cells." } }
        (figure::built(&format!("r{index}c"), record, &charts))
        (tables(&format!("r{index}t"), &grids))
        (tables(&format!("r{index}p"), &published(record)))
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
    match record.header.experiment {
        ExperimentKind::Memset => fills.collect(),
        ExperimentKind::Order => walks.collect(),
        ExperimentKind::Pages => pages(),
        ExperimentKind::Net => net(),
        ExperimentKind::Pingpong => pingpong(),
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
            let percentiles = half.percentiles().map(|(_, us)| us);
            let us = [&[half.avg, half.std, half.min], &percentiles[..], &[half.max]].concat();
            let mut row = vec![name.to_owned()];
            row.extend(us.iter().map(|us| format!("{us:.3}")));
            row
        };
        let percentiles = played.ddio_off.percentiles().map(|(percent, _)| format!("p{percent}"));
        let header = [&["", "mean", "deviation", "min"].map(str::to_owned)[..], &percentiles];
        Grid {
            heading: format!(
                "Published: half a round trip of {} over a network, microseconds, {}",
                text::size(played.message_bytes),
                played.cpu
            ),
            header: [&header.concat()[..], &["max".to_owned()]].concat(),
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
        header: page_header(!pages.mixed.is_empty()),
        rows: pages.rows.iter().map(|row| page_row(&pages, *row)).collect(),
    });
    loops.collect()
}

/// Columns of a loop; the last two where normal clears and non-temporal copies were tried together.
fn page_header(is_mixed: bool) -> Vec<String> {
    let mut header = vec!["buffer", "rep", "MMX", "ratio", "MMX, non-temporal", "ratio"];
    if is_mixed {
        header.extend(["MMX, only copies non-temporal", "ratio"]);
    }
    header.into_iter().map(str::to_owned).collect()
}

fn page_row(pages: &PublishedPages, (kib, rep, temporal, nontemporal): Loop) -> Vec<String> {
    let mut row = vec![text::size(kib << 10), format!("{rep:.3}")];
    let mut add = |seconds: Option<f64>| {
        row.push(seconds.map_or("-".to_owned(), |seconds| format!("{seconds:.3}")));
        row.push(seconds.map_or("-".to_owned(), |seconds| text::ratio(rep / seconds)));
    };
    add(Some(temporal));
    add(Some(nontemporal));
    if !pages.mixed.is_empty() {
        add(pages.mixed_s(kib));
    }
    row
}

/// The tables of a record; their ids begin with `ids`.
pub(super) fn tables(ids: &str, grids: &[Grid]) -> Markup {
    html! {
        @for (number, grid) in grids.iter().enumerate() { (table(&format!("{ids}{number}"), grid)) }
    }
}

fn table(id: &str, grid: &Grid) -> Markup {
    let second = grid.header.get(1).map(String::as_str);
    let class = if matches!(second, Some("way" | "mode")) { "figures ways" } else { "figures" };
    let table = html! {
        table class=(class) {
            thead { tr { @for name in &grid.header { (head(name)) } } }
            @for group in groups(&grid.rows) { (rows(group)) }
        }
    };
    html! { section class="group" { h4 id=(id) { (grid.heading) } (scroll_wide(id, &table)) } }
}

/// What stands above a column; above one of names, nothing may.
fn head(name: &str) -> Markup {
    html! { @if name.is_empty() { td {} } @else { th scope="col" { (name) } } }
}

/// Rows that belong together: those without a name of their own to the one before them. All in
/// one where each has its name.
fn groups(rows: &[Vec<String>]) -> Vec<&[Vec<String>]> {
    let has_name = |row: &Vec<String>| row.first().is_some_and(|name| !name.is_empty());
    if rows.iter().all(has_name) {
        return vec![rows];
    }
    rows.chunk_by(|_, next| !has_name(next)).collect()
}

fn rows(group: &[Vec<String>]) -> Markup {
    let is_one_name = group.get(1).is_some_and(|row| row[0].is_empty());
    html! {
        tbody {
            @for (at, row) in group.iter().enumerate() {
                tr {
                    @if is_one_name {
                        @if at == 0 { th scope="rowgroup" rowspan=(group.len()) { (row[0]) } }
                    } @else { th scope="row" { (row[0]) } }
                    @for cell in &row[1..] {
                        // The verdict in its own words; the colour only repeats them.
                        td class=[["win", "loss"].contains(&cell.as_str()).then_some(cell)] { (cell) }
                    }
                }
            }
        }
    }
}
