//! One plot with all that belongs to it: legend, data as a table, record, command.

use maud::{Markup, PreEscaped, html};
use ntcopy_bench::record::Record;

use crate::plot::{self, Chart, Line, NARROW, PlotError, Size, WIDE};
use crate::text;

/// The plot, drawn for screens and for phones; the style sheet shows one of them.
pub(super) fn figure(
    id: &str,
    record: &Record,
    chart: &Chart,
    caption: &Markup,
) -> Result<Markup, PlotError> {
    let wide = svg(&format!("{id}-wide"), "wide", chart, WIDE)?;
    let narrow = svg(&format!("{id}-narrow"), "narrow", chart, NARROW)?;
    Ok(html! {
        figure {
            figcaption { (caption) " " (legend(chart)) }
            (wide)
            (narrow)
            (behind(record, &chart.title, &data(chart)))
        }
    })
}

/// What a chart rests on, folded away: its data, its record, its command.
pub(super) fn behind(record: &Record, title: &str, data: &Markup) -> Markup {
    html! {
        details {
            summary { "Data, record, command" }
            div class="scroll" role="region" aria-label=(format!("Data: {title}")) tabindex="0" {
                (data)
            }
            p class="made-by" { "Record " code { (record.header.id) } ", measured again with:" }
            pre { code { (text::shell_line(&record.header.command)) } }
        }
    }
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

/// The shapes of the points, filled where they are ours.
fn shape(line: &Line) -> &'static str {
    let shapes = if line.is_published {
        ["\u{25cb}", "\u{25b3}", "\u{25a1}"]
    } else {
        ["\u{25cf}", "\u{25b2}", "\u{25a0}"]
    };
    shapes[line.slot % 3]
}

fn legend(chart: &Chart) -> Markup {
    html! {
        span class="legend" {
            @for line in &chart.lines {
                span class=(format!("key m{}{}", line.slot, if line.is_published { " theirs" } else { "" })) {
                    span class="swatch" aria-hidden="true" {}
                    span class="shape" aria-hidden="true" { (shape(line)) }
                    (line.name)
                }
            }
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
            thead {
                tr {
                    th scope="col" { (chart.axis.name()) }
                    @for line in &chart.lines {
                        th scope="col" { (line.name) ", " (chart.y_label) }
                    }
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
