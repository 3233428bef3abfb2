//! A group's figures as a table.

use maud::{Markup, html};

use super::scroll;
use crate::model::{CellView, Group, ModeView};
use crate::text;

/// The table of a group whose heading has this id.
pub(super) fn table(id: &str, group: &Group<'_>) -> Markup {
    let table = html! {
        table class="results" {
            thead {
                tr {
                    th scope="col" { "In flight" }
                    th scope="col" { "Mode" }
                    // Before the figures: on a phone the last columns are out of sight.
                    th scope="col" { "Verdict" }
                    th scope="col" { "Ratio " small { "95 % interval" } }
                    th scope="col" { "Mbit/s" }
                    th scope="col" { "Sends, GB/s" }
                }
            }
            @for cell in &group.cells { (rows(cell)) }
        }
    };
    scroll(id, &table)
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
        return html! { td class="gap" { (gap) } td {} td {} td {} };
    }
    html! {
        (verdict(mode))
        td { (ratio(mode)) }
        td { @if let Some(rate) = mode.rate { (text::mbit(rate.median)) } }
        td {
            @if let Some(rate) = mode.send_bytes_per_s { (text::gigabytes(rate)) }
        }
    }
}

pub(super) fn ratio(mode: &ModeView<'_>) -> Markup {
    html! {
        @if let Some(result) = &mode.result {
            (text::ratio(result.ratio)) " " small { (text::interval(result.ci)) }
        }
    }
}

/// The verdict in its own words; the colour only repeats them. Without a class, it is muted.
fn verdict(mode: &ModeView<'_>) -> Markup {
    let words = match (&mode.result, mode.is_baseline) {
        (Some(result), _) => result.verdict.as_str(),
        (None, true) => "baseline",
        (None, false) => "too few pairs",
    };
    let is_coloured = matches!(words, "win" | "loss");
    html! { td class=[is_coloured.then_some(words)] { (words) } }
}
