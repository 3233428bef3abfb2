//! What copies and fills in user space come to: our own choice against its peers.

use super::wins::{self, count, figure};
use crate::params::cell_words;
use crate::record::{Cell, ExperimentKind, Record};
use crate::stats::peers::{AgainstBest, OURS, against_best, geomean};
use crate::stats::{self, THROUGHPUT, Versus, versus};

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
        record.cell(worst.cell).map_or_else(String::new, |cell| cell_words(&cell.params)),
    ))
}

fn worst(cells: &[AgainstBest]) -> Option<&AgainstBest> {
    cells.iter().min_by(|a, b| a.versus.ratio.total_cmp(&b.versus.ratio))
}

/// A mode against the baseline: where it wins, where it loses, and how badly.
pub(super) fn against_baseline(record: &Record, mode: &str) -> Option<String> {
    let baseline = record.header.baseline.as_str();
    let versus = |cell: &Cell| versus(record, cell.cell, mode, baseline, THROUGHPUT);
    let cells: Vec<(&Cell, Versus)> =
        record.cells.iter().filter_map(|cell| Some((cell, versus(cell)?))).collect();
    wins::sentence(&cells, (mode, baseline), "is faster")
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
            said.contains("ours is faster than libc in 0, the other way round in 1, equal in 0"),
            "{said}"
        );
    }
}
