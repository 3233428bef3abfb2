//! What each mode came to relative to the baseline, over all cells of a record.

use ntcopy_record::Record;
use ntcopy_record::stats::{self, CellResult, Verdict};

use crate::text;

/// The head of the table.
pub(super) const HEAD: &str = "| | of | wins-equal-losses | unresolved | median | lowest to highest |\n\
                               |---|---|---|---|---|---|\n";

/// A row per mode and metric below one with the title; none where no mode is compared with another.
/// `modes` are those that are shown; all, if it is empty.
pub(super) fn rows(record: &Record, title: &str, modes: &[String]) -> Option<String> {
    let results = stats::results(record);
    let mut keys: Vec<(&str, &str)> = Vec::new();
    for result in &results {
        let key = (result.metric, result.mode.as_str());
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    let baseline = &results.first()?.baseline;
    let all = keys.len();
    keys.retain(|(_, mode)| modes.is_empty() || modes.iter().any(|shown| shown == mode));
    let shown = match keys.len() {
        some if some < all => format!("; {some} of {all} rows"),
        _ => String::new(),
    };
    let mut out = format!("| **{title}**, relative to `{baseline}`{shown} | | | | | |\n");
    for (metric, mode) in keys {
        let of = |result: &&CellResult| result.metric == metric && result.mode == mode;
        out.push_str(&row(&results.iter().filter(of).collect::<Vec<_>>()));
    }
    Some(out)
}

fn row(results: &[&CellResult]) -> String {
    let tally = Tally::count(results.iter().map(|result| (result.ratio, result.verdict)));
    let Tally { wins, equal, losses, unresolved, .. } = tally;
    let unresolved = match unresolved {
        0 => String::new(),
        some => some.to_string(),
    };
    format!(
        "| {} | {} | {wins}-{equal}-{losses} | {unresolved} | {} | {} to {} |\n",
        results[0].mode,
        stats::words(results[0].metric),
        text::ratio(tally.median()),
        text::ratio(tally.lowest()),
        text::ratio(tally.highest())
    )
}

/// How the cells of a comparison came out. There is at least one.
pub(super) struct Tally {
    pub wins: usize,
    pub equal: usize,
    pub losses: usize,
    pub unresolved: usize,
    /// In order.
    ratios: Vec<f64>,
}

impl Tally {
    pub fn count(cells: impl Iterator<Item = (f64, Verdict)>) -> Tally {
        let (mut ratios, verdicts): (Vec<f64>, Vec<Verdict>) = cells.unzip();
        ratios.sort_by(f64::total_cmp);
        let count = |verdict| verdicts.iter().filter(|one| **one == verdict).count();
        Tally {
            wins: count(Verdict::Win),
            equal: count(Verdict::Equal),
            losses: count(Verdict::Loss),
            unresolved: count(Verdict::Unresolved),
            ratios,
        }
    }

    pub fn median(&self) -> f64 {
        stats::median(&self.ratios)
    }

    pub fn lowest(&self) -> f64 {
        self.ratios[0]
    }

    pub fn highest(&self) -> f64 {
        self.ratios[self.ratios.len() - 1]
    }
}
