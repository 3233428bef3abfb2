//! Where a mode wins, where it loses, and by how much, in the words that all experiments have for
//! it.

use crate::params::cell_words;
use crate::record::Cell;
use crate::stats::{Verdict, Versus};

/// One sentence of a mode against another over cells, by one metric; none without cells.
pub(super) fn sentence(
    cells: &[(&Cell, Versus)],
    (mode, other): (&str, &str),
    is_better: &str,
) -> Option<String> {
    let verdicts = |verdict| cells.iter().filter(|(_, v)| v.verdict() == verdict).count();
    let (cell, least) = worst(cells)?;
    let (best_cell, most) = cells.iter().max_by(|a, b| a.1.ratio.total_cmp(&b.1.ratio))?;
    let range = if cells.len() == 1 {
        format!("{} ({})", figure(least), cell_words(&cell.params))
    } else {
        format!(
            "from {} ({}) to {} ({})",
            figure(least),
            cell_words(&cell.params),
            figure(most),
            cell_words(&best_cell.params)
        )
    };
    Some(format!(
        "{mode} {is_better} than {other} in {}, the other way round in {}, equal in {} and \
         unresolved in {} of {}: {range}.",
        verdicts(Verdict::Win),
        verdicts(Verdict::Loss),
        verdicts(Verdict::Equal),
        verdicts(Verdict::Unresolved),
        count(cells.len()),
    ))
}

pub(super) fn worst<'a, 'b>(cells: &'b [(&'a Cell, Versus)]) -> Option<&'b (&'a Cell, Versus)> {
    cells.iter().min_by(|a, b| a.1.ratio.total_cmp(&b.1.ratio))
}

/// `1.31x, interval 1.28-1.35`; a third digit where two would show nothing.
pub(super) fn figure(versus: &Versus) -> String {
    let (ratio, (low, high)) = (versus.ratio, versus.ci);
    let digits = if low < 0.1 { 3 } else { 2 };
    format!("{ratio:.digits$}x, interval {low:.digits$}-{high:.digits$}")
}

pub(super) fn count(cells: usize) -> String {
    if cells == 1 { "1 cell".to_owned() } else { format!("{cells} cells") }
}
