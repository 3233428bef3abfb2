//! What a page says first: what to set, with one chart and the hot sets.

use maud::{Markup, html};
use ntcopy_judge::advice::{Source, is_round};
use ntcopy_judge::claims::hinted_and_plain as hint;
use ntcopy_judge::stats::{THROUGHPUT, Verdict, wins_from};
use ntcopy_judge::{Judged, Ratio};
use ntcopy_record::lists::unique;
use ntcopy_record::{Cell, ExperimentKind, number};

use super::{bars, figure};
use crate::plot::{self, Chart, Line, Mark, MarkKind, Point, curves};
use crate::summary::Summary;
use crate::text;
use crate::view::What;

pub(super) fn section(records: &[Judged], summaries: &[Summary]) -> Markup {
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
    let is_of_sends = !summary.settings.is_empty();
    let at = if is_of_sends { 0 } else { summary.sentences.len().min(1) };
    let (first, rest) = summary.sentences.split_at(at);
    let first = if is_of_sends { &summary.settings } else { first };
    html! {
        @if is_named { h3 { (summary.cpu) } }
        @for own in &summary.own { p { strong { (own) } } }
        @for sentence in first { p { strong { (sentence) } } }
        @if let Some(costs) = &summary.costs { p { "Costs: " (costs) } }
        @for beside in &summary.beside { p { (beside) } }
        @if !rest.is_empty() {
            details { summary { "Why" } p { @for sentence in rest { (sentence) " " } } }
        }
    }
}

/// Hinted sends relative to plain ones, of the sends of one length that tell most: a line for each
/// source.
fn chart(records: &[Judged]) -> Markup {
    let all = records.iter().filter(|record| {
        record.header.experiment == ExperimentKind::Unix && record.header.not_a_timing.is_none()
    });
    let charts = all.flat_map(|record| {
        let rounds = record.cells.iter().filter(|cell| is_round(cell, "unix"));
        let lengths = unique(rounds.filter_map(|cell| number(&cell.params, "object_bytes")));
        lengths.into_iter().filter_map(move |bytes| Some((record, bytes, both(record, bytes)?)))
    });
    let newest = |record: &Judged| record.header.started_unix_ns;
    let rank = |(record, _, chart): &(&Judged, u64, Chart)| (chart.places().len(), newest(record));
    let Some((record, bytes, chart)) = charts.max_by_key(rank) else { return html! {} };
    let caption = html! {
        "Hinted sends of " (text::size(bytes)) " relative to plain ones. Above 1 the hint wins."
    };
    figure::figure(("first", "decision-name"), record, &chart, &caption)
}

/// Sends of a length out of either source in one chart, and where the cold one begins to win.
fn both(record: &Judged, bytes: u64) -> Option<Chart> {
    let sources =
        [(Source::Cold, "more data than the caches hold", 1), (Source::Hot, "the same few MiB", 3)];
    let charts = sources.into_iter().filter_map(|(source, name, slot)| {
        let mut chart = of_source(record, bytes, source)?;
        for line in &mut chart.lines {
            (line.name, line.slot) = (name.to_owned(), slot);
        }
        Some((source, chart))
    });
    let mut charts: Vec<(Source, Chart)> = charts.collect();
    let (source, mut chart) = (!charts.is_empty()).then(|| charts.remove(0))?;
    if source == Source::Cold {
        chart.marks.extend(crossing(chart.lines.first()?));
    }
    chart.lines.extend(charts.into_iter().flat_map(|(_, other)| other.lines));
    chart.y_range = plot::around_one(&chart.lines);
    plot::finish(chart)
}

/// The line of hinted sends out of a source, of the data set with most cells.
fn of_source(record: &Judged, bytes: u64, source: Source) -> Option<Chart> {
    let is_of = |cell: &&Cell| {
        is_round(cell, "unix")
            && number(&cell.params, "object_bytes") == Some(bytes)
            && Source::of(&record.machine, cell) == Some(source)
    };
    let cells: Vec<&Cell> = record.cells.iter().filter(is_of).collect();
    let (mode, plain) = hint(record)?;
    let what = (&What::RelativeTo(plain.to_owned(), THROUGHPUT), "times plain sends");
    let mut charts: Vec<Chart> =
        curves::along(record, &cells, what).into_iter().map(|(_, chart)| chart).collect();
    charts.iter_mut().for_each(|chart| chart.lines.retain(|line| line.name == mode));
    charts.retain(|chart| !chart.lines.is_empty());
    charts.into_iter().max_by_key(|chart| chart.places().len())
}

fn is_win(ratio: f64, ci: (f64, f64)) -> bool {
    Ratio { ratio, ci }.verdict() == Verdict::Win
}

/// Where a line begins to win at every point; none where it already does at the first.
fn crossing(line: &Line) -> Option<Mark> {
    let sized = |point: &Point| (point.at, point.ci.is_some_and(|ci| is_win(point.value, ci)));
    let from = wins_from(&line.points.iter().map(sized).collect::<Vec<_>>());
    let (bytes, _) = from.filter(|(_, is_other_below)| *is_other_below)?;
    let label = format!("the hint wins from {} on", text::size(bytes));
    Some(Mark { bytes, label, kind: MarkKind::Crossing })
}
