//! What each mode came to relative to the baseline, over all cells of a record.

use ntcopy_judge::Judged;
use ntcopy_judge::claims::{OF_SAMPLES, Point, results};
use ntcopy_judge::stats::{self, Tally};
use ntcopy_record::lists::grouped;

use ntcopy_report::text;

pub(super) const HEAD: &str = "| | of | wins-equal-losses | unresolved | median | lowest to highest |\n\
                               |---|---|---|---|---|---|\n";

/// A row per mode and metric below one with the title; none where no mode is compared with another.
/// `modes` are those that are shown; all, if it is empty.
pub(super) fn rows(record: &Judged, title: &str, modes: &[String]) -> Option<String> {
    let results = results(record, OF_SAMPLES);
    let mut groups = grouped(results.iter().map(|one| (one.question, one)));
    let baseline = &record.header.baseline;
    let all = groups.len();
    if all == 0 {
        return None;
    }
    groups.retain(|(asked, _)| modes.is_empty() || modes.iter().any(|mode| mode == asked.mode));
    let shown = match groups.len() {
        some if some < all => format!("; {some} of {all} rows"),
        _ => String::new(),
    };
    let mut out = format!("| **{title}**, relative to `{baseline}`{shown} | | | | | |\n");
    groups.iter().for_each(|(_, results)| out.push_str(&row(results)));
    Some(out)
}

fn row(results: &[&Point<'_>]) -> String {
    let Tally { wins, losses, equal, unresolved } =
        results.iter().map(|result| result.verdict()).collect();
    let ratios: Vec<f64> = results.iter().map(|result| result.versus.ratio).collect();
    let unresolved = match unresolved {
        0 => String::new(),
        some => some.to_string(),
    };
    format!(
        "| {} | {} | {wins}-{equal}-{losses} | {unresolved} | {} | {} to {} |\n",
        results[0].question.mode,
        stats::words(results[0].question.metric),
        text::ratio(stats::median(&ratios)),
        text::ratio(ratios.iter().copied().fold(f64::INFINITY, f64::min)),
        text::ratio(ratios.iter().copied().fold(0.0, f64::max))
    )
}
