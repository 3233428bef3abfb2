//! What a sweep comes to.

use crate::params::cell_words;
use crate::record::Record;
use crate::stats::sweep::{AIM, Sweep, SweepCell};
use crate::units::Bytes;

/// Bytes in flight from which the hint by the rule is expected to gain.
const LARGE_BYTES: u64 = 64 << 20;

/// Sentences about the rule's mode against the better of the other two; none
/// if the record is no sweep.
pub fn sentences(record: &Record) -> Vec<String> {
    let Some(sweep) = Sweep::of(record) else { return vec![] };
    let (mean, (low, high)) = sweep.geomean();
    let worst = sweep.worst();
    let mut sentences = vec![format!(
        "Over {} cells the hint by the rule reaches {mean:.3} of the better of copy and nt in the \
         geometric mean (interval {low:.3}-{high:.3}); the worst is {:.2} (interval {:.2}-{:.2}; \
         {}).",
        sweep.cells.len(),
        worst.against_better.ratio,
        worst.against_better.ci.0,
        worst.against_better.ci.1,
        cell_words(&worst.cell.params),
    )];
    sentences.push(below_aim(&sweep));
    let gains: Vec<&SweepCell<'_>> = sweep.beyond(LARGE_BYTES).collect();
    let by_gain =
        |a: &&&SweepCell<'_>, b: &&&SweepCell<'_>| a.adaptive.ratio.total_cmp(&b.adaptive.ratio);
    if let (Some(least), Some(most)) = (gains.iter().min_by(by_gain), gains.iter().max_by(by_gain))
    {
        sentences.push(format!(
            "With {} or more in flight ({}) it is at {:.2}x to {:.2}x of copy; the least is {}.",
            Bytes(LARGE_BYTES),
            cells(gains.len()),
            least.adaptive.ratio,
            most.adaptive.ratio,
            cell_words(&least.cell.params),
        ));
    }
    sentences
}

/// How many cells are below the [aim](AIM), and how many noise alone would put there: a sentence.
#[must_use]
pub fn below_aim(sweep: &Sweep<'_>) -> String {
    let is = match sweep.below_aim() {
        0 => return format!("No cell is below {AIM}."),
        1 => "1 cell is".to_owned(),
        count => format!("{count} cells are"),
    };
    let (least, most) = sweep.below_aim_by_chance();
    format!(
        "{is} below {AIM}; were the hint as good as the better one in every cell, noise alone would \
         put {least} to {most} there.",
    )
}

fn cells(count: usize) -> String {
    if count == 1 { "1 cell".to_owned() } else { format!("{count} cells") }
}
