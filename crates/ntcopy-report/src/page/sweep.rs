//! A sweep as heat maps: sockets down, data sets across, every field with its figure.

use maud::{Markup, html};
use ntcopy_bench::stats::sweep::{Sweep, SweepCell};

use crate::sweep::Grid;
use crate::text;

/// Ratios from 1 in steps of this change the colour.
const STEP: f64 = 0.05;
/// Steps either way; further away the colour stays.
const STEPS: f64 = 6.0;

pub(super) fn section(sweep: &Sweep<'_>) -> Markup {
    html! {
        @for grid in &Grid::all(sweep) {
            section class="group" {
                h3 { "Sweep: " (grid.heading()) }
                (map(grid, "Adaptive by the better of copy and nt", |cell| {
                    (cell.against_better.ratio, cell.against_better.ci)
                }))
                (map(grid, "Adaptive by copy", |cell| (cell.adaptive.ratio, cell.adaptive.ci)))
                (map(grid, "nt by copy", |cell| (cell.nt.ratio, cell.nt.ci)))
                (shares(grid))
            }
        }
    }
}

fn map(
    grid: &Grid<'_>,
    title: &str,
    figure: impl Fn(&SweepCell<'_>) -> (f64, (f64, f64)),
) -> Markup {
    frame(grid, title, |cell| {
        let (ratio, ci) = figure(cell);
        html! {
            td class=(format!("heat {}", colour(ratio))) {
                (text::ratio(ratio)) " " small { (text::interval(ci)) }
            }
        }
    })
}

/// What the kernel decided, and how much of the time there was to win anything in.
fn shares(grid: &Grid<'_>) -> Markup {
    frame(
        grid,
        "Non-temporal part of adaptive's bytes; sends' part of a plain round's time",
        |cell| {
            html! {
                td class="heat" {
                    (text::percent(cell.nontemporal_share)) "; "
                    (text::percent(cell.send_share))
                }
            }
        },
    )
}

fn frame(grid: &Grid<'_>, title: &str, field: impl Fn(&SweepCell<'_>) -> Markup) -> Markup {
    html! {
        div class="scroll" role="region" aria-label=(format!("{}: {title}", grid.heading()))
            tabindex="0" {
            table class="sweep" {
                caption { (title) }
                thead {
                    tr {
                        th scope="col" { "Sockets" }
                        @for dataset in &grid.datasets {
                            th scope="col" class="number" { (text::size(*dataset)) }
                        }
                    }
                }
                tbody {
                    @for sockets in &grid.sockets {
                        tr {
                            th scope="row" class="number" { (sockets) }
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
        }
    }
}

/// The class of a ratio's colour: `up1` to `up6` above 1, `down1` to `down6` below, `level`.
fn colour(ratio: f64) -> String {
    let steps = ((ratio - 1.0) / STEP).clamp(-STEPS, STEPS);
    let step = steps.abs().round();
    if step < 1.0 {
        return "level".to_owned();
    }
    format!("{}{step}", if steps > 0.0 { "up" } else { "down" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_rise_and_fall_with_the_ratio() {
        let classes = [0.3, 0.76, 0.94, 0.98, 1.0, 1.02, 1.06, 1.3, 9.0].map(colour);
        let expected = ["down6", "down5", "down1", "level", "level", "level", "up1", "up6", "up6"];
        assert_eq!(classes, expected);
    }
}
