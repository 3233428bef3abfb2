//! What a page says first: what to set, with one chart and the hot sets.

use maud::{Markup, html};
use ntcopy_record::stats::Verdict;
use ntcopy_record::{Cell, ExperimentKind, Record};

use super::{bars, figure};
use crate::model::{self, Group};
use crate::plot::{self, Chart};
use crate::summary::Summary;
use crate::versus::word;

pub(super) fn section(records: &[Record], summaries: &[Summary]) -> Markup {
    let is_of_several = summaries.len() > 1;
    let chart = chart(records);
    html! {
        section class="verdict" id="decision" aria-labelledby="decision-name" {
            h2 id="decision-name" { "What to set" }
            @for summary in summaries { (said(summary, is_of_several)) }
        }
        (chart)
        (bars::section(records))
    }
}

fn said(summary: &Summary, is_named: bool) -> Markup {
    let (first, rest) = summary
        .sentences
        .split_first()
        .map_or(("", &[][..]), |(first, rest)| (first.as_str(), rest));
    html! {
        @if is_named { h3 { (summary.cpu) } }
        p { strong { (first) } @for sentence in rest { " " (sentence) } }
    }
}

/// Hinted sends relative to plain ones, of the record that tells most of them.
fn chart(records: &[Record]) -> Markup {
    let all = records.iter().filter(|record| {
        record.header.experiment == ExperimentKind::Unix && record.header.not_a_timing.is_none()
    });
    let charts = all.flat_map(|record| {
        let groups = model::groups(record).into_iter();
        let groups = groups.filter(|group| group.cells.iter().all(|cell| is_round(cell.cell)));
        let charts = groups.filter_map(move |group| {
            let chart = plot::headline(record, &group)?;
            Some((record, group.heading.clone(), rank(&group, record), chart))
        });
        charts.collect::<Vec<(&Record, String, Rank, Chart)>>()
    });
    let Some((record, heading, _, chart)) = charts.max_by_key(|(.., rank, _)| *rank) else {
        return html! {};
    };
    let caption = html! {
        "Hinted sends relative to plain ones. " (heading) ". Above 1 the hint wins."
    };
    figure::figure(("first", "decision-name"), record, &chart, &caption)
}

/// Whether a cell is of whole objects on unix sockets, in rounds.
fn is_round(cell: &Cell) -> bool {
    word(&cell.params, "form") == Some("rounds")
        && word(&cell.params, "family").is_none_or(|family| family == "unix")
        && !cell.params.contains_key("pieces")
}

/// How much a group tells: whether the rule is in it, its number of cells, whether hints gain in some
/// and lose in others, how much is in flight at most, whether its data outgrow the caches, how new it
/// is.
type Rank = (bool, usize, bool, u64, u64, u64);

fn rank(group: &Group<'_>, record: &Record) -> Rank {
    let by_rule = group.cells.iter().flat_map(|cell| &cell.modes);
    let by_rule = by_rule.filter(|mode| mode.mode == "adaptive");
    let verdicts: Vec<Verdict> =
        by_rule.filter_map(|mode| Some(mode.result.as_ref()?.verdict)).collect();
    let shows_both = verdicts.contains(&Verdict::Win) && verdicts.contains(&Verdict::Loss);
    let dataset = group.cells.iter().filter_map(|cell| {
        cell.cell.params.get("dataset_bytes").and_then(serde_json::Value::as_u64)
    });
    let in_flight = group.cells.iter().filter_map(|cell| cell.in_flight_bytes).max();
    (
        !verdicts.is_empty(),
        group.cells.len(),
        shows_both,
        in_flight.unwrap_or(0),
        dataset.max().unwrap_or(0),
        record.header.started_unix_ns,
    )
}
