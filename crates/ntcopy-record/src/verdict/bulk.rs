//! What copies and fills in user space come to: our own choice against its peers.

use serde_json::Value;

use super::wins::{count, figure};
pub(super) use crate::record::word;
use crate::record::{Cell, ExperimentKind, Params, Record};
use crate::stats::peers::{AgainstBest, OURS, against_best, geomean};
use crate::stats::{self, THROUGHPUT, Verdict, Versus, versus};
use crate::units::Bytes;

pub(super) fn sentences(record: &Record) -> Vec<String> {
    let mut sentences = match &record.header.experiment {
        ExperimentKind::Order => order(record),
        _ => {
            let mut sentences: Vec<String> = against_peers(record).into_iter().collect();
            sentences.extend(against_baseline(record, OURS));
            if sentences.is_empty() {
                // Other ways alone were asked for.
                let baseline = record.header.baseline.as_str();
                let modes = stats::modes(record).into_iter().filter(|mode| *mode != baseline);
                sentences.extend(modes.filter_map(|mode| against_baseline(record, mode)));
            }
            sentences
        }
    };
    sentences.extend(not_measured(record));
    if sentences.is_empty() {
        sentences.push("Nothing was compared: the record holds too few pairs.".to_owned());
    }
    sentences
}

/// A sentence for each mode that is not to be had.
pub(super) fn not_measured(record: &Record) -> impl Iterator<Item = String> {
    record.unavailable.iter().filter(|line| line.cell.is_none()).map(|line| {
        let why = line.why.trim_end_matches('.');
        format!("{} was not measured: {why}.", line.mode)
    })
}

/// Ours against the best peer of each cell: mean and worst.
fn against_peers(record: &Record) -> Option<String> {
    let cells = against_best(record);
    let (mean, ci) = geomean(&cells)?;
    let worst = worst(&cells)?;
    Some(format!(
        "Over {} ours reaches {mean:.2}x the best peer of each (geometric mean, interval \
         {:.2}-{:.2}); worst {} against {} ({}).",
        count(cells.len()),
        ci.0,
        ci.1,
        figure(&worst.versus),
        worst.peer,
        words_of(record, worst.cell),
    ))
}

fn worst(cells: &[AgainstBest]) -> Option<&AgainstBest> {
    cells.iter().min_by(|a, b| a.versus.ratio.total_cmp(&b.versus.ratio))
}

/// A mode against the baseline: where it wins, where it loses, and how badly.
pub(super) fn against_baseline(record: &Record, mode: &str) -> Option<String> {
    let baseline = record.header.baseline.as_str();
    let cells: Vec<(&Cell, Versus)> = record
        .cells
        .iter()
        .filter_map(|cell| Some((cell, versus(record, cell.cell, mode, baseline, THROUGHPUT)?)))
        .collect();
    let verdicts = |verdict| cells.iter().filter(|(_, v)| v.verdict() == verdict).count();
    let (cell, worst) = cells.iter().min_by(|a, b| a.1.ratio.total_cmp(&b.1.ratio))?;
    let (best_cell, best) = cells.iter().max_by(|a, b| a.1.ratio.total_cmp(&b.1.ratio))?;
    Some(format!(
        "Against {baseline} {mode} wins in {}, loses in {}, is equal in {} and unresolved in {} of \
         {}: from {} ({}) to {} ({}).",
        verdicts(Verdict::Win),
        verdicts(Verdict::Loss),
        verdicts(Verdict::Equal),
        verdicts(Verdict::Unresolved),
        count(cells.len()),
        figure(worst),
        cell_words(&cell.params),
        figure(best),
        cell_words(&best_cell.params),
    ))
}

/// Every walk against the row by row one.
fn order(record: &Record) -> Vec<String> {
    let baseline = record.header.baseline.as_str();
    let mut sentences = Vec::new();
    for cell in &record.cells {
        let modes = stats::modes(record).into_iter().filter(|mode| *mode != baseline);
        let walks: Vec<String> = modes
            .filter_map(|mode| {
                let versus = versus(record, cell.cell, mode, baseline, THROUGHPUT)?;
                Some(format!("{mode} goes at {}", figure(&versus)))
            })
            .collect();
        if !walks.is_empty() {
            sentences.push(format!(
                "{}: against {baseline}, {}.",
                cell_words(&cell.params),
                walks.join(", ")
            ));
        }
    }
    sentences
}

fn words_of(record: &Record, cell: u32) -> String {
    record.cell(cell).map_or_else(String::new, |cell| cell_words(&cell.params))
}

pub(super) fn number(params: &Params, name: &str) -> Option<u64> {
    params.get(name).and_then(Value::as_u64)
}

/// What is special about a cell of pages, in a few words.
fn page_words(params: &Params) -> Vec<String> {
    let mut words = Vec::new();
    if let (Some(action), Some(read_back)) = (word(params, "action"), word(params, "read_back")) {
        words.push(match read_back {
            "none" => action.to_owned(),
            "some" => format!("{action}, 100 bytes a page read back"),
            _ => format!("{action}, all read back"),
        });
    }
    if let (Some(user), Some(usage)) = (word(params, "user"), word(params, "use")) {
        let amount = if usage == "byte" { "one byte a page" } else { "every byte" };
        words.push(format!("the {user} writes {amount}"));
    }
    words
}

/// The cell that a result is of, in a few words.
pub(super) fn cell_words(params: &Params) -> String {
    let mut words = Vec::new();
    if let (Some(task), Some(side)) = (word(params, "task"), number(params, "side")) {
        return format!("{task} of {side} x {side}");
    }
    words.extend(number(params, "size_bytes").map(|size| Bytes(size).to_string()));
    words.extend(page_words(params));
    if let (Some(source), Some(destination)) = (word(params, "source"), word(params, "destination"))
    {
        words.push(format!("{source} to {destination}"));
    }
    if let Some(threads) = number(params, "threads").filter(|threads| *threads > 1) {
        words.push(format!("{threads} threads"));
    }
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::testing::{Sketch, record};

    /// Cold copies of 256 MiB, five pairs at these rates of (libc, rep-movsb, ours, stream).
    fn copies(rates: [u64; 4]) -> Record {
        let names = ["libc", "rep-movsb", "ours", "stream"];
        let mut empty = record(&names, &[&[("size_bytes", 256 << 20), ("threads", 1)]]);
        empty.header.experiment = ExperimentKind::Memcpy;
        empty.cells[0].params.insert("source".into(), "cold".into());
        empty.cells[0].params.insert("destination".into(), "cold".into());
        let mut sketch = Sketch::of(&names, empty);
        for pair in 0..5 {
            sketch.pair(0, pair, &rates);
        }
        sketch.record()
    }

    #[test]
    fn ours_is_held_against_the_best_peer() {
        let said = sentences(&copies([100, 200, 150, 120])).join("\n");
        assert!(said.contains("0.75x the best peer"), "{said}");
        assert!(said.contains("worst 0.75x, interval 0.75-0.75 against rep-movsb"), "{said}");
    }

    #[test]
    fn a_loss_against_libc_is_said() {
        let said = sentences(&copies([200, 100, 150, 150])).join("\n");
        assert!(
            said.contains("ours wins in 0, loses in 1, is equal in 0 and unresolved in 0"),
            "{said}"
        );
    }
}
