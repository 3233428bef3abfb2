//! A sweep as heat maps: sockets down, data sets across, every field with its figure.

use maud::{Markup, html};
use ntcopy_record::stats::sweep::{Sweep, SweepCell};

use super::scroll;
use crate::sweep::Grid;
use crate::text;

/// Ratios from 1 in steps of this change the colour.
const STEP: f64 = 0.05;
/// Steps either way; further away the colour stays.
const STEPS: f64 = 6.0;

pub(super) fn section(record_index: usize, sweep: &Sweep<'_>) -> Markup {
    html! {
        @for (index, grid) in Grid::all(sweep).iter().enumerate() {
            @let id = format!("r{record_index}s{index}");
            section class="group" {
                h4 id=(id) { "Sweep: " (grid.heading()) }
                (map(grid, (&id, "a"), "Adaptive by the better of copy and nt", |cell| {
                    (cell.against_better.ratio, cell.against_better.ci)
                }))
                (map(grid, (&id, "b"), "Adaptive by copy", |cell| {
                    (cell.adaptive.ratio, cell.adaptive.ci)
                }))
                (map(grid, (&id, "c"), "nt by copy", |cell| (cell.nt.ratio, cell.nt.ci)))
                (shares(grid, (&id, "d")))
            }
        }
    }
}

fn map(
    grid: &Grid<'_>,
    id: (&str, &str),
    title: &str,
    figure: impl Fn(&SweepCell<'_>) -> (f64, (f64, f64)),
) -> Markup {
    frame(grid, id, title, |cell| {
        let (ratio, ci) = figure(cell);
        html! {
            td class=[colour(ratio)] {
                (text::ratio(ratio)) " " small { (text::interval(ci)) }
            }
        }
    })
}

/// What the rule decided, and how much of the time there was to win anything in.
fn shares(grid: &Grid<'_>, id: (&str, &str)) -> Markup {
    frame(
        grid,
        id,
        "Non-temporal part of adaptive's bytes; sends' part of a plain round's time",
        |cell| {
            html! {
                td {
                    (text::percent(cell.nontemporal_share)) "; "
                    (text::percent(cell.send_share))
                }
            }
        },
    )
}

/// A table of the id of its section's heading and a letter.
fn frame(
    grid: &Grid<'_>,
    (heading, letter): (&str, &str),
    title: &str,
    field: impl Fn(&SweepCell<'_>) -> Markup,
) -> Markup {
    let id = format!("{heading}{letter}");
    let table = html! {
        table class="sweep" {
            caption id=(id) { (title) }
            thead {
                tr {
                    th scope="col" { "Sockets" }
                    @for dataset in &grid.datasets { th scope="col" { (text::size(*dataset)) } }
                }
            }
            tbody {
                @for sockets in &grid.sockets {
                    tr {
                        th scope="row" { (sockets) }
                        @for dataset in &grid.datasets {
                            @match grid.at(*sockets, *dataset) {
                                Some(cell) => (field(cell)),
                                None => td class="gap" { "-" },
                            }
                        }
                    }
                }
            }
        }
    };
    scroll(&format!("{heading} {id}"), &table)
}

/// The class of a ratio's colour: `up1` to `up6` above 1, `down1` to `down6` below; none close to 1.
#[must_use]
pub fn colour(ratio: f64) -> Option<String> {
    let steps = ((ratio - 1.0) / STEP).clamp(-STEPS, STEPS);
    let step = steps.abs().round();
    (step >= 1.0).then(|| format!("{}{step}", if steps > 0.0 { "up" } else { "down" }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_rise_and_fall_with_the_ratio() {
        let classes = [0.3, 0.76, 0.94, 0.98, 1.0, 1.02, 1.06, 1.3, 9.0].map(colour);
        let expected = ["down6", "down5", "down1", "", "", "", "up1", "up6", "up6"];
        assert_eq!(classes.map(Option::unwrap_or_default), expected);
    }
}
