//! Where a mode wins, where it loses, and by how much: the words that all experiments have for it.

use crate::params::cell_words;
use crate::record::{Cell, number};
use crate::stats::{self, CEILING, IDLE, Tally, Verdict, Versus, words};
use crate::units::{Bytes, count};

/// One sentence of a mode relative to another over cells, by one metric; none without cells.
pub(super) fn sentence(
    cells: &[(&Cell, Versus)],
    (mode, other): (&str, &str),
    metric: &str,
) -> Option<String> {
    let by_ratio = |a: &&(&Cell, Versus), b: &&(&Cell, Versus)| a.1.ratio.total_cmp(&b.1.ratio);
    let (least, most) = (cells.iter().min_by(by_ratio)?, cells.iter().max_by(by_ratio)?);
    let told = |(cell, versus): &(&Cell, Versus)| at(versus, cell);
    let head = format!("{mode} relative to {other}, {}: ", words(metric));
    if mode == IDLE {
        let most = if cells.len() > 1 { format!(" to {}", told(most)) } else { String::new() };
        return Some(format!("{head}the {CEILING}, {}{most}.", told(least)));
    }
    if let [only] = cells {
        return Some(format!("{head}{}, {}.", only.1.verdict().as_str(), told(only)));
    }
    let from = wins_from(cells).map_or(String::new(), |bytes| {
        format!("; every cell wins from {} in flight on", Bytes(bytes))
    });
    Some(format!(
        "{head}{} among {}, from {} to {}{from}.",
        outcomes(cells),
        count(cells.len(), "cell"),
        told(least),
        told(most),
    ))
}

/// `2 wins, 1 loss, 3 equal`: those that there are.
fn outcomes(cells: &[(&Cell, Versus)]) -> String {
    let tally: Tally = cells.iter().map(|(_, versus)| versus.verdict()).collect();
    let words =
        [("win", "wins"), ("loss", "losses"), ("equal", "equal"), ("unresolved", "unresolved")];
    tally.words(words)
}

/// The bytes in flight from which on every cell wins, where some cell below does not.
fn wins_from(cells: &[(&Cell, Versus)]) -> Option<u64> {
    let sized = |(cell, versus): &(&Cell, Versus)| {
        Some((number(&cell.params, "in_flight_bytes")?, versus.verdict() == Verdict::Win))
    };
    let sized: Vec<(u64, bool)> = cells.iter().map(sized).collect::<Option<_>>()?;
    stats::wins_from(&sized).filter(|(_, is_other_below)| *is_other_below).map(|(bytes, _)| bytes)
}

/// `1.31x (1.28-1.35) [objects of 1 MiB, 64 MiB in flight]`
pub(super) fn at(versus: &Versus, cell: &Cell) -> String {
    format!("{} [{}]", versus.result(), cell_words(&cell.params))
}
