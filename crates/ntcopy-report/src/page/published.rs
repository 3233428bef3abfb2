//! What others published, beside what the records on the page say.

use maud::{Markup, html};
use ntcopy_record::lists::unique;
use ntcopy_record::stats::{Measured, THROUGHPUT};
use ntcopy_record::{Record, word};

use super::scroll;
use crate::published::{self, Published};
use crate::text;

/// The table, for the experiments of these records that have published figures.
pub(super) fn section(records: &[Record]) -> Markup {
    let experiments = unique(records.iter().map(|record| &record.header.experiment));
    let rows: Vec<Published> = experiments.into_iter().flat_map(published::sends).collect();
    if rows.is_empty() {
        return html! {};
    }
    html! {
        section id="published" {
            h2 id="published-name" { "Published figures" }
            p {
                "These figures are from the 2022 patch series that proposed the flag, measured by \
                its authors on another CPU and another kernel. They stand beside ours and enter no \
                average. Ours are in the table where a record repeated the configuration."
            }
            (table(&rows, records))
        }
    }
}

fn table(rows: &[Published], records: &[Record]) -> Markup {
    let table = html! {
        table {
            thead {
                tr {
                    th scope="col" { "Measured on" }
                    th scope="col" class="number" { "copy, Mbit/s" }
                    th scope="col" class="number" { "nt, Mbit/s" }
                    th scope="col" class="number" { "Ratio " small { "95 % interval" } }
                }
            }
            @for published in rows {
                @let ours = ours(published, records);
                tbody {
                    // A row of its own: beside the figures it would take a phone's width.
                    tr { th scope="rowgroup" colspan="4" { (published.label) } }
                    tr class="published" {
                        td { (published.cpu) ", published" }
                        td class="number" { (text::thousands(published.copy_mbit_per_s)) }
                        td class="number" { (text::thousands(published.nt_mbit_per_s)) }
                        td class="number" {
                            (text::ratio(published.ratio())) " " small { "not given" }
                        }
                    }
                    @for row in &ours { (row) }
                }
            }
        }
    };
    scroll("published-name", &table)
}

/// A row for every cell that repeats the configuration, or one that says there is none.
fn ours(published: &Published, records: &[Record]) -> Vec<Markup> {
    let is_same = |record: &&Record| record.header.experiment == published.experiment;
    let mut rows = Vec::new();
    for record in records.iter().filter(is_same) {
        let label = Some(published.label.as_str());
        for cell in record.cells.iter().filter(|cell| word(&cell.params, "published") == label) {
            let all = Measured::all(record, cell);
            let of = |name: &str| all.iter().find(|one| one.mode == name);
            let ratio = of("nt").and_then(|nt| nt.versus(THROUGHPUT));
            rows.push(html! {
                tr {
                    td {
                        (record.machine.cpu_model) ", here"
                        @if let Some(note) = word(&cell.params, "note") { br; small { (note) } }
                    }
                    td class="number" { (rate(of("copy"))) }
                    td class="number" { (rate(of("nt"))) }
                    td class="number" {
                        @if let Some(nt) = ratio {
                            @let (ratio, interval) = text::ratio_and_interval(nt.ratio, nt.ci);
                            (ratio) " " small { (interval) }
                        }
                    }
                }
            });
        }
    }
    if rows.is_empty() {
        rows.push(html! { tr { td colspan="4" class="gap" { "not measured in these records" } } });
    }
    rows
}

fn rate(one: Option<&Measured<'_>>) -> Markup {
    let figure = one.and_then(|one| one.median(THROUGHPUT)).map(text::mbit);
    html! {
        @if let Some(figure) = figure { (figure) }
        @else { span class="gap" { "not measured" } }
    }
}
