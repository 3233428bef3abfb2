//! One plot with all that belongs to it: legend, data as a table, record, command.

use maud::{Markup, PreEscaped, html};
use ntcopy_record::Record;

use super::room::{Part, part};
use crate::plot::curves::Built;
use crate::plot::{self, Chart, Line, NARROW, PlotError, SLOTS, Size, WIDE};
use crate::text;

/// The plot, drawn for screens and for phones; the style sheet shows one of them. Its own id, and
/// that of the heading that belongs to its name; empty where the caption says it all.
pub(super) fn figure(
    ids: (&str, &str),
    record: &Record,
    chart: &Chart,
    caption: &Markup,
) -> Result<Markup, PlotError> {
    noted(ids, record, chart, (caption, ""))
}

/// The same with what else has to be known of it.
fn noted(
    (id, heading): (&str, &str),
    record: &Record,
    chart: &Chart,
    (caption, note): (&Markup, &str),
) -> Result<Markup, PlotError> {
    let beneath = if note.is_empty() { String::new() } else { format!(" {id}n") };
    let names = format!("{id} {heading}");
    let names = format!("{}{beneath}", names.trim_end());
    let names = names.as_str();
    let wide = svg(names, "wide", chart, WIDE)?;
    let narrow = svg(names, "narrow", chart, NARROW)?;
    Ok(part(
        Part::Chart,
        &html! {
            figure {
                // The words above a plot are its name too, for those who cannot see it.
                figcaption { span id=(id) { (caption) } " " (legend(chart)) }
                (wide)
                (part(Part::Narrow, &narrow))
                @if !note.is_empty() { p class="details" id=(format!("{id}n")) { (note) } }
                (behind((id, names), record, &data(chart)))
            }
        },
    ))
}

/// Charts with their captions and notes; their ids begin with `ids`.
pub(super) fn built(ids: &str, record: &Record, all: &[Built]) -> Result<Markup, PlotError> {
    let figures = all.iter().enumerate().map(|(number, built)| {
        let caption = html! { (built.caption) };
        let words = (&caption, built.note.as_str());
        noted((&format!("{ids}{number}"), ""), record, &built.chart, words)
    });
    let figures = figures.collect::<Result<Vec<Markup>, PlotError>>()?;
    Ok(html! { @for figure in &figures { (figure) } })
}

/// What a chart rests on, folded away: its data, its record, its command.
fn behind((id, names): (&str, &str), record: &Record, data: &Markup) -> Markup {
    html! {
        details {
            summary id=(format!("{id}d")) { "Data, record, command" }
            div class="scroll" role="group" aria-labelledby=(format!("{id}d {names}")) tabindex="0" {
                (data)
            }
            p class="made-by" { "Record " code { (record.header.id) } ", measured again with:" }
            pre { code { (text::shell_line(&record.header.command)) } }
        }
    }
}

fn svg(names: &str, class: &str, chart: &Chart, size: Size) -> Result<Markup, PlotError> {
    let inside = plot::draw(chart, size)?;
    Ok(html! {
        svg class=(class) viewBox=(format!("0 0 {} {}", size.width, size.height))
            role="img" aria-labelledby=(names) {
            // The plotting crate's own output; it holds sizes and numbers, no record's text.
            (PreEscaped(inside))
        }
    })
}

/// The shapes of the points, one a look of lines, and hollow ones for what others published:
/// shapes beside colours and dashes are three ways to tell lines apart.
pub(super) fn points() -> Markup {
    let shapes = ["M-5 0a5 5 0 1 0 10 0a5 5 0 1 0-10 0z", "M0-7l-6 12h12z", "M-5-5h10v10h-10z"];
    html! {
        svg class="points" aria-hidden="true" {
            @for (class, id) in [("full", 'p'), ("hollow", 'h')] {
                @for slot in 0..SLOTS {
                    marker id=(format!("{id}{slot}")) class=(format!("{class} m{slot}"))
                        viewBox="-8 -8 16 16" markerWidth="16" markerHeight="16"
                        markerUnits="userSpaceOnUse" {
                        path d=(shapes[slot % shapes.len()]) {}
                    }
                }
            }
        }
    }
}

/// The names of the lines; the style sheet draws a piece of the line and a point before each.
fn legend(chart: &Chart) -> Markup {
    let class = |line: &Line| {
        let theirs = if line.is_published { " theirs" } else { "" };
        format!("key m{}{theirs}", line.slot)
    };
    html! {
        span class="legend" {
            @for line in &chart.lines { span class=(class(line)) { (line.name) } }
        }
    }
}

/// The chart's points: its axis down, its lines across.
fn data(chart: &Chart) -> Markup {
    let mut places: Vec<u64> =
        chart.lines.iter().flat_map(|line| &line.points).map(|point| point.at).collect();
    places.sort_unstable();
    places.dedup();
    html! {
        table class="figures" {
            caption { (chart.y_label) }
            thead {
                tr {
                    th scope="col" { (chart.axis.name()) }
                    @for line in &chart.lines { th scope="col" { (line.name) } }
                }
            }
            tbody {
                @for at in &places {
                    tr {
                        th scope="row" { (chart.axis.label(*at as f64)) }
                        @for line in &chart.lines { (field(line, *at)) }
                    }
                }
            }
        }
    }
}

fn field(line: &Line, at: u64) -> Markup {
    html! {
        td {
            @match line.points.iter().find(|point| point.at == at) {
                Some(point) => {
                    (text::figure(point.value))
                    @if let Some((low, high)) = point.ci {
                        " " small { (text::figure(low)) "-" (text::figure(high)) }
                    }
                }
                None => "-",
            }
        }
    }
}
