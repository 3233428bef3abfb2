//! What a comparison comes to, in words.

use super::{Compared, Comparison, groups, overall};
use crate::stats::{Tally, Verdict, words};

/// A sentence a mode and metric of each experiment; one for what could not be compared.
#[must_use]
pub fn sentences(comparison: &Comparison<'_>) -> Vec<String> {
    let mut sentences: Vec<String> =
        groups(comparison).iter().filter_map(|group| sentence(group)).collect();
    if comparison.cells.is_empty() {
        sentences.push(
            "Nothing can be compared: the two sides have no cell in common, or too few pairs in it."
                .to_owned(),
        );
    }
    let alone = (comparison.only_a, comparison.only_b);
    if alone != (0, 0) {
        sentences.push(format!("Results on one side only: {} in A, {} in B.", alone.0, alone.1));
    }
    sentences
}

fn sentence(cells: &[&Compared<'_>]) -> Option<String> {
    let first = cells.first()?;
    let header = &first.a.record.header;
    let mean = overall(cells)?;
    let says = match Verdict::from_interval(mean.ci) {
        Verdict::Win => "does better in B than in A",
        Verdict::Loss => "does worse in B than in A",
        Verdict::Equal => "does as well in B as in A",
        Verdict::Unresolved => "is unresolved between A and B",
    };
    let all: Tally = cells.iter().map(|cell| cell.verdict).collect();
    let tally = if cells.len() == 1 {
        String::new()
    } else {
        format!(
            "; clearly better in {}, clearly worse in {} of {} cells",
            all.wins,
            all.losses,
            cells.len()
        )
    };
    Some(format!(
        "{}: {} against {}, by {}, {says}: B's ratio is at {mean} of A's{}{tally}.",
        header.experiment,
        first.mode,
        header.baseline,
        words(first.metric),
        if cells.len() == 1 { "" } else { " (geometric mean)" },
    ))
}
