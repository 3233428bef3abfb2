//! A record's groups of cells: plots where there is an axis, and every figure as a table.

use maud::{Markup, html};
use ntcopy_record::Record;

use super::{figure, results};
use crate::model::{self, Group};
use crate::plot::{self, Chart};
use crate::text;

pub(super) fn all(record_index: usize, record: &Record) -> Markup {
    let parts = each(record_index, record, one);
    html! {
        @if parts.is_empty() { p { "The record holds no cells." } }
        @for part in &parts { (part) }
    }
}

/// The curves of a record whose figures stand in heat maps.
pub(super) fn curves(record_index: usize, record: &Record) -> Markup {
    let parts = each(record_index, record, curve);
    html! { @for part in &parts { (part) } }
}

fn each(
    record_index: usize,
    record: &Record,
    one: impl Fn(&str, &Record, &Group<'_>) -> Markup,
) -> Vec<Markup> {
    let groups = model::groups(record);
    let id = |index: usize| format!("r{record_index}g{index}");
    groups.iter().enumerate().map(|(index, group)| one(&id(index), record, group)).collect()
}

/// A group's ratios as a chart, if it has an axis.
fn curve(id: &str, record: &Record, group: &Group<'_>) -> Markup {
    let Some(chart) = plot::ratios(record, group) else { return html! {} };
    let caption = html! { (group.heading) ": " (BY_BASELINE) };
    figure::figure((&format!("{id}r"), ""), record, &chart, &caption)
}

/// How to read a chart of ratios.
const BY_BASELINE: &str = "throughput relative to the baseline's; above 1 the mode wins.";

fn one(id: &str, record: &Record, group: &Group<'_>) -> Markup {
    let draw = |name: &str, chart: Option<Chart>, caption: &Markup| match chart {
        Some(chart) => figure::figure((&format!("{id}{name}"), id), record, &chart, caption),
        None => html! {},
    };
    let caption = html! { "Throughput by bytes in flight." };
    let crossover = draw("t", plot::crossover(record, group), &caption);
    let caption = html! { (text::sentence(BY_BASELINE)) };
    let ratios = draw("r", plot::ratios(record, group), &caption);
    html! {
        section class="group" {
            h4 id=(id) { (group.heading) }
            @if !group.details.is_empty() { p class="details" { (text::sentence(&group.details)) } }
            (crossover)
            (ratios)
            (results::table(id, group))
        }
    }
}
