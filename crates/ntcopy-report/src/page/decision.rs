//! What a page says first: what to set, with one chart and the hot sets.

use maud::{Markup, html};
use ntcopy_record::advice::is_round;
use ntcopy_record::stats::{THROUGHPUT, Verdict, wins_from};
use ntcopy_record::units::Ratio;
use ntcopy_record::{Cell, ExperimentKind, Record, Sends};

use super::{bars, figure};
use crate::plot::{self, Chart, Line, Mark, MarkKind, Point, curves};
use crate::summary::Summary;
use crate::text;
use crate::view::What;

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
    let is_of_sends = !summary.settings.is_empty();
    let at = if is_of_sends { 0 } else { summary.sentences.len().min(1) };
    let (first, rest) = summary.sentences.split_at(at);
    let first = if is_of_sends { &summary.settings } else { first };
    html! {
        @if is_named { h3 { (summary.cpu) } }
        @for sentence in first { p { strong { (sentence) } } }
        @if let Some(costs) = &summary.costs { p { "Costs: " (costs) } }
        @if !rest.is_empty() {
            details { summary { "Why" } p { @for sentence in rest { (sentence) " " } } }
        }
    }
}

/// Hinted sends by plain ones, of the group of cells that tells most of them.
fn chart(records: &[Record]) -> Markup {
    let all = records.iter().filter(|record| {
        record.header.experiment == ExperimentKind::Unix && record.header.not_a_timing.is_none()
    });
    let charts = all.flat_map(|record| {
        let rounds: Vec<&Cell> =
            record.cells.iter().filter(|cell| is_round(cell, "unix")).collect();
        let what = (&What::Ratio(THROUGHPUT), "times plain sends");
        let charts = curves::along(record, &rounds, what).into_iter();
        let is_hinted = |mode: &str| record.header.sends(mode) == Sends::Hinted;
        charts
            .filter_map(move |(heading, chart)| Some((record, heading, hinted(chart, is_hinted)?)))
    });
    let newest = |record: &Record| record.header.started_unix_ns;
    let rank =
        |(record, _, chart): &(&Record, String, Chart)| (chart.places().len(), newest(record));
    let Some((record, heading, chart)) = charts.max_by_key(rank) else { return html! {} };
    let caption = html! {
        "Hinted sends relative to plain ones. " (text::sentence(&heading)) " Above 1 the hint wins."
    };
    figure::figure(("first", "decision-name"), record, &chart, &caption)
}

/// The lines of hinted sends alone, by names that say what they are, and where they begin to win.
fn hinted(mut chart: Chart, is_hinted: impl Fn(&str) -> bool) -> Option<Chart> {
    chart.lines.retain(|line| is_hinted(&line.name));
    chart.y_range = plot::around_one(&chart.lines);
    chart.marks.extend(crossing(chart.lines.first()?));
    for line in &mut chart.lines {
        "hinted".clone_into(&mut line.name);
    }
    plot::finish(chart)
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
