//! A table of what each mode came to relative to the baseline, over all cells of a record.

use ntcopy_record::Record;
use ntcopy_record::stats::{self, CellResult, Verdict};

use crate::{compare, text};

/// A row per mode and metric; none where no mode is compared with another.
pub(super) fn table(record: &Record) -> Option<String> {
    let results = stats::results(record);
    let mut keys: Vec<(&str, &str)> = Vec::new();
    for result in &results {
        let key = (result.metric, result.mode.as_str());
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    let baseline = &results.first()?.baseline;
    let mut out = format!(
        "| relative to {baseline} | of | wins | equal | losses | unresolved | median | lowest | highest |\n\
         |---|---|---|---|---|---|---|---|---|\n"
    );
    for (metric, mode) in keys {
        let of = |result: &&CellResult| result.metric == metric && result.mode == mode;
        out.push_str(&row(&results.iter().filter(of).collect::<Vec<_>>()));
    }
    Some(out)
}

fn row(results: &[&CellResult]) -> String {
    let count = |verdict| results.iter().filter(|result| result.verdict == verdict).count();
    let [wins, equal, losses, unresolved] =
        [Verdict::Win, Verdict::Equal, Verdict::Loss, Verdict::Unresolved].map(count);
    let mut ratios: Vec<f64> = results.iter().map(|result| result.ratio).collect();
    ratios.sort_by(f64::total_cmp);
    let (lowest, highest) = (ratios[0], ratios[ratios.len() - 1]);
    format!(
        "| {} | {} | {wins} | {equal} | {losses} | {unresolved} | {} | {} | {} |\n",
        results[0].mode,
        compare::name(results[0].metric),
        text::ratio(stats::median(&ratios)),
        text::ratio(lowest),
        text::ratio(highest)
    )
}
