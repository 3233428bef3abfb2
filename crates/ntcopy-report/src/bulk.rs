//! Copies in user space with a column for each way, and the library's own against its peers.

use ntcopy_record::lists::grouped;
use ntcopy_record::params::{axes, axis_words};
use ntcopy_record::stats::peers::{OURS, against_best};
use ntcopy_record::stats::{self, THROUGHPUT, Versus, geomean};
use ntcopy_record::{Cell, Record};
use serde_json::{Value, json};

use crate::text;
use crate::view::{Grid, heading};

/// A row for each cell, a column for each way.
pub(crate) fn side_by_side(record: &Record) -> Vec<Grid> {
    let (modes, best, axes) = (stats::modes(record), against_best(record), axes(&record.cells));
    let one = |cell: &Cell| {
        let best = best.iter().find(|best| best.cell == cell.cell);
        let mut row = vec![axis_words(&cell.params, &axes)];
        row.extend(modes.iter().map(|mode| {
            let rate = stats::mode_median(record, cell.cell, mode, THROUGHPUT);
            let mark = if best.is_some_and(|best| best.peer == *mode) { "*" } else { "" };
            rate.map_or("-".to_owned(), |rate| format!("{}{mark}", text::gigabytes(rate)))
        }));
        let baseline = record.header.baseline.as_str();
        let ours = stats::versus(record, cell.cell, OURS, baseline, THROUGHPUT);
        row.extend([ours.as_ref(), best.map(|best| &best.versus)].map(compared));
        (heading(&cell.params, &axes, "GB/s; * the best peer"), row)
    };
    let header = [&["cell"], &modes[..], &["ours / libc", "ours / best peer"]].concat();
    let header: Vec<String> = header.into_iter().map(str::to_owned).collect();
    let groups = grouped(record.cells.iter().map(one)).into_iter();
    groups.map(|(heading, rows)| Grid { heading, header: header.clone(), rows }).collect()
}

/// `1.31x (1.28-1.35)`.
fn compared(versus: Option<&Versus>) -> String {
    versus.map_or_else(String::new, |versus| text::with_interval(versus.ratio, versus.ci))
}

/// What `--json` adds: ours against the best peer of each cell.
pub(crate) fn json(record: &Record) -> Option<Value> {
    let cells = against_best(record);
    let (mean, ci) = geomean(cells.iter().map(|best| &best.versus))?;
    // Each has pairs enough: of fewer there is no figure.
    let list = cells.iter().map(|best| {
        json!({
            "params": record.cell(best.cell).map(|cell| cell.params.clone()),
            "peer": best.peer,
            "ratio": best.versus.ratio,
            "ci": [best.versus.ci.0, best.versus.ci.1],
        })
    });
    Some(json!({"geomean": mean, "ci": [ci.0, ci.1], "cells": list.collect::<Vec<Value>>()}))
}
