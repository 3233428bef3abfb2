//! What one record says: its best win and its worst loss, and its sentences.

use maud::{Markup, html};
use ntcopy_record::Record;
use ntcopy_record::params::cell_words;
use ntcopy_record::stats::http::is_open;
use ntcopy_record::stats::{self, CellResult, THROUGHPUT, Verdict};
use ntcopy_record::verdict;

use crate::{experiment, text};

/// This many sentences are shown; those after them are folded away.
const FEW: usize = 3;

/// The first sentences of a record; where there are many, its best win and worst loss instead.
pub(super) fn of(record: &Record) -> Markup {
    let sentences = verdict::sentences(record);
    let bounds = if sentences.len() > FEW { bounds(record) } else { None };
    let shown = match (&bounds, sentences.len()) {
        (Some(_), _) => 0,
        (None, all) if all <= FEW => all,
        _ => 1,
    };
    let (shown, folded) = sentences.split_at(shown.min(sentences.len()));
    let folded = html! {
        @if !folded.is_empty() {
            details {
                summary { "In full" }
                @for sentence in folded { p { (sentence) } }
            }
        }
    };
    html! {
        div class="says" {
            @if let Some(bounds) = &bounds { p { (bounds) } }
            @for sentence in shown { p { (sentence) } }
            (folded)
        }
    }
}

/// Best win and worst loss by throughput. None where throughput is not what was asked.
fn bounds(record: &Record) -> Option<String> {
    let is_told = experiment::of(record).is_told?;
    if record.header.not_a_timing.is_some() {
        return None;
    }
    let results: Vec<CellResult> = stats::results(record)
        .into_iter()
        .filter(|result| result.metric == THROUGHPUT && is_told(&result.mode))
        .filter(|result| record.cell(result.cell).is_none_or(|cell| !is_open(cell)))
        .collect();
    let of = |verdict| results.iter().filter(move |result| result.verdict == verdict);
    let by_ratio = |a: &&CellResult, b: &&CellResult| a.ratio.total_cmp(&b.ratio);
    let best = results.iter().max_by(by_ratio)?;
    let least = results.iter().min_by(by_ratio)?;
    let win = match of(Verdict::Win).max_by(by_ratio) {
        Some(win) => format!("Best win: {}.", told(win)),
        None => format!("No win; the best is {}.", told(best)),
    };
    let loss = match of(Verdict::Loss).min_by(by_ratio) {
        Some(loss) => format!("Worst loss: {}.", told(loss)),
        None => format!("No loss; the least is {}.", told(least)),
    };
    Some(format!("{win} {loss}"))
}

/// `nt 1.62x of copy (1.58-1.66) with 128 MiB in flight`.
fn told(result: &CellResult) -> String {
    format!(
        "{}, {} of {}'s throughput ({}), {}",
        result.mode,
        text::ratio(result.ratio),
        result.baseline,
        text::interval(result.ci),
        cell_words(&result.params),
    )
}
