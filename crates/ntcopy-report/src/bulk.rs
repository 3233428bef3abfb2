//! Copies in user space with a column for each way, and the library's own against its peers.

use ntcopy_record::Record;
use ntcopy_record::params::{axes, axis_words};
use ntcopy_record::stats::peers::{OURS, against_best};
use ntcopy_record::stats::{self, THROUGHPUT, Versus, geomean};
use serde_json::{Value, json};

use crate::text;
use crate::view::{Grid, heading};

/// A row for each cell, a column for each way.
pub(crate) fn side_by_side(record: &Record) -> Vec<Grid> {
    let (modes, best, axes) = (stats::modes(record), against_best(record), axes(&record.cells));
    let mut grids: Vec<Grid> = Vec::new();
    for cell in &record.cells {
        let best = best.iter().find(|best| best.cell == cell.cell);
        let heading = heading(&cell.params, &axes, "GB/s; * the best peer");
        let mut row = vec![axis_words(&cell.params, &axes)];
        row.extend(modes.iter().map(|mode| {
            let rate = stats::mode_median(record, cell.cell, mode, THROUGHPUT);
            let mark = if best.is_some_and(|best| best.peer == *mode) { "*" } else { "" };
            rate.map_or("-".to_owned(), |rate| format!("{}{mark}", text::gigabytes(rate)))
        }));
        let baseline = record.header.baseline.as_str();
        let ours = stats::versus(record, cell.cell, OURS, baseline, THROUGHPUT);
        row.extend([ours.as_ref(), best.map(|best| &best.versus)].map(compared));
        match grids.iter_mut().find(|grid| grid.heading == heading) {
            Some(grid) => grid.rows.push(row),
            None => {
                let names = modes.iter().copied();
                let header =
                    ["cell"].into_iter().chain(names).chain(["ours / libc", "ours / best peer"]);
                let header = header.map(str::to_owned).collect();
                grids.push(Grid { heading, header, rows: vec![row] });
            }
        }
    }
    grids
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
