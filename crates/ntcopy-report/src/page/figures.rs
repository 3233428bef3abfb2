//! A record's groups of cells: plots where there is an axis, and every figure as a table.

use maud::{Markup, PreEscaped, html};
use ntcopy_bench::record::Record;

use super::results;
use crate::model::{self, Group};
use crate::plot::{self, Chart, NARROW, PlotError, Size, WIDE};
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
    let crossover = plot::crossover(record, group);
    let ratios = plot::ratios(record, group);
    let baseline = &record.header.baseline;
    let crossover = figure(
        &format!("{id}-throughput"),
        group,
        crossover.as_ref(),
        html! {
            "Throughput against bytes in flight."
        },
    )?;
    let ratios = figure(
        &format!("{id}-ratio"),
        group,
        ratios.as_ref(),
        html! {
            "Throughput divided by that of " code { (baseline) } ". Above the line at 1 the mode wins."
        },
    )?;
    Ok(html! {
        section class="group" {
            h3 { (group.heading) }
            @if !group.details.is_empty() { p class="details" { (text::sentence(&group.details)) } }
            (crossover)
            (ratios)
            (results::table(group))
        }
    })
}

/// A plot, drawn for screens and for phones; the style sheet shows one of them.
fn figure(
    id: &str,
    group: &Group<'_>,
    chart: Option<&Chart>,
    caption: Markup,
) -> Result<Markup, PlotError> {
    let Some(chart) = chart else { return Ok(html! {}) };
    let wide = svg(&format!("{id}-wide"), "wide", chart, WIDE)?;
    let narrow = svg(&format!("{id}-narrow"), "narrow", chart, NARROW)?;
    Ok(html! {
        figure {
            figcaption { (caption) " " (legend(group, chart)) }
            (wide)
            (narrow)
        }
    })
}

fn svg(id: &str, class: &str, chart: &Chart, size: Size) -> Result<Markup, PlotError> {
    let inside = plot::draw(chart, size)?;
    Ok(html! {
        svg class=(class) viewBox=(format!("0 0 {} {}", size.width, size.height))
            role="img" aria-labelledby=(id) {
            title id=(id) { (chart.title) }
            // The plotting crate's own output; it holds sizes and numbers, no record's text.
            (PreEscaped(inside))
        }
    })
}

fn legend(group: &Group<'_>, chart: &Chart) -> Markup {
    let modes = group.cells.first().map_or(&[][..], |cell| &cell.modes);
    let shown = modes.iter().enumerate().filter_map(|(index, mode)| {
        let slot = plot::slot(mode.mode, index);
        chart.lines.iter().any(|line| line.slot == slot).then_some((slot, mode.mode))
    });
    html! {
        span class="legend" {
            @for (slot, mode) in shown {
                span class=(format!("key m{slot}")) {
                    span class="swatch" aria-hidden="true" {}
                    span class="shape" aria-hidden="true" { (["\u{25cf}", "\u{25b2}", "\u{25a0}"][slot % 3]) }
                    (mode)
                }
            }
        }
    }
}
