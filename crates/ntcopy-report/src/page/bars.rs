//! What a line of a hot set takes beside each mode, as bars.

use maud::{Markup, html};
use ntcopy_judge::Judged;
use ntcopy_record::ExperimentKind;

use crate::hot::{self, Hot, Line};
use crate::plot::{self, Bar, Bars};
use crate::text;

/// Hot sets that are drawn: those that plain copies or sends slow down most.
const MOST: usize = 4;
/// The bars of the newest record of hot sets that is a timing.
pub(super) fn section(records: &[Judged]) -> Markup {
    let ours = records.iter().enumerate().filter(|(_, record)| {
        record.header.experiment == ExperimentKind::Retention
            && record.header.not_a_timing.is_none()
    });
    let Some((index, record)) = ours.max_by_key(|(_, record)| record.header.started_unix_ns) else {
        return html! {};
    };
    let mut sets: Vec<(usize, Hot)> = hot::all(record).into_iter().enumerate().collect();
    sets.sort_by(|(_, a), (_, b)| b.slow_down().total_cmp(&a.slow_down()));
    sets.truncate(MOST);
    // In the record's order, which is that of their parameters.
    sets.sort_by_key(|(place, _)| *place);
    if sets.is_empty() {
        return html! {};
    }
    let names: Vec<Vec<String>> = sets.iter().map(|(_, hot)| name(hot)).collect();
    let is_common = |part: &&String| names.iter().all(|name| name.contains(part));
    let common: Vec<&str> = names[0].iter().filter(is_common).map(String::as_str).collect();
    let drawn = sets.iter().zip(&names).map(|((_, hot), name)| {
        let own: Vec<&str> =
            name.iter().filter(|part| !is_common(part)).map(String::as_str).collect();
        bars(hot, own.join(", "))
    });
    let (drawn, size) = plot::bars(&drawn.collect::<Vec<Bars>>(), "ns", plot::SIZE.0);
    html! {
        figure class="bars" {
            figcaption {
                span id="bars" {
                    "Nanoseconds per line of a hot set. " (text::sentence(&common.join(", ")))
                    " Shorter is better."
                }
            }
            (drawn.in_page("plot", size, "bars"))
            p class="details" {
                "The record is " a href=(format!("#record-{index}")) { (record.header.id) } "."
            }
        }
    }
}

/// What is told of a hot set, part by part.
fn name(hot: &Hot) -> Vec<String> {
    let beside = hot.beside.iter().cloned();
    std::iter::once(format!("hot set of {}", hot.size())).chain(beside).collect()
}

fn bars(hot: &Hot, name: String) -> Bars {
    let bar = |(row, line): (usize, &Line)| Bar::new(&line.mode, line, row);
    Bars { name, bars: hot.lines.iter().enumerate().map(bar).collect() }
}
