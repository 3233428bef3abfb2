//! One CPU model on the page.

use std::collections::BTreeSet;

use maud::{Markup, html};
use ntcopy_report::page::colour;
use ntcopy_report::text;

use super::{Report, words};
use crate::analysis::ModelView;
use crate::analysis::advice::ModelAdvice;
use crate::analysis::series::{Point, Series};

/// A model's section.
pub(super) fn section(report: &Report<'_>, index: usize, view: &ModelView) -> Markup {
    let advice = report.advice_of(&view.signature);
    html! {
        section class="record" id=(format!("model-{index}"))
            aria-labelledby=(format!("model-{index}-name")) {
            h2 id=(format!("model-{index}-name")) { (view.signature) }
            p class="made-by" {
                (view.names.join(" / ")) "; " (words::count(view.machines.len(), "machine")) ", "
                (words::count(view.records, "record"))
            }
            ul class="caveats" {
                @if view.machines.len() > view.like.len() {
                    li {
                        (words::count(view.machines.len() - view.like.len(), "machine"))
                        " unlike the others, left out below"
                    }
                }
                @for one in &view.thresholds { li { (words::thresholds(one)) } }
            }
            @if let Some(note) = &view.note { p class="alert" role="note" { (note) "." } }
            @if let Some(advice) = advice { (wants(advice)) }
            @if !view.series.is_empty() { (gains(view)) }
            @if view.series.iter().any(|series| series.points.len() > 1) {
                details {
                    summary { "By size" }
                    @for experiment in experiments(view) { (by_size(view, experiment)) }
                }
            }
        }
    }
}

fn wants(advice: &ModelAdvice) -> Markup {
    let wanted = words::to_do(advice);
    html! {
        h3 { "What it wants, " (words::rests(advice)) }
        @if wanted.is_empty() { p { "Nothing: no setting wins." } }
        @else {
            ul {
                @for one in wanted {
                    li {
                        code { (words::setting(one)) }
                        details { summary { "Why" } p { (one.why) } }
                    }
                }
            }
        }
    }
}

/// A row a series: from which size on it wins, and by how much.
fn gains(view: &ModelView) -> Markup {
    html! {
        div class="scroll" role="group" aria-label=(format!("Gains of {}", view.signature))
            tabindex="0" {
            table {
                thead {
                    tr {
                        th scope="col" { "What, at what" }
                        th scope="col" { "Wins from" }
                        th scope="col" class="number" { "Ratio there" }
                        th scope="col" { "Crossover" }
                        th scope="col" class="number" { "Least" }
                    }
                }
                tbody { @for series in &view.series { (gain(series)) } }
            }
        }
    }
}

fn gain(series: &Series) -> Markup {
    let about = words::about(&series.question.about);
    let least = series.least();
    html! {
        tr {
            td {
                (words::kind(&series.question))
                @if !about.is_empty() { br; small { (about) } }
            }
            td { (words::wins_from(series)) }
            (ratio(series.gain.median, series.gain_bracket))
            td { @if let Some(crossover) = &series.crossover { (words::crossover(crossover)) } }
            td class="number" {
                (text::ratio(least.ratio.median))
                @if let Some(bytes) = least.size_bytes { " " small { "at " (text::size(bytes)) } }
            }
        }
    }
}

fn ratio(median: f64, bracket: (f64, f64)) -> Markup {
    html! {
        td class="number" { (text::ratio(median)) " " small { (text::interval(bracket)) } }
    }
}

fn experiments(view: &ModelView) -> Vec<&str> {
    let mut names: Vec<&str> =
        view.series.iter().map(|series| series.question.experiment.as_str()).collect();
    names.dedup();
    names
}

/// A map of an experiment: series down, sizes across, every field with its figure.
fn by_size(view: &ModelView, experiment: &str) -> Markup {
    let ours: Vec<&Series> =
        view.series.iter().filter(|series| series.question.experiment == experiment).collect();
    let sizes: BTreeSet<u64> = ours
        .iter()
        .flat_map(|series| &series.points)
        .filter_map(|point| point.size_bytes)
        .collect();
    let title = format!("{experiment} on {}", view.signature);
    html! {
        div class="scroll wide" role="group" aria-label=(title) tabindex="0" {
            table class="sweep" {
                caption { (experiment) }
                thead {
                    tr {
                        th scope="col" { "What, at what" }
                        @for size in &sizes { th scope="col" class="number" { (text::size(*size)) } }
                    }
                }
                tbody { @for series in &ours { (fields(series, &sizes)) } }
            }
        }
    }
}

fn fields(series: &Series, sizes: &BTreeSet<u64>) -> Markup {
    let question = &series.question;
    let at = |size: u64| series.points.iter().find(|point| point.size_bytes == Some(size));
    html! {
        tr {
            // What was asked is many words; on one line they would push the figures out of sight.
            th scope="row" style="white-space: normal; min-width: 12rem" {
                (question.mode) " by " (question.baseline) " "
                small { (words::about(&question.about)) }
            }
            @for size in sizes {
                @match at(*size) {
                    Some(point) => (field(point)),
                    None => td class="gap" { "-" },
                }
            }
        }
    }
}

fn field(point: &Point) -> Markup {
    html! {
        td class=(format!("heat {}", colour(point.ratio.median).unwrap_or_default())) {
            (text::ratio(point.ratio.median)) " " small { (text::interval(point.bracket)) }
        }
    }
}
