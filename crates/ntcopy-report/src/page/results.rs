//! A group's figures as a table.

use maud::{Markup, html};

use crate::model::{CellView, Group, ModeView};
use crate::text;

pub(super) fn table(group: &Group<'_>) -> Markup {
    html! {
        div class="scroll" role="region" aria-label=(format!("Results: {}", group.heading))
            tabindex="0" {
            table {
                thead {
                    tr {
                        th scope="col" { "In flight" }
                        th scope="col" { "Mode" }
                        // Before the figures: on a phone the last columns are out of sight.
                        th scope="col" { "Verdict" }
                        th scope="col" class="number" { "Ratio " small { "95 % interval" } }
                        th scope="col" class="number" { "Mbit/s" }
                        th scope="col" class="number" { "Sends, GB/s" }
                    }
                }
                @for cell in &group.cells { (rows(cell)) }
            }
        }
    }
}

fn rows(cell: &CellView<'_>) -> Markup {
    html! {
        tbody {
            @for (index, mode) in cell.modes.iter().enumerate() {
                tr {
                    @if index == 0 {
                        th scope="rowgroup" rowspan=(cell.modes.len()) { (cell.label) }
                    }
                    td { code { (mode.mode) } }
                    (figures(mode))
                }
            }
        }
    }
}

fn figures(mode: &ModeView<'_>) -> Markup {
    if let Some(gap) = mode.gap() {
        return html! { td class="gap" colspan="4" { (gap) } };
    }
    html! {
        td { (verdict(mode)) }
        (ratio(mode))
        td class="number" { @if let Some(rate) = mode.rate { (text::mbit(rate.median)) } }
        td class="number" {
            @if let Some(rate) = mode.send_bytes_per_s { (text::gigabytes(rate)) }
        }
    }
}

/// The ratio with its interval, in one cell.
pub(super) fn ratio(mode: &ModeView<'_>) -> Markup {
    html! {
        td class="number" {
            @if let Some(result) = &mode.result {
                (text::ratio(result.ratio)) " " small { (text::interval(result.ci)) }
            }
        }
    }
}

/// The verdict in its own words; the colour only repeats them.
fn verdict(mode: &ModeView<'_>) -> Markup {
    let words = match (&mode.result, mode.is_baseline) {
        (Some(result), _) => result.verdict.as_str(),
        (None, true) => "baseline",
        (None, false) => "too few pairs",
    };
    html! { span class=(format!("tag {}", words.replace(' ', "-"))) { (words) } }
}
