//! What others published, beside what the records on the page say.

use maud::{Markup, html};
use ntcopy_record::lists::unique;
use ntcopy_record::stats::{Measured, THROUGHPUT};
use ntcopy_record::{Cell, Record, word};

use super::{scroll, tables};
use crate::published::{self, Published};
use crate::text;
use crate::view::Grid;

const HEADER: [&str; 5] = ["configuration", "measured on", "copy, Mbit/s", "nt, Mbit/s", "ratio"];

/// The table, for the experiments of these records that have published figures.
pub(super) fn section(records: &[Record]) -> Markup {
    let experiments = unique(records.iter().map(|record| &record.header.experiment));
    let published = experiments.into_iter().flat_map(published::sends);
    let rows: Vec<Vec<String>> = published.flat_map(|one| rows(&one, records)).collect();
    if rows.is_empty() {
        return html! {};
    }
    let header = HEADER.map(str::to_owned).into();
    let grid = Grid { heading: String::new(), header, rows };
    html! {
        section id="published" {
            h2 id="published-name" { "Published figures" }
            p {
                "These figures are from the 2022 patch series that proposed the flag, measured by \
                its authors on another CPU and another kernel. They stand beside ours and enter no \
                average. Ours are in the table where a record repeated the configuration."
            }
            (scroll("published-name", &tables::figures(&grid)))
        }
    }
}

/// The published pair, and below it a row for every cell that repeats the configuration, or one that
/// says there is none.
fn rows(published: &Published, records: &[Record]) -> Vec<Vec<String>> {
    let figures = [published.copy_mbit_per_s, published.nt_mbit_per_s].map(text::thousands);
    let place = format!("{}, published", published.cpu);
    let names = [published.label.clone(), place];
    let mut rows = vec![[&names[..], &figures, &[text::ratio(published.ratio())]].concat()];
    let label = Some(published.label.as_str());
    for record in records.iter().filter(|record| record.header.experiment == published.experiment) {
        let cells = record.cells.iter().filter(|cell| word(&cell.params, "published") == label);
        rows.extend(cells.map(|cell| ours(record, cell)));
    }
    if rows.len() == 1 {
        rows.push(["", "not measured in these records", "", "", ""].map(str::to_owned).into());
    }
    rows
}

fn ours(record: &Record, cell: &Cell) -> Vec<String> {
    let all = Measured::all(record, cell);
    let of = |name: &str| all.iter().find(|one| one.mode == name);
    let rate = |name: &str| {
        let rate = of(name).and_then(|one| one.median(THROUGHPUT));
        rate.map_or_else(|| "not measured".to_owned(), text::mbit)
    };
    let note = word(&cell.params, "note").map_or_else(String::new, |note| format!("; {note}"));
    let ratio = of("nt").and_then(|nt| nt.versus(THROUGHPUT));
    let ratio = ratio.map_or_else(String::new, |nt| text::with_interval(nt.ratio, nt.ci));
    let place = format!("{}, here{note}", record.machine.cpu_model);
    vec![String::new(), place, rate("copy"), rate("nt"), ratio]
}
