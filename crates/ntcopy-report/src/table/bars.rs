//! A sweep as bars of letters: hinted sends by plain ones, over what is in flight.

use ntcopy_record::stats::{CellResult, Verdict};
use ntcopy_record::{ExperimentKind, Record};

use crate::model::{self, Group};
use crate::text::{self, ascii, wrapped};

/// A letter stands for this much of the ratio.
const STEP: f64 = 0.05;
/// Letters for what is below 1, and for what is above.
const BELOW: usize = 18;
const ABOVE: usize = 54;
/// Fewer cells make no curve.
const FEWEST: usize = 3;
/// The modes that are drawn; of each group the first that it has.
const MODES: [&str; 2] = ["adaptive", "nt"];

/// The bars of a record of sends, for a terminal: nothing where there is no axis. Ends in an empty
/// line.
pub fn bars(record: &Record) -> String {
    if record.header.experiment != ExperimentKind::Unix || record.header.not_a_timing.is_some() {
        return String::new();
    }
    let groups = model::groups(record);
    let drawn = groups.iter().filter_map(drawn).collect::<Vec<String>>();
    if drawn.is_empty() {
        return String::new();
    }
    let legend =
        "Times the baseline: a letter is 0.05x beyond 1; # is sure, = is equal, . is unresolved.";
    format!("{}\n{legend}\n\n", drawn.join("\n"))
}

fn drawn(group: &Group<'_>) -> Option<String> {
    let rows = |mode: &str| -> Vec<(&str, &CellResult)> {
        let of = |cell: &'_ model::CellView<'_>| {
            cell.in_flight_bytes?;
            cell.modes.iter().position(|view| view.mode == mode && view.result.is_some())
        };
        let found = group.cells.iter().filter_map(|cell| Some((cell, of(cell)?)));
        found
            .filter_map(|(cell, at)| Some((cell.label.as_str(), cell.modes[at].result.as_ref()?)))
            .collect()
    };
    let (mode, rows) =
        MODES.iter().map(|mode| (mode, rows(mode))).find(|(_, rows)| rows.len() >= FEWEST)?;
    let mut out = wrapped(&ascii(&format!("{mode}: {}", group.heading)));
    for (label, result) in rows {
        let line = format!("{label:>10}  {:>6} {}", text::ratio(result.ratio), bar(result));
        out.push_str(line.trim_end());
        out.push('\n');
    }
    Some(out)
}

/// A bar to the right of the line at 1, or to its left.
fn bar(result: &CellResult) -> String {
    let letter = match result.verdict {
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
