//! A program's turns, plain and hinted.

use ntcopy_judge::params::listed;
use ntcopy_judge::stats::turns::{FigureOf, HINTED, Outcome, PLAIN, PROGRAM};
use ntcopy_judge::stats::{TURNS, Verdict, Versus};
use ntcopy_judge::{Judged, Measured};
use serde_json::{Value, json};

use crate::verdict;
use crate::view::{Entry, Grid, with_results};

const HEADER: [&str; 6] = ["figure", PLAIN, HINTED, "ratio", "verdict", "pairs"];

/// One table, a row for each figure. A ratio above 1 means that hinted was better.
pub(crate) fn grids(record: &Judged) -> Vec<Grid> {
    let Some(cell) = record.cells.first() else { return Vec::new() };
    let heading = cell.params.get(PROGRAM).map(listed).unwrap_or_default();
    let mut rows: Vec<Vec<Entry>> = match &record.outcome {
        Some(outcome) => outcome.figures().map(row).collect(),
        None => vec![too_few(&record.measured(cell))],
    };
    rows[0][0] = with_unit(FigureOf::cell(&cell.params)).into();
    vec![Grid { heading, header: HEADER.map(str::to_owned).into(), by_mode: false, rows }]
}

fn with_unit(figure: Option<FigureOf>) -> String {
    match figure {
        Some(FigureOf::Time) => "time, s".to_owned(),
        Some(other) => other.name().to_owned(),
        None => String::new(),
    }
}

fn row((name, versus, verdict): (&str, &Versus, Verdict)) -> Vec<Entry> {
    vec![
        name.to_owned().into(),
        figure(versus.other_median).into(),
        figure(versus.median).into(),
        versus.result().to_string().into(),
        verdict.into(),
        versus.ratios.len().to_string().into(),
    ]
}

/// The medians of the turns that there are.
fn too_few(all: &[Measured<'_>]) -> Vec<Entry> {
    let [plain, hinted] = [PLAIN, HINTED].map(|mode| all.iter().find(|one| one.mode == mode));
    let median = |one: Option<&Measured<'_>>| {
        one.and_then(|one| one.median(TURNS)).map_or_else(|| "-".to_owned(), figure)
    };
    let [many_plain, many_hinted] = [plain, hinted].map(|one| one.map_or(0, |one| one.many(TURNS)));
    let pairs = many_plain.min(many_hinted).to_string();
    let [name, ratio, verdict] = ["", "", "too few pairs"].map(str::to_owned);
    let row = [name, median(plain), median(hinted), ratio, verdict, pairs];
    row.map(Entry::from).into()
}

fn figure(value: f64) -> String {
    let digits = 3_i32.saturating_sub(value.abs().max(1e-9).log10().floor() as i32).clamp(0, 9);
    format!("{value:.*}", usize::try_from(digits).unwrap_or(0))
}

/// The object that `--json` prints.
pub(crate) fn json(record: &Judged) -> Value {
    let outcome = record.outcome.as_ref();
    let results = outcome.map_or_else(Vec::new, results);
    let mut object = with_results(record, results);
    if let Some(outcome) = outcome {
        object["hinted_bytes"] = outcome.counted.hinted_bytes.into();
        object["hinted_part"] = outcome.counted.hinted_part().into();
        object["nontemporal_part"] = outcome.counted.bypassed_part().into();
        object["advice"] = verdict::advice(outcome).into();
        object["alike"] = json!(outcome.alike);
    }
    if !record.errors.is_empty() {
        object["errors"] = record.errors.iter().map(|error| error.what.as_str()).collect();
    }
    object
}

/// The figure, then what was noted beside it.
fn results(outcome: &Outcome) -> Vec<Value> {
    let result = |(metric, versus, verdict): (&str, &Versus, Verdict)| {
        json!({
            "params": outcome.params,
            "mode": HINTED,
            "baseline": PLAIN,
            "metric": metric,
            "median": versus.median,
            "baseline_median": versus.other_median,
            "ratio": versus.ratio,
            "ci": versus.ci,
            "verdict": verdict.as_str(),
            "pairs": versus.ratios.len(),
        })
    };
    outcome.figures().map(result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_four_digits() {
        let shown = [0.001_234_56, 0.5, 12.345_67, 81_234.6].map(figure);
        assert_eq!(shown, ["0.001235", "0.5000", "12.35", "81235"]);
    }
}
