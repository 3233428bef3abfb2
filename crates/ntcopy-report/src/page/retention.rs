//! What copies did to the victim, as heat maps: hot sets down, modes across; sends in [`sends`].

pub(super) mod sends;

use maud::{Markup, html};
use ntcopy_record::stats::retention::copies::{Felt, Ratio, number};
use ntcopy_record::{Cell, Record};

use super::figure;
use super::scroll;
use crate::plot;
use crate::retention::copies::{Group, groups, hot_set, legend};
use crate::text;

/// The modes across, as long as the record has them; others follow.
const MODES: [&str; 5] = ["idle", "copy", "nt", "nt-both", "adaptive"];
/// Slow-downs from 1 in steps of this change the colour.
const STEP: f64 = 0.08;
/// Steps; further away the colour stays.
const STEPS: f64 = 6.0;

/// The quantiles: what they are called, and where [`Felt`] has them.
const QUANTILES: [(&str, usize); 3] = [("p50", 0), ("p99", 1), ("p99.9", 2)];

/// What the victim felt.
pub(super) fn shown(index: usize, record: &Record) -> Markup {
    let curves = plot::curves::of_hot_sets(record);
    let curves = figure::built(&format!("r{index}c"), record, &curves);
    let maps = match crate::retention::is_of_copies(record) {
        true => section(index, record),
        false => sends::section(index, record),
    };
    html! { (curves) (maps) }
}

fn section(record_index: usize, record: &Record) -> Markup {
    html! {
        @for (index, group) in groups(record).iter().enumerate() {
            @let id = format!("r{record_index}v{index}");
            section class="group" {
                h4 id=(id) { (group.heading) }
                @if let Some(note) = &group.note { p class="details" { (text::sentence(note)) } }
                @for (name, at) in QUANTILES { (map(group, &id, name, at)) }
                (traffic(group, &id))
            }
        }
        p class="details" {
            "A field has the slow-down, a pass relative to one with nothing alongside, "
            "and the nanoseconds per line. " (legend(record))
        }
    }
}

fn map(group: &Group<'_>, id: &str, name: &str, at: usize) -> Markup {
    let title = format!("Slow-down of the other program's passes at {name}");
    of_group(group, (id, &at.to_string()), &title, |_, felt| {
        let line = format!("{:.1} ns", felt.line_ns[at]);
        let by_groups = felt.slow_down.get(at).copied().flatten();
        slowed(by_groups, felt.by_idle.map(|by_idle| by_idle[at]), &line)
    })
}

/// A slow-down with its interval where there is one, else without; the time below it.
fn slowed(by_groups: Option<Ratio>, by_idle: Option<f64>, line: &str) -> Markup {
    match (by_groups, by_idle) {
        (Some(ratio), _) => html! {
            td class=[colour(ratio.ratio)] {
                (text::ratio(ratio.ratio)) " " small { (text::interval(ratio.ci)) } " "
                small { (line) }
            }
        },
        (None, Some(by_idle)) => html! {
            td class=[colour(by_idle)] { (text::ratio(by_idle)) " " small { (line) } }
        },
        (None, None) => html! { td { (line) } },
    }
}

/// What was moved, and how fast the copies were: equal traffic has to show.
fn traffic(group: &Group<'_>, id: &str) -> Markup {
    let title = "Traffic while the clock ran, and in it the copies' own speed";
    of_group(group, (id, "t"), title, |cell, felt| {
        let asked = number(cell, "asked_rate_bytes_per_s");
        html! {
            td {
                @match felt.copy_bytes_per_s {
                    Some(copying) => {
                        (text::gigabytes(felt.traffic_bytes_per_s)) " GB/s"
                        @if asked.is_some() { "*" }
                        " " small { (text::gigabytes(copying)) " GB/s" }
                        @if felt.short > 0 { " " small { (felt.short) " samples fell behind" } }
                    }
                    None => { "none" }
                }
            }
        }
    })
}

/// The map of a group: a row a hot set.
fn of_group(
    group: &Group<'_>,
    ids: (&str, &str),
    title: &str,
    field: impl Fn(&Cell, &Felt) -> Markup,
) -> Markup {
    let modes = modes(group);
    let row = |(cell, felt, behind): &(&Cell, Vec<Felt>, Vec<&str>)| {
        let field = |mode: &&str| match felt.iter().find(|felt| felt.mode == *mode) {
            Some(felt) => field(cell, felt),
            None if behind.contains(mode) => html! { td class="gap" { "behind" } },
            None => html! { td class="gap" { "-" } },
        };
        (hot_set(cell), modes.iter().map(field).collect())
    };
    frame(ids, (title, "Hot set"), &modes, &group.cells.iter().map(row).collect::<Vec<_>>())
}

/// A table of the id of its section's heading and a letter: what stands in the first column, and
/// its rows.
fn frame(
    (heading, letter): (&str, &str),
    (title, corner): (&str, &str),
    modes: &[&str],
    rows: &[(String, Vec<Markup>)],
) -> Markup {
    let id = format!("{heading}{letter}");
    let table = html! {
        table class="sweep" {
            caption id=(id) { (title) }
            thead {
                tr {
                    th scope="col" { (corner) }
                    @for mode in modes { th scope="col" { (mode) } }
                }
            }
            tbody {
                @for (name, fields) in rows {
                    tr { th scope="row" { (name) } @for field in fields { (field) } }
                }
            }
        }
    };
    scroll(&format!("{heading} {id}"), &table)
}

/// The modes of a group: the known ones in their order, then the others as they are met.
fn modes<'a>(group: &'a Group<'_>) -> Vec<&'a str> {
    let met = group.cells.iter().flat_map(|(_, felt, behind)| {
        felt.iter().map(|felt| felt.mode.as_str()).chain(behind.iter().copied())
    });
    in_order(met)
}

/// Each mode once, in the order of the columns.
fn in_order<'a>(met: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut modes: Vec<&str> = Vec::new();
    for mode in met {
        if !modes.contains(&mode) {
            modes.push(mode);
        }
    }
    let rank = |mode: &&str| MODES.iter().position(|known| known == mode).unwrap_or(MODES.len());
    modes.sort_by_key(rank);
    modes
}

/// The class of a slow-down's colour: `down1` to `down6` the slower the victim, `up1` and so on
/// where it is faster; none close to 1.
fn colour(slow_down: f64) -> Option<String> {
    let steps = ((slow_down - 1.0) / STEP).clamp(-STEPS, STEPS);
    let step = steps.abs().round();
    (step >= 1.0).then(|| format!("{}{step}", if steps > 0.0 { "down" } else { "up" }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slower_victim_has_the_colour_of_a_loss() {
        let classes = [0.9, 1.0, 1.03, 1.08, 1.25, 1.5, 9.0].map(colour);
        let expected = ["up1", "", "", "down1", "down3", "down6", "down6"];
        assert_eq!(classes.map(Option::unwrap_or_default), expected);
    }
}
