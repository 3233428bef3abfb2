//! One plot with all that belongs to it: legend, data as a table, record, command.

use maud::{Markup, html};
use ntcopy_judge::Judged;

use crate::plot::curves::Built;
use crate::plot::{self, Chart, Line};
use crate::text;

/// The chart with its own id, and that of the heading that belongs to its name; empty where the
/// caption says it all.
pub(super) fn figure(
    (id, heading): (&str, &str),
    record: &Judged,
    chart: &Chart,
    caption: &Markup,
) -> Markup {
    let names = format!("{id} {heading}");
    let names = names.trim_end();
    html! {
        figure {
            // The words above a plot are its name too, for those who cannot see it.
            figcaption { span id=(id) { (caption) } " " (legend(chart)) }
            (plot::draw(chart, plot::SIZE).in_page("plot", plot::SIZE, names))
            (behind((id, names), record, &data(chart)))
        }
    }
}

/// Charts with their captions; their ids begin with `ids`.
pub(super) fn built(ids: &str, record: &Judged, all: &[Built]) -> Markup {
    html! {
        @for (number, built) in all.iter().enumerate() {
            @let id = format!("{ids}{number}");
            (figure((&id, ""), record, &built.chart, &html! { (built.caption) }))
        }
    }
}

/// What a chart rests on, folded away: its data, its record, its command.
fn behind((id, names): (&str, &str), record: &Judged, data: &Markup) -> Markup {
    html! {
        details {
            summary id=(format!("{id}d")) { "Data, record, command" }
            div class="scroll" role="group" aria-labelledby=(format!("{id}d {names}")) tabindex="0" {
                (data)
            }
            p class="made-by" { "Record " code { (record.header.id) } ", measured again with:" }
            pre { code { (text::shell_line(&record.header.again())) } }
        }
    }
}

/// The names of the lines; the style sheet draws a piece of the line and a point before each.
fn legend(chart: &Chart) -> Markup {
    let class = |line: &Line| format!("key m{}", line.slot);
    html! {
        span class="legend" {
            @for line in &chart.lines { span class=(class(line)) { (line.name) } }
        }
    }
}

/// The chart's points: its axis down, its lines across.
fn data(chart: &Chart) -> Markup {
    let places = chart.places();
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
