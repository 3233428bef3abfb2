//! Our own way against the best of its peers, cell by cell.

use super::{THROUGHPUT, Versus, mode_median, modes, versus};
use crate::record::Record;

/// The library's own choice.
const OURS: &str = "ours";
const STREAM: &str = "stream";

#[derive(Debug, Clone, PartialEq)]
pub struct AgainstBest {
    pub cell: u32,
    /// The peer with the best median there.
    pub peer: String,
    pub versus: Versus,
}

/// Ours against the best peer in each cell that has enough pairs of both. A peer is every mode but
/// `ours` and `stream`.
///
/// Which peer is the best is decided by the medians of all its samples. Where several are equal but
/// for noise, the best median is a little better than the truth; the error stands against us.
#[must_use]
pub fn against_best(record: &Record) -> Vec<AgainstBest> {
    let peers: Vec<&str> =
        modes(record).into_iter().filter(|mode| *mode != OURS && *mode != STREAM).collect();
    let best = |cell: u32| {
        let median = |peer: &&str| mode_median(record, cell, peer, THROUGHPUT);
        let rated = peers.iter().filter_map(|peer| Some((*peer, median(peer)?)));
        rated.max_by(|a, b| a.1.total_cmp(&b.1)).map(|(peer, _)| peer)
    };
    let one = |cell: u32| {
        let peer = best(cell)?;
        let versus = versus(record, cell, OURS, peer, THROUGHPUT)?;
        Some(AgainstBest { cell, peer: peer.to_owned(), versus })
    };
    record.cells.iter().filter_map(|cell| one(cell.cell)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::testing::{Sketch, record};
    use crate::stats::geomean;

    #[test]
    fn the_best_peer_is_another_in_every_cell_and_never_our_own() {
        let names = ["libc", "rep-movsb", "ours", "stream"];
        let mut sketch = Sketch::of(&names, record(&names, &[&[], &[]]));
        for pair in 0..5 {
            sketch.pair(0, pair, &[100, 200, 300, 900]);
            sketch.pair(1, pair, &[400, 200, 200, 900]);
        }
        let cells = against_best(&sketch.record());
        let said: Vec<(&str, f64)> =
            cells.iter().map(|cell| (cell.peer.as_str(), cell.versus.ratio)).collect();
        assert!(said[0].0 == "rep-movsb" && (said[0].1 - 1.5).abs() < 1e-6, "{said:?}");
        assert!(said[1].0 == "libc" && (said[1].1 - 0.5).abs() < 1e-6, "{said:?}");
        let (mean, (low, high)) = geomean(cells.iter().map(|cell| &cell.versus)).unwrap();
        assert!((mean - 0.75_f64.sqrt()).abs() < 1e-6 && low <= mean && mean <= high);
        assert_eq!(geomean([]), None);
    }
}
