//! How many lines of a cache calls displace.

use ntcopy_judge::Judged;
use ntcopy_judge::stats::footprint::{CallFigures, LevelFigures};
use serde_json::{Value, json};

use crate::view::{Entry, Grid, with_results};

/// Lines are equivalent lines read.
const HEADER: [&str; 6] = ["call", "", "lines", "interval", "per KiB", "us"];

/// A table for each level; a row for each call.
pub(crate) fn grids(record: &Judged) -> Vec<Grid> {
    let grid = |level: &LevelFigures| Grid {
        heading: format!(
            "{}: {} lines primed, beyond {} cycles; {:.0} missing when nothing happens",
            level.level, level.primed_lines, level.threshold_cycles, level.missing_lines
        ),
        header: HEADER.map(str::to_owned).into(),
        by_mode: false,
        rows: rows(level),
    };
    record.levels.iter().map(grid).collect()
}

fn rows(level: &LevelFigures) -> Vec<Vec<Entry>> {
    let least = |is_at_least: bool| if is_at_least { ">=" } else { "" };
    let call = |call: &CallFigures| {
        let least = least(call.is_at_least);
        let row = [
            call.call.clone(),
            String::new(),
            format!("{least}{:.0}", call.lines),
            format!("{:.0}-{:.0}", call.ci.0, call.ci.1),
            call.per_kib.map_or_else(String::new, |lines| format!("{least}{lines:.1}")),
            format!("{:.1}", call.call_ns / 1000.0),
        ];
        row.map(Entry::from).into()
    };
    level.calls.iter().map(call).collect()
}

/// The object that `--json` prints.
pub(crate) fn json(record: &Judged) -> Value {
    let mut results: Vec<Value> = record.levels.iter().flat_map(results).collect();
    results.extend(
        record
            .unavailable
            .iter()
            .map(|line| json!({"params": {}, "mode": line.mode, "unavailable": line.why})),
    );
    let mut object = with_results(record, results);
    object["levels"] = json!(record.levels);
    object
}

fn results(level: &LevelFigures) -> Vec<Value> {
    let one = |call: &CallFigures| {
        json!({
            "params": {"level": level.level, "bytes": call.bytes},
            "mode": call.call,
            "metric": "equivalent_lines_read",
            "median": call.lines,
            "ci": [call.ci.0, call.ci.1],
            "at_least": call.is_at_least,
            "lines_per_kib": call.per_kib,
            "displaced_lines": call.displaced_lines,
            "call_ns": call.call_ns,
        })
    };
    level.calls.iter().map(one).collect()
}
