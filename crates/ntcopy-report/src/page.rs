//! One self-contained page from any set of records.
//!
//! The page loads nothing: style and plots are inside it, there is no script, and its
//! policy forbids the browser to load what a record's text might smuggle in. All text goes
//! through the template crate, which escapes it.

mod bars;
pub mod compare;
mod decision;
mod figure;
mod machine;
mod questions;
mod settings;
mod tables;
mod verdict;

use maud::{DOCTYPE, Markup, PreEscaped, html};
use ntcopy_record::Record;
use ntcopy_record::lists::unique;

use crate::summary::{self, Summary};
use crate::{experiment, svg, table, text};

/// The style of every page.
const STYLE: &str = include_str!("page/style.css");

/// Nothing may be loaded; the style is in the page.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; \
                      base-uri 'none'; form-action 'none'";

/// What stands before the body of every page: it asks for nothing, and has its style with it.
#[must_use]
pub fn head(title: &str) -> Markup {
    html! {
        head {
            meta charset="utf-8";
            meta http-equiv="Content-Security-Policy" content=(POLICY);
            meta name="viewport" content="width=device-width, initial-scale=1";
            meta name="color-scheme" content="light dark";
            title { (title) }
            // Without one, a browser asks the server for /favicon.ico.
            link rel="icon" href="data:,";
            style { (PreEscaped(svg::STYLE)) (PreEscaped(STYLE)) }
        }
    }
}

/// The page as HTML. `command` is the command line that made it, which the page states.
#[must_use]
pub fn html(records: &[Record], command: &[String]) -> String {
    let tellers = machine::tellers(records);
    let sections = records.iter().enumerate().map(|(index, record)| {
        section(index, record, &machine::section(records, index, tellers[index]))
    });
    let sections: Vec<Markup> = sections.collect();
    let questions = questions::asked(records);
    let summaries = summary::summaries(records);
    let title = title(records, &summaries);
    let first = decision::section(records, &summaries);
    let settings = settings::section(&summaries);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            (head(&title))
            body {
                header {
                    h1 { (title) }
                    @if let Some(origin) = origin(records) { p { (origin) } }
                }
                main {
                    @if records.is_empty() { p { "There is no record on this page." } }
                    @else {
                        (first)
                        (risk())
                        details class="rest" {
                            summary { "Settings, and all that was measured" }
                            (settings)
                            (questions::contents(records, &questions))
                            @for (number, question) in questions.iter().enumerate() {
                                @let name = format!("question-{number}");
                                section class="question" aria-labelledby=(name) {
                                    h2 id=(name) { (question.words) }
                                    @for at in &question.records { (sections[*at]) }
                                }
                            }
                        }
                    }
                }
                (footer(command))
            }
        }
    };
    page.into_string()
}

/// What hinted sends may cost, and how to go back.
fn risk() -> Markup {
    html! {
        p class="risk" {
            strong { "Risk: " }
            "a hint changes where bytes are cached, never which arrive, in what order, or which \
            error comes. A reader that touches the bytes on this machine waits for memory. Back: "
            code { "sysctl net.core.ntcopy=0" } "."
        }
    }
}

/// How many records the page is of, and when they were measured.
fn origin(records: &[Record]) -> Option<String> {
    let times = || records.iter().map(|record| record.header.started_unix_ns);
    let (first, last) = (text::utc(times().min()?), text::utc(times().max()?));
    Some(match records.len() {
        1 => format!("From 1 record, measured {first}."),
        count => format!("From {count} records, measured {first} to {last}."),
    })
}

/// The answer, where the page is of one machine and has one; else what the records are of.
fn title(records: &[Record], summaries: &[Summary]) -> String {
    match summaries {
        [one] => one.answer.clone().unwrap_or_else(|| contents(records)),
        _ => contents(records),
    }
}

fn contents(records: &[Record]) -> String {
    let names = unique(records.iter().map(|record| record.header.experiment.as_str()));
    let plural = if names.len() == 1 { "" } else { "s" };
    let cpus = unique(records.iter().map(|record| record.machine.cpu_model.as_str()));
    match (names.as_slice(), cpus.as_slice()) {
        ([], _) => "ntcopy: no record".to_owned(),
        (names, [cpu]) => format!("ntcopy: experiment{plural} {} on {cpu}", names.join(", ")),
        (names, cpus) => {
            format!(
                "ntcopy: experiment{plural} {} on {} kinds of CPU",
                names.join(", "),
                cpus.len()
            )
        }
    }
}

fn section(index: usize, record: &Record, machine: &Markup) -> Markup {
    let header = &record.header;
    html! {
        section class="record" id=(format!("record-{index}"))
            aria-labelledby=(format!("record-{index}-name")) {
            h3 id=(format!("record-{index}-name")) {
                "Record " code { (header.id) } ", experiment " (header.experiment)
            }
            (verdict::section(record))
            p class="made-by" {
                "Measured " (text::utc(header.started_unix_ns)) " by ntcopy " (header.ntcopy)
                ", with:"
            }
            pre { code { (text::shell_line(&header.command)) } }
            (caveats(record))
            (tables::section(index, record))
            (machine)
        }
    }
}

/// What the reader must know before believing a figure.
fn caveats(record: &Record) -> Markup {
    let (header, machine) = (&record.header, &record.machine);
    let shown = experiment::shown(record);
    let wrong = record.errors.iter().any(|error| error.wrong_byte);
    let measured_vmsplice = record.samples.iter().any(|sample| sample.mode == "vmsplice");
    html! {
        @if let Some(why) = &header.not_a_timing {
            p class="alert" role="note" { strong { "These are not timings: " } (why) "." }
        }
        @if wrong {
            p class="alert" role="note" {
                strong { "A byte was wrong. " } "Nothing here counts before that is explained."
            }
        }
        ul class="caveats" {
            @if !record.complete {
                li { "The record was cut short. What it holds is good, but not all was measured." }
            }
            @for remark in table::troubles(record) { li { (remark) } }
            @if measured_vmsplice {
                li {
                    code { "vmsplice" } " sends the pages themselves: the sender must not touch \
                    its buffer again until the reader is done with it."
                }
            }
            @if let Some(hypervisor) = &machine.hypervisor {
                li {
                    "Measured in a guest (" (hypervisor) "): neighbours may share the last-level \
                    cache and the memory's bandwidth."
                }
            }
            @if let Some(caveat) = shown.caveat { li { (caveat) } }
        }
    }
}

fn footer(command: &[String]) -> Markup {
    html! {
        footer {
            p { "This page was generated by the following command; do not edit it." }
            pre { code { (text::shell_line(command)) } }
            p {
                "A ratio is the median over interleaved pairs, with a 95 % bootstrap interval. A \
                whole interval above 1 is a win, below 1 a loss, around 1 and within 0.97 to 1.03 \
                equal; any other is unresolved. Where the points of a plot have bars, these are \
                the 95 % intervals."
            }
        }
    }
}

/// A box around a table that scrolls by itself, so that a wide table does not make the page wide;
/// `names` are the ids of what it is called by. A group, no region: a page of hundreds of landmarks
/// has none.
fn scroll(names: &str, table: &Markup) -> Markup {
    html! { div class="scroll" role="group" aria-labelledby=(names) tabindex="0" { (table) } }
}

/// The same, which may be wider than the text where the window is.
fn scroll_wide(names: &str, table: &Markup) -> Markup {
    html! { div class="scroll wide" role="group" aria-labelledby=(names) tabindex="0" { (table) } }
}
