//! The experiments that are no comparison of throughputs.

use maud::{Markup, html};
use ntcopy_bench::record::Record;

use super::room::{Part, part};
use super::scroll::scroll;
use crate::{phase, retention};

/// How soon the adaptive hint followed.
pub(super) fn phases(index: usize, record: &Record) -> Markup {
    let rows: Vec<[String; 7]> = phase::all(record).iter().map(phase::row).collect();
    let title = "How soon the share of non-temporal bytes has settled";
    part(Part::Table, &table(&format!("r{index}t"), title, &phase::HEADER, &rows))
}

/// What the victim felt.
pub(super) fn retention(index: usize, record: &Record) -> Markup {
    let maps = match retention::is_of_copies(record) {
        true => super::retention::section(index, record),
        false => super::retention::sends::section(index, record),
    };
    part(Part::Table, &maps)
}

fn table<const N: usize>(
    id: &str,
    title: &str,
    header: &[&str; N],
    rows: &[[String; N]],
) -> Markup {
    let table = html! {
        table class="figures" {
            thead { tr { @for name in header { th scope="col" { (name) } } } }
            tbody {
                @for row in rows {
                    tr {
                        th scope="row" { (row[0]) }
                        @for cell in &row[1..] { td { (cell) } }
                    }
                }
            }
        }
    };
    html! { section class="group" { h3 id=(id) { (title) } (scroll(id, &table)) } }
}
