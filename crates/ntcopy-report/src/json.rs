//! The object that `ntcopy bench --json` prints.

use ntcopy_judge::claims::{OF_SAMPLES, Point, Question, results};
use ntcopy_judge::experiments::{Of, experiment};
use ntcopy_judge::{CEILING, Judged};
use ntcopy_record::lists::unique;
use ntcopy_record::{Cell, RunError, Sends};
use serde_json::{Value, json};

use crate::experiment::views;
use crate::view::{self, with_results};
use crate::{footprint, turns};

/// A record's results as one object.
///
/// `experiment`, `record` (its id), `machine`, `sentences` (what a page and a terminal say of it) and
/// `results` are always there. A result has
/// `params`, `mode`, `baseline`, `metric`, `median` and `baseline_median` (bytes per second),
/// `ratio`, `ci` and `verdict`; a mode that is not to be had appears in every cell with
/// `unavailable`, and one that failed with `error` and `wrong_byte`, instead of figures.
///
/// `median` is bytes per second; of metric `walks` it is another program's walks per second, of
/// `walks_p99` one by the seconds that 99 in 100 of them did not exceed, of `bytes_per_cpu_s` bytes
/// per CPU second of proxy and backend, of client and server, or of a program that was measured as
/// it is, and of `p50_rate` and `p99_rate` one by that latency in seconds.
///
/// `figures` has what the tables show beside that: an entry for each mode in each cell.
///
/// Only where there is something to say: `not_a_timing`, why these are no timings; `complete`, false
/// for a record that was cut short; `beside`, the processes that measured at the same time.
///
/// For a program's turns (`try`) and for footprints `results` has what these commands print:
/// `metric` is what a turn's figure is, or `equivalent_lines_read`.
pub fn object(record: &Judged) -> Value {
    match experiment(&record.header.experiment).of {
        Of::Cells => {}
        Of::Turns => return turns::json(record),
        Of::Calls => return footprint::json(record),
    }
    let results = results(record, OF_SAMPLES);
    let mut list: Vec<Value> = Vec::new();
    for cell in &record.cells {
        for mode in modes(record) {
            let ours = |point: &&Point<'_>| point.cell == cell && point.question.mode == mode;
            list.extend(results.iter().filter(ours).map(figures));
            let failed = |error: &&RunError| error.cell == cell.cell && error.mode == mode;
            list.extend(record.errors.iter().filter(failed).map(|e| failure(record, cell, e)));
            list.extend(unavailable(record, cell, mode).map(|why| {
                let mut entry = entry(record, Some(cell), mode);
                entry["unavailable"] = why.into();
                entry
            }));
        }
    }
    if record.cells.is_empty() {
        list.extend(record.unavailable.iter().map(|line| {
            let mut entry = entry(record, None, &line.mode);
            entry["unavailable"] = line.why.as_str().into();
            entry
        }));
    }
    let mut object = with_results(record, list);
    object["figures"] = view::json(record, &views(record));
    object
}

/// The modes that the record mentions, the baseline first.
fn modes(record: &Judged) -> Vec<&str> {
    unique(std::iter::once(record.header.baseline.as_str()).chain(record.mentioned()))
}

/// Why a mode is not to be had in a cell.
fn unavailable<'a>(record: &'a Judged, cell: &Cell, mode: &str) -> Option<&'a str> {
    let here = |at: Option<u32>| at.is_none_or(|at| at == cell.cell);
    let line = record.unavailable.iter().find(|line| line.mode == mode && here(line.cell));
    line.map(|line| line.why.as_str())
}

fn figures(Point { question, record, cell, versus, .. }: &Point<'_>) -> Value {
    let Question { mode, metric, .. } = *question;
    let mut object = entry(record, Some(cell), mode);
    object["metric"] = metric.into();
    object["median"] = (versus.median.round() as u64).into();
    object["baseline_median"] = (versus.other_median.round() as u64).into();
    object["ratio"] = versus.ratio.into();
    object["ci"] = json!(versus.ci);
    object["verdict"] =
        if record.header.sends(mode) == Sends::Idle { CEILING } else { versus.verdict().as_str() }
            .into();
    object
}

fn entry(record: &Judged, cell: Option<&Cell>, mode: &str) -> Value {
    let params = cell.map(|cell| cell.params.clone()).unwrap_or_default();
    json!({"params": params, "mode": mode, "baseline": record.header.baseline})
}

fn failure(record: &Judged, cell: &Cell, error: &RunError) -> Value {
    let mut entry = entry(record, Some(cell), &error.mode);
    entry["error"] = error.what.as_str().into();
    entry["wrong_byte"] = error.wrong_byte.into();
    entry
}
