//! A sweep's figures, arranged for reading: a grid an address family and object, sockets down,
//! data sets across.

use comfy_table::{Cell, CellAlignment, Table, presets};
use ntcopy_record::stats::sweep::{AIM, Sweep, SweepCell};
use ntcopy_record::verdict;

use crate::text;

/// Cells that differ in sockets and data set only.
#[derive(Debug)]
pub(crate) struct Grid<'a> {
    pub family: &'a str,
    pub object_bytes: u64,
    /// Sizes of the data set in bytes, across.
    pub datasets: Vec<u64>,
    /// Numbers of sockets, down.
    pub sockets: Vec<u64>,
    pub cells: Vec<&'a SweepCell<'a>>,
}

impl<'a> Grid<'a> {
    /// The grids of a sweep, in its order.
    pub fn all(sweep: &'a Sweep<'a>) -> Vec<Grid<'a>> {
        let mut grids: Vec<Grid<'a>> = Vec::new();
        for cell in &sweep.cells {
            let object_bytes = number(cell, "object_bytes");
            let same = |grid: &&mut Grid<'a>| {
                (grid.family, grid.object_bytes) == (cell.family(), object_bytes)
            };
            match grids.iter_mut().find(same) {
                Some(grid) => grid.cells.push(cell),
                None => grids.push(Grid {
                    family: cell.family(),
                    object_bytes,
                    datasets: vec![],
                    sockets: vec![],
                    cells: vec![cell],
                }),
            }
        }
        for grid in &mut grids {
            grid.datasets = values(&grid.cells, "dataset_bytes");
            grid.sockets = values(&grid.cells, "sockets");
        }
        grids
    }

    /// The cell of this place, if it was measured.
    pub fn at(&self, sockets: u64, dataset: u64) -> Option<&'a SweepCell<'a>> {
        let here = |cell: &&&SweepCell<'_>| {
            (number(cell, "sockets"), number(cell, "dataset_bytes")) == (sockets, dataset)
        };
        self.cells.iter().find(here).copied()
    }

    pub fn heading(&self) -> String {
        let family = match self.family {
            "unix" => "unix sockets".to_owned(),
            other => format!("{other} sockets over the loopback"),
        };
        format!("Objects of {}, {family}", text::size(self.object_bytes))
    }
}

fn number(cell: &SweepCell<'_>, name: &str) -> u64 {
    cell.number(name).unwrap_or(0)
}

fn values(cells: &[&SweepCell<'_>], name: &str) -> Vec<u64> {
    let mut values: Vec<u64> = cells.iter().map(|cell| number(cell, name)).collect();
    values.sort_unstable();
    values.dedup();
    values
}

/// For a terminal: a row a cell, with intervals. ASCII, below 100 columns.
pub(crate) fn terminal(sweep: &Sweep<'_>) -> String {
    let mut out = String::new();
    for grid in Grid::all(sweep) {
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        table.set_header([
            "data set",
            "sockets",
            "nt/copy",
            "adaptive/copy",
            "adaptive/better",
            "better",
            "NT",
            "in sends",
        ]);
        for column in table.column_iter_mut() {
            column.set_cell_alignment(CellAlignment::Right);
        }
        for dataset in &grid.datasets {
            for (index, sockets) in grid.sockets.iter().enumerate() {
                let Some(cell) = grid.at(*sockets, *dataset) else { continue };
                let place = if index == 0 { text::size(*dataset) } else { String::new() };
                table.add_row([
                    Cell::new(place),
                    Cell::new(sockets),
                    Cell::new(figure(cell.nt.ratio, cell.nt.ci)),
                    Cell::new(figure(cell.adaptive.ratio, cell.adaptive.ci)),
                    Cell::new(figure(cell.against_better.ratio, cell.against_better.ci)),
                    Cell::new(cell.better),
                    Cell::new(text::percent(cell.nontemporal_share)),
                    Cell::new(text::percent(cell.send_share)),
                ]);
            }
        }
        out.push_str(&format!("{}:\n", grid.heading()));
        for line in table.lines() {
            out.push_str(line.trim_end());
            out.push('\n');
        }
        out.push('\n');
    }
    out.push_str(NOTES);
    out
}

const NOTES: &str = "\
nt/copy, adaptive/copy: throughput of the whole way, with 95 % intervals. adaptive/better: against
whichever of copy and nt has the higher median. NT: part of adaptive's bytes that went
non-temporally. in sends: part of a plain round's time that is spent in the send calls; over the
loopback these include the network stack up to the receiver's queue.
";

fn figure(ratio: f64, (low, high): (f64, f64)) -> String {
    format!("{ratio:.2} ({low:.2}-{high:.2})")
}

/// For a README: a row a number of sockets, three ratios a data set, no intervals.
pub(crate) fn markdown(sweep: &Sweep<'_>) -> String {
    let mut out = String::new();
    for grid in Grid::all(sweep) {
        let mut table = Table::new();
        table.load_style(presets::ASCII_MARKDOWN).set_width(u16::MAX);
        let mut header = vec!["sockets".to_owned(), "in flight".to_owned()];
        for dataset in &grid.datasets {
            let size = text::size(*dataset);
            header.extend([format!("{size}: nt"), "adaptive".into(), "of better".into()]);
        }
        table.set_header(header);
        for column in table.column_iter_mut() {
            column.set_cell_alignment(CellAlignment::Right);
        }
        for sockets in &grid.sockets {
            let mut row = vec![sockets.to_string(), text::size(sockets * grid.object_bytes)];
            for dataset in &grid.datasets {
                row.extend(match grid.at(*sockets, *dataset) {
                    Some(cell) => [
                        text::ratio(cell.nt.ratio),
                        text::ratio(cell.adaptive.ratio),
                        format!("{:.2}", cell.against_better.ratio),
                    ],
                    None => [String::new(), String::new(), String::new()],
                });
            }
            table.add_row(row);
        }
        out.push_str(&format!("{}; by size of the data set:\n\n{table}\n\n", grid.heading()));
    }
    let (mean, (low, high)) = sweep.geomean();
    let worst = sweep.worst();
    out.push_str(&format!(
        "`nt` and `adaptive` are throughputs relative to that of `copy`; `of better` is adaptive relative \
         to the better of the two. Over {} cells: geometric mean {mean:.3} ({low:.3}-{high:.3}), worst \
         {:.2} ({:.2}-{:.2}). {}\n\n",
        sweep.cells.len(),
        worst.against_better.ratio,
        worst.against_better.ci.0,
        worst.against_better.ci.1,
        verdict::below_aim(sweep),
    ));
    out
}

/// The sweep as JSON, for programs.
pub(crate) fn json(sweep: &Sweep<'_>) -> serde_json::Value {
    let (mean, (low, high)) = sweep.geomean();
    let worst = sweep.worst();
    let (least, most) = sweep.below_aim_by_chance();
    let cells: Vec<serde_json::Value> = sweep
        .cells
        .iter()
        .map(|cell| {
            serde_json::json!({
                "params": cell.cell.params,
                "nt_by_copy": cell.nt.ratio,
                "nt_by_copy_ci": [cell.nt.ci.0, cell.nt.ci.1],
                "adaptive_by_copy": cell.adaptive.ratio,
                "adaptive_by_copy_ci": [cell.adaptive.ci.0, cell.adaptive.ci.1],
                "better": cell.better,
                "adaptive_by_better": cell.against_better.ratio,
                "adaptive_by_better_ci": [cell.against_better.ci.0, cell.against_better.ci.1],
                "nontemporal_share": cell.nontemporal_share,
                "send_share": cell.send_share,
            })
        })
        .collect();
    serde_json::json!({
        "geomean": mean,
        "geomean_ci": [low, high],
        "worst": worst.against_better.ratio,
        "worst_cell": worst.cell.params,
        "aim": AIM,
        "below_aim": sweep.below_aim(),
        "below_aim_by_chance": [least, most],
        "cells": cells,
    })
}
