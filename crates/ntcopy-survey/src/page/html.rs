//! The report as one self-contained page, in the style of `ntcopy report`'s.

use maud::{Markup, html};
use ntcopy_report::page::whole;
use ntcopy_report::text;

use super::words;
use crate::analysis::unlike::{FAR, LEAST_OFF};
use crate::analysis::{Analysis, Model};

/// The page. `command` is the command line that made it, which the page states.
#[must_use]
pub fn html(analysis: &Analysis, command: &[String]) -> String {
    let title = format!(
        "ntcopy: survey of {}, {}",
        words::count(analysis.machines, "machine"),
        words::count(analysis.models.len(), "CPU model")
    );
    let main = html! {
        section class="verdict" aria-label="Verdict" {
            @for sentence in words::verdict(analysis) { p { (sentence) } }
        }
        section aria-labelledby="unlike" {
            h2 id="unlike" { "Machines unlike their model" }
            (unlike(analysis))
        }
        @for view in &analysis.models { (model(view)) }
    };
    whole(&title, [html! {}, main, notes()], command)
}

/// A table that scrolls by itself where it is wide.
fn table(label: &str, columns: &[&str], rows: &Markup) -> Markup {
    html! {
        div class="scroll" role="group" aria-label=(label) tabindex="0" {
            table {
                thead { tr { @for column in columns { th scope="col" { (column) } } } }
                tbody { (rows) }
            }
        }
    }
}

fn unlike(analysis: &Analysis) -> Markup {
    if analysis.unlike.is_empty() {
        return html! { p { "None." } };
    }
    let rows = html! {
        @for one in &analysis.unlike {
            tr {
                th scope="row" { (words::machine(one)) }
                td { (one.signature) }
                td { (words::unlike(one)) }
                td { (words::differs(one)) }
            }
        }
    };
    let columns = ["Machine", "Its model", "How", "What its record says differs"];
    table("Machines unlike their model", &columns, &rows)
}

fn model(view: &Model) -> Markup {
    let names: Vec<&str> = view.names.iter().map(String::as_str).collect();
    let rows = html! {
        @for one in &view.series {
            tr {
                th scope="row" { (words::question(&one.question)) }
                td { (words::wins_from(one)) }
                td { (words::figure(&one.gain)) }
                td { (words::least(one)) }
            }
        }
    };
    let columns = ["What", "Wins from", "Ratio there", "Least"];
    html! {
        section class="record" aria-label=(view.signature) {
            h2 { (view.signature) }
            p class="made-by" {
                (names.join(" / ")) "; " (words::count(view.machines, "machine")) ", "
                (view.unlike) " unlike the others and left out below; "
                (words::count(view.records, "record"))
            }
            (table(&format!("Gains of {}", view.signature), &columns, &rows))
        }
    }
}

/// How to read it.
fn notes() -> Markup {
    html! {
        p {
            "A ratio is the median over machines of each machine's own ratio, with an \
            interval of that median by order statistics: of 95 %, and of five machines what they \
            span, which holds it in 94 of 100. Marked *: fewer than five machines, and the brackets hold what they span; of one machine, the interval of its own pairs."
        }
        p {
            "A machine is named as unlike its model if its answers in one experiment are \
            typically off by at least " (text::percent(LEAST_OFF - 1.0)) ", and " (FAR) " times \
            as far as is usual for its model. What differs is a hint, and no proof of a cause."
        }
    }
}
