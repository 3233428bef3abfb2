//! The experiments that are no comparison of throughputs.

use maud::{Markup, html};
use ntcopy_bench::record::Record;

use crate::{phase, retention};

/// How soon the adaptive hint followed.
pub(super) fn phases(record: &Record) -> Markup {
    let rows: Vec<[String; 6]> = phase::all(record).iter().map(phase::row).collect();
    table("How soon the share of non-temporal bytes has settled", &phase::HEADER, &rows)
}

/// What the victim felt.
pub(super) fn retention(record: &Record) -> Markup {
    if retention::is_of_copies(record) {
        return super::retention::section(record);
    }
    html! {
        @for (heading, rows) in &retention::tables(record) {
            (table(heading, &retention::HEADER, rows))
        }
    }
}

fn table<const N: usize>(title: &str, header: &[&str; N], rows: &[[String; N]]) -> Markup {
    html! {
        section class="group" {
            h3 { (title) }
            div class="scroll" role="region" aria-label=(title) tabindex="0" {
                table {
                    thead {
                        tr {
                            @for (index, name) in header.iter().enumerate() {
                                th scope="col" class=[(index > 0).then_some("number")] { (name) }
                            }
                        }
                    }
                    tbody {
                        @for row in rows {
                            tr {
                                th scope="row" { (row[0]) }
                                @for cell in &row[1..] { td class="number" { (cell) } }
                            }
                        }
                    }
                }
            }
        }
    }
}
