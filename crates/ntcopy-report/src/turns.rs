//! A program's turns, plain and hinted.

use ntcopy_record::Record;
use ntcopy_record::params::listed;
use ntcopy_record::stats::median;
use ntcopy_record::stats::turns::{self, HINTED, METRIC, Outcome, PLAIN, PROGRAM, outcome};
use serde_json::{Value, json};

use crate::view::{Grid, with_results};
use ntcopy_record::word;

const HEADER: [&str; 6] = ["figure", "mode", "median", "ratio", "verdict", "turns"];

/// One table: plain and hinted. A ratio above 1 means that hinted was better.
pub(crate) fn grids(record: &Record) -> Vec<Grid> {
    let Some(cell) = record.cells.first() else { return Vec::new() };
    let heading = cell.params.get(PROGRAM).map(listed).unwrap_or_default();
    let outcome = outcome(record);
    let figures = |mode: &str| -> Vec<f64> {
        let ours = record.samples.iter().filter(|sample| sample.mode == mode);
        ours.filter_map(turns::figure).collect()
    };
    let metric = match word(&cell.params, METRIC) {
        Some("time") => "time, s",
        Some(other) => other,
        None => "",
    };
    let row = |mode: &str| {
        let figures = figures(mode);
        let outcome = outcome.as_ref().filter(|_| mode == HINTED);
        vec![
            if mode == PLAIN { metric.to_owned() } else { String::new() },
            mode.to_owned(),
            if figures.is_empty() { "-".to_owned() } else { figure(median(&figures)) },
            outcome.map_or_else(String::new, |outcome| outcome.versus.result().to_string()),
            match outcome {
                Some(outcome) => outcome.versus.verdict().as_str(),
                None if mode == PLAIN => "baseline",
                None => "too few pairs",
            }
            .to_owned(),
            figures.len().to_string(),
        ]
    };
    let rows = [PLAIN, HINTED].map(row).into();
    vec![Grid { heading, header: HEADER.map(str::to_owned).into(), rows }]
}

fn figure(value: f64) -> String {
    let digits = 3_i32.saturating_sub(value.abs().max(1e-9).log10().floor() as i32).clamp(0, 9);
    format!("{value:.*}", usize::try_from(digits).unwrap_or(0))
}

/// The object that `--json` prints.
pub(crate) fn json(record: &Record) -> Value {
    let outcome = outcome(record);
    let results: Vec<Value> = outcome.iter().map(result).collect();
    let mut object = with_results(record, results);
    if let Some(outcome) = &outcome {
        object["hinted_bytes"] = outcome.counted.hinted_bytes.into();
        object["hinted_part"] = outcome.counted.hinted_part().into();
        object["nontemporal_part"] = outcome.counted.bypassed_part().into();
        object["advice"] = outcome.advice().into();
    }
    if !record.errors.is_empty() {
        object["errors"] = record.errors.iter().map(|error| error.what.as_str()).collect();
    }
    object
}

fn result(outcome: &Outcome) -> Value {
    let Outcome { versus, .. } = outcome;
    json!({
        "params": outcome.params,
        "mode": HINTED,
        "baseline": PLAIN,
        "metric": outcome.metric,
        "median": versus.median,
        "baseline_median": versus.other_median,
        "ratio": versus.ratio,
        "ci": versus.ci,
        "verdict": versus.verdict().as_str(),
        "pairs": versus.ratios.len(),
    })
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
