//! The machine that a record was made on.

use maud::{Markup, html};
use ntcopy_judge::{Judged, compare};

use super::scroll;
use crate::table;

/// For each record, the one whose section has the table of their machine: the newest of those of
/// which the same is to be said.
pub(super) fn tellers(records: &[Judged]) -> Vec<usize> {
    let all: Vec<_> = records.iter().map(facts).collect();
    let teller = |of: &Vec<(&'static str, String)>| {
        let same = (0..records.len()).filter(|other| all[*other] == *of);
        same.max_by_key(|other| (records[*other].header.started_unix_ns, *other)).unwrap_or(0)
    };
    all.iter().map(teller).collect()
}

/// The machine of a record, or a word on which record's it is.
pub(super) fn section(records: &[Judged], number: usize, teller: usize) -> Markup {
    if number == teller {
        return table(number, &records[number]);
    }
    html! {
        p class="made-by" {
            "The machine is that of record "
            a href=(format!("#record-{teller}")) { (records[teller].header.id) } "."
        }
    }
}

fn table(number: usize, record: &Judged) -> Markup {
    let id = format!("r{number}machine");
    let table = html! {
        table class="facts" {
            tbody {
                @for (name, value) in facts(record) {
                    tr { th scope="row" { (name) } td { (value) } }
                }
            }
        }
    };
    html! { details { summary id=(id) { "Machine" } (scroll(&format!("{id} record-{number}-name"), &table)) } }
}

fn facts(record: &Judged) -> Vec<(&'static str, String)> {
    let mut facts = compare::facts(record);
    let counters = &record.machine.hardware_counters;
    let counted = counters.iter().filter(|counter| counter.missing.is_none());
    let counted: Vec<String> =
        counted.map(|counter| format!("{} ({})", counter.name, counter.source)).collect();
    let all = [counted, table::missing_counters(record)].concat();
    if !all.is_empty() {
        facts.push(("hardware counters", all.join("; ")));
    }
    facts
}
