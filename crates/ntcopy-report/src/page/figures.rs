//! A record's groups of cells: plots where there is an axis, and every figure as a table.

use maud::{Markup, html};
use ntcopy_record::Record;

use super::room::{Part, part};
use super::{figure, results};
use crate::model::{self, Group};
use crate::plot::{self, Chart, PlotError};
use crate::text;

pub(super) fn all(record_index: usize, record: &Record) -> Result<Markup, PlotError> {
    let mut parts: Vec<Markup> = Vec::new();
    let groups = model::groups(record);
    for (index, group) in groups.iter().enumerate() {
        let id = format!("r{record_index}g{index}");
        parts.push(one(&id, record, group)?);
    }
    Ok(html! {
        @if parts.is_empty() { p { "The record holds no cells." } }
        @for part in &parts { (part) }
    })
}

fn one(id: &str, record: &Record, group: &Group<'_>) -> Result<Markup, PlotError> {
    let baseline = &record.header.baseline;
    let draw = |name: &str, chart: Option<Chart>, caption: &Markup| match chart {
        Some(chart) => figure::figure((&format!("{id}{name}"), id), record, &chart, caption),
        None => Ok(html! {}),
    };
    let caption = html! { "Throughput against bytes in flight." };
    let crossover = draw("t", plot::crossover(record, group), &caption)?;
    let caption = html! {
        "Throughput divided by that of " code { (baseline) } ". Above the line at 1 the mode wins."
    };
    let ratios = draw("r", plot::ratios(record, group), &caption)?;
    Ok(html! {
        section class="group" {
            h3 id=(id) { (group.heading) }
            @if !group.details.is_empty() { p class="details" { (text::sentence(&group.details)) } }
            (crossover)
            (ratios)
            (part(Part::Table, &results::table(id, group)))
        }
    })
}
