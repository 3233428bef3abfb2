//! What sends did to a victim between them, as heat maps: hot sets and sends down, modes across.

use maud::{Markup, html};
use ntcopy_record::Record;
use ntcopy_record::stats::Versus;
use ntcopy_record::stats::retention::{Felt, felt};

use super::{frame, in_order, slowed};
use crate::page::sweep;
use crate::retention::{Sends, sends};
use crate::text;

/// Cells that are shown in one map, with what the victim felt in each.
struct Group {
    heading: String,
    cells: Vec<(Sends, Vec<Felt>)>,
}

pub(in crate::page) fn section(record_index: usize, record: &Record) -> Markup {
    html! {
        @for (index, group) in groups(record).iter().enumerate() {
            @let id = format!("r{record_index}v{index}");
            section class="group" {
                h4 id=(id) { (group.heading) }
                (map(group, (&id, "0"), "Slow-down of the other program's walks at p50", |felt| {
                    let by_idle = felt.by_idle.map(|by_idle| by_idle[0]);
                    slowed(felt.slow_down, by_idle, &line(felt.p50_ns))
                }))
                (map(group, (&id, "1"), "Slow-down of the other program's walks at p99", |felt| {
                    slowed(None, felt.by_idle.map(|by_idle| by_idle[1]), &line(felt.p99_ns))
                }))
                (map(group, (&id, "s"), "The other program's speed relative to that alongside the baseline", |felt| {
                    speed(felt.against_baseline.as_ref(), &line(felt.p50_ns))
                }))
                (map(group, (&id, "t"), "Speed of sends and walks together relative to the baseline", |felt| {
                    let whole = format!("{:.0}\u{a0}us", felt.whole_ns / 1e3);
                    speed(felt.whole_against_baseline.as_ref(), &whole)
                }))
            }
        }
        p class="details" {
            "The baseline is " code { (record.header.baseline) } ". A slow-down is a walk through \
            the hot set relative to one with nothing alongside, with the nanoseconds per line; below \
            the last map's figures stand the microseconds of a send and a walk."
        }
    }
}

/// Cells that differ in their hot sets and their sends alone, in the order in which they are met.
fn groups(record: &Record) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for cell in &record.cells {
        let sends = sends(cell);
        let heading = format!("Another program between sends, objects out of {}", sends.dataset);
        let entry = (sends, felt(record, cell));
        match groups.iter_mut().find(|group| group.heading == heading) {
            Some(group) => group.cells.push(entry),
            None => groups.push(Group { heading, cells: vec![entry] }),
        }
    }
    groups
}

fn map(group: &Group, ids: (&str, &str), title: &str, field: impl Fn(&Felt) -> Markup) -> Markup {
    let met = group.cells.iter().flat_map(|(_, felt)| felt).map(|felt| felt.mode.as_str());
    let modes = in_order(met);
    let row = |(sends, felt): &(Sends, Vec<Felt>)| {
        let field = |mode: &&str| match felt.iter().find(|felt| felt.mode == *mode) {
            Some(felt) => field(felt),
            None => html! { td class="gap" { "-" } },
        };
        let name = format!("{}, {} x {}", sends.hot_set, sends.sockets, sends.object);
        (name, modes.iter().map(field).collect())
    };
    let corner = "Hot set, sends";
    frame(ids, (title, corner), &modes, &group.cells.iter().map(row).collect::<Vec<_>>())
}

fn line(ns: f64) -> String {
    // In one line, however narrow the column.
    format!("{ns:.1}\u{a0}ns")
}

/// A speed by the baseline's, coloured as a sweep is; what it is of below it.
fn speed(versus: Option<&Versus>, of: &str) -> Markup {
    match versus {
        Some(versus) => html! {
            td class=[sweep::colour(versus.ratio)] {
                (text::ratio(versus.ratio)) " " small { (text::interval(versus.ci)) } " "
                small { (of) }
            }
        },
        None => html! { td { (of) } },
    }
}
