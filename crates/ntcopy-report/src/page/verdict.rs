//! What one record says.

use maud::{Markup, html};
use ntcopy_judge::Judged;

/// This many sentences are shown; those after them are folded away.
const FEW: usize = 3;

pub(super) fn section(record: &Judged) -> Markup {
    let sentences = crate::verdict::sentences(record);
    // More than can be shown is told by the first alone.
    let shown = if sentences.len() > FEW { 1 } else { sentences.len() };
    let (shown, folded) = sentences.split_at(shown);
    html! {
        div class="says" {
            @for sentence in shown { p { (sentence) } }
            @if !folded.is_empty() {
                details {
                    summary { "In full" }
                    @for sentence in folded { p { (sentence) } }
                }
            }
        }
    }
}
