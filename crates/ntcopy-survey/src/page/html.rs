//! The report as one self-contained page, in the style of `ntcopy report`'s.

use maud::{DOCTYPE, Markup, PreEscaped, html};
use ntcopy_report::page::{POLICY, STYLE};
use ntcopy_report::text;

use super::{Report, models, words};
use crate::analysis::unlike::{LEAST_OFF, LEVEL, Unlike};
use crate::analysis::{Analysis, ModelView};

/// The page as HTML. `command` is the command line that made it, which the page states.
#[must_use]
pub fn html(report: &Report<'_>, command: &[String]) -> String {
    let analysis = report.analysis;
    let title = format!(
        "ntcopy: survey of {}, {}",
        words::count(analysis.fleet.machines.len(), "machine"),
        words::count(analysis.models.len(), "CPU model")
    );
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                link rel="icon" href="data:,";
                style { (PreEscaped(STYLE)) }
            }
            body {
                header { h1 { (title) } }
                main {
                    section class="verdict" aria-label="Verdict" {
                        @for sentence in words::verdict_of(analysis) { p { (sentence) } }
                    }
                    (unlike(analysis))
                    (overview(analysis))
                    @for (index, view) in analysis.models.iter().enumerate() {
                        (models::section(report, index, view))
                    }
                }
                (footer(command))
            }
        }
    };
    page.into_string()
}

fn unlike(analysis: &Analysis) -> Markup {
    html! {
        section aria-labelledby="unlike-name" {
            h2 id="unlike-name" { "Machines unlike their model" }
            @if analysis.unlike.is_empty() { p { "None." } }
            @else {
                div class="scroll" role="region" aria-label="Machines unlike their model"
                    tabindex="0" {
                    table class="facts" {
                        thead {
                            tr {
                                th scope="col" { "Machine" }
                                th scope="col" { "Its model" }
                                th scope="col" { "How" }
                                th scope="col" { "What its record says differs" }
                            }
                        }
                        tbody { @for one in &analysis.unlike { (odd(analysis, one)) } }
                    }
                }
            }
        }
    }
}

fn odd(analysis: &Analysis, one: &Unlike) -> Markup {
    html! {
        tr {
            th scope="row" { (words::machine(analysis, one.machine)) }
            td { (link(analysis, &one.signature)) }
            td {
                (words::unlike(one))
                @if !one.examples.is_empty() {
                    details {
                        summary { "Shown by" }
                        @for example in &one.examples { p { (words::example(example)) } }
                    }
                }
            }
            td { @for reason in words::reasons(&one.differs) { p { (reason) } } }
        }
    }
}

/// A model's signature, as a link to its section.
fn link(analysis: &Analysis, signature: &str) -> Markup {
    let index = analysis.models.iter().position(|view| view.signature == signature);
    html! {
        @match index {
            Some(index) => a href=(format!("#model-{index}")) { (signature) },
            None => (signature),
        }
    }
}

fn overview(analysis: &Analysis) -> Markup {
    html! {
        section aria-labelledby="models-name" {
            h2 id="models-name" { "CPU models" }
            p {
                "By CPUID: vendor, family, model, stepping. A label may lie; two labels may be one \
                CPU."
            }
            div class="scroll" role="region" aria-label="CPU models" tabindex="0" {
                table {
                    thead {
                        tr {
                            th scope="col" { "Model" }
                            th scope="col" class="number" { "Machines" }
                            th scope="col" class="number" { "Unlike it" }
                            th scope="col" class="number" { "Records" }
                            th scope="col" { "Calls itself" }
                        }
                    }
                    tbody { @for view in &analysis.models { (line(analysis, view)) } }
                }
            }
        }
    }
}

fn line(analysis: &Analysis, view: &ModelView) -> Markup {
    html! {
        tr {
            th scope="row" { (link(analysis, &view.signature)) }
            td class="number" { (text::thousands(view.machines.len() as f64)) }
            td class="number" { (view.machines.len() - view.like.len()) }
            td class="number" { (text::thousands(view.records as f64)) }
            td { (view.names.join(" / ")) }
        }
    }
}

fn footer(command: &[String]) -> Markup {
    html! {
        footer {
            p { "This page was generated by the following command; do not edit it." }
            pre { code { (text::shell_line(command)) } }
            p {
                "A ratio is the median over machines of each machine's own ratio, with a 95 % \
                interval of that median by order statistics. Where a model has fewer than five \
                machines, what stands in brackets is the span of its machines, and of one machine \
                the interval of its own pairs."
            }
            p {
                "A machine is named as unlike its model if something so odd had a chance of at most "
                (text::percent(LEVEL)) ", adjusted for how many machines were asked about, and if it \
                is typically off by at least " (words::off(LEAST_OFF)) ". What differs is what its \
                record says and fewer than one in ten of the other machines share; it is a hint, \
                and no proof of a cause."
            }
        }
    }
}
