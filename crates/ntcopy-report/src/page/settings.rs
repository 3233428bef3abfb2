//! What to set on each machine of a page, by `ntcopy advise`'s own rules.

use maud::{Markup, html};
use ntcopy_judge::advice::Advice;

use super::scroll;
use crate::advice as show;
use crate::summary::Summary;

/// A table a machine of what its records say about its settings; nothing of what they do not.
pub(super) fn section(summaries: &[Summary]) -> Markup {
    let advised: Vec<&Summary> =
        summaries.iter().filter(|summary| !summary.advice.is_empty()).collect();
    html! {
        @if !advised.is_empty() {
            section class="settings" id="settings" aria-labelledby="settings-name" {
                h2 id="settings-name" { "Settings" }
                @for (index, summary) in advised.iter().enumerate() {
                    @let id = format!("settings-{index}");
                    @if advised.len() > 1 { h3 id=(id) { (summary.cpu) } }
                    @let names = if advised.len() > 1 { id.as_str() } else { "settings-name" };
                    (scroll(names, &table(&summary.advice)))
                }
                p class="details" {
                    code { "ntcopy advise" } " says the same of this machine, and why in full."
                }
            }
        }
    }
}

fn table(all: &[Advice]) -> Markup {
    html! {
        table class="facts" {
            thead {
                tr {
                    th scope="col" { "What" }
                    th scope="col" { "Advice" }
                    th scope="col" { "Gain " small { "interval" } }
                }
            }
            tbody {
                @for one in all {
                    tr {
                        th scope="row" { (show::named(one)) }
                        td {
                            (show::headline(one))
                            details { summary { "Why" } (show::words::why(one)) }
                        }
                        td class="number" {
                            @if let Some(gain) = &one.gain {
                                @let (ratio, interval) = gain.all.parts();
                                (ratio) "x " small { (interval) }
                            }
                        }
                    }
                }
            }
        }
    }
}
