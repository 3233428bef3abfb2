//! Tables of a record, and what others published of its experiment.

use maud::{Markup, html};
use ntcopy_judge::Judged;
use ntcopy_judge::stats::Verdict;

use super::{figure, scroll_wide};
use crate::experiment;
use crate::plot::curves;
use crate::published;
use crate::view::{Entry, Grid};

/// The charts and the tables.
pub(super) fn section(index: usize, record: &Judged) -> Markup {
    let charts = curves::all(record, &experiment::views(record));
    let grids = experiment::grids(record);
    html! {
        @if record.cells.is_empty() { p { "The record holds no cells." } }
        (figure::built(&format!("r{index}c"), record, &charts))
        (tables(&format!("r{index}t"), &grids))
        (tables(&format!("r{index}p"), &published::tables(record)))
    }
}

/// The tables of a record; their ids begin with `ids`.
pub(super) fn tables(ids: &str, grids: &[Grid]) -> Markup {
    html! {
        @for (number, grid) in grids.iter().enumerate() { (table(&format!("{ids}{number}"), grid)) }
    }
}

fn table(id: &str, grid: &Grid) -> Markup {
    let table = scroll_wide(id, &figures(grid));
    html! { section class="group" { h4 id=(id) { (grid.heading) } (table) } }
}

/// A table without its heading.
fn figures(grid: &Grid) -> Markup {
    html! {
        table class=(if grid.by_mode { "figures ways" } else { "figures" }) {
            thead { tr { @for name in &grid.header { (head(name)) } } }
            @for group in groups(&grid.rows) { (rows(group)) }
        }
    }
}

/// What stands above a column; above one of names, nothing may.
fn head(name: &str) -> Markup {
    html! { @if name.is_empty() { td {} } @else { th scope="col" { (name) } } }
}

/// Rows that belong together: those without a name of their own to the one before them. All in
/// one where each has its name.
fn groups(rows: &[Vec<Entry>]) -> Vec<&[Vec<Entry>]> {
    let has_name = |row: &Vec<Entry>| row.first().is_some_and(|name| !name.text.is_empty());
    if rows.iter().all(has_name) {
        return vec![rows];
    }
    rows.chunk_by(|_, next| !has_name(next)).collect()
}

fn rows(group: &[Vec<Entry>]) -> Markup {
    let is_one_name = group.get(1).is_some_and(|row| row[0].text.is_empty());
    html! {
        tbody {
            @for (at, row) in group.iter().enumerate() {
                @let name = &row[0].text;
                tr {
                    @if is_one_name {
                        @if at == 0 { th scope="rowgroup" rowspan=(group.len()) { (name) } }
                    } @else { th scope="row" { (name) } }
                    @for entry in &row[1..] { td class=[colour(entry)] { (entry.text) } }
                }
            }
        }
    }
}

/// The colour only repeats what the words of a verdict say.
fn colour(entry: &Entry) -> Option<&'static str> {
    let differs = |verdict: &Verdict| matches!(verdict, Verdict::Win | Verdict::Loss);
    entry.verdict.filter(differs).map(Verdict::as_str)
}
