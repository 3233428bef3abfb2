//! A page that holds two sides against each other.

use maud::html;
use ntcopy_judge::compare::Comparison;

use super::{tables, whole};
use crate::compare::{Side, described, grids, machines, sentences};

/// The page as HTML: what differs in the machines, what it comes to, every cell. `command` is the
/// command line that made it, which the page states.
#[must_use]
pub fn html(a: &Side<'_>, b: &Side<'_>, comparison: &Comparison<'_>, command: &[String]) -> String {
    let differ = machines(a, b, comparison);
    let title = format!("ntcopy: {} against {}", a.place, b.place);
    let under = html! {
        section class="verdict" aria-label="Verdict" {
            @for sentence in sentences(comparison) { p { (sentence) } }
        }
    };
    let main = html! {
        section {
            h2 { "What differs" }
            p { "A: " (described(a)) }
            p { "B: " (described(b)) }
            @if differ.is_empty() {
                p { "The machines are the same, with the same kernel, C library and \
                     program." }
            } @else {
                div class="scroll" role="group" aria-label="What differs" tabindex="0" {
                    table class="facts" {
                        thead { tr { th scope="col" { "what" } th scope="col" { "A" } th scope="col" { "B" } } }
                        tbody {
                            @for one in &differ {
                                tr {
                                    th scope="row" { (one.what) }
                                    td { (one.a) }
                                    td { (one.b) }
                                }
                            }
                        }
                    }
                }
            }
        }
        section {
            h2 { "Cells" }
            p {
                "A and B are ratios of a mode to its baseline, each measured \
                interleaved on its own side, with its interval. B / A is the ratio of \
                these ratios; its interval draws the pairs of both sides anew."
            }
            h3 { "By mode and metric" }
            (tables::tables("c", &grids(comparison)))
        }
    };
    whole(&title, [under, main, html! {}], command)
}
