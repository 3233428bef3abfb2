//! A sweep as bars of letters: hinted sends by plain ones, over what is in flight.

use ntcopy_record::lists::grouped;
use ntcopy_record::params::axes;
use ntcopy_record::stats::{THROUGHPUT, Verdict, Versus, versus};
use ntcopy_record::{Cell, ExperimentKind, Record, number};

use crate::text::{self, ascii, wrapped};
use crate::view::heading;

/// A letter stands for this much of the ratio.
const STEP: f64 = 0.05;
/// Letters for what is below 1, and for what is above.
const BELOW: usize = 18;
const ABOVE: usize = 54;
/// Fewer cells make no curve.
const FEWEST: usize = 3;
/// What the bars are over.
const AXIS: &str = "in_flight_bytes";
/// The modes that are drawn; of each group the first that it has.
const MODES: [&str; 2] = ["adaptive", "nt"];

/// The bars of a record of sends, for a terminal: nothing where there is no axis. Ends in an empty
/// line.
pub fn bars(record: &Record) -> String {
    if record.header.experiment != ExperimentKind::Unix || record.header.not_a_timing.is_some() {
        return String::new();
    }
    let axes = axes(&record.cells);
    let cells = record.cells.iter().filter(|cell| number(&cell.params, AXIS).is_some());
    let groups = grouped(cells.map(|cell| (heading(&cell.params, &axes, ""), cell)));
    let drawn: Vec<String> =
        groups.iter().filter_map(|(heading, cells)| drawn(record, heading, cells)).collect();
    if drawn.is_empty() {
        return String::new();
    }
    let legend =
        "Times the baseline: a letter is 0.05x beyond 1; # is sure, = is equal, . is unresolved.";
    format!("{}\n{legend}\n\n", drawn.join("\n"))
}

fn drawn(record: &Record, heading: &str, cells: &[&Cell]) -> Option<String> {
    let baseline = record.header.baseline.as_str();
    let rows = |mode: &str| -> Vec<(u64, Versus)> {
        let row = |cell: &&Cell| {
            let versus = versus(record, cell.cell, mode, baseline, THROUGHPUT)?;
            Some((number(&cell.params, AXIS)?, versus))
        };
        let mut rows: Vec<(u64, Versus)> = cells.iter().filter_map(row).collect();
        rows.sort_by_key(|(bytes, _)| *bytes);
        rows
    };
    let (mode, rows) =
        MODES.iter().map(|mode| (mode, rows(mode))).find(|(_, rows)| rows.len() >= FEWEST)?;
    let mut out = wrapped(&ascii(&format!("{mode}: {heading}")));
    for (bytes, versus) in rows {
        let (size, ratio) = (text::size(bytes), text::ratio(versus.ratio));
        let line = format!("{size:>10}  {ratio:>6} {}", bar(&versus));
        out.push_str(line.trim_end());
        out.push('\n');
    }
    Some(out)
}

/// A bar to the right of the line at 1, or to its left.
fn bar(result: &Versus) -> String {
    let letter = match result.verdict() {
        Verdict::Win | Verdict::Loss => "#",
        Verdict::Equal => "=",
        Verdict::Unresolved => ".",
    };
    let letters = ((result.ratio - 1.0).abs() / STEP).round() as usize;
    if result.ratio < 1.0 {
        let letters = letters.min(BELOW);
        return format!("{:>BELOW$}|", letter.repeat(letters));
    }
    let cut = if letters > ABOVE { ">" } else { "" };
    format!("{:BELOW$}|{}{cut}", "", letter.repeat(letters.min(ABOVE)))
}
