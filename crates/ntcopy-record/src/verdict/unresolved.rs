//! What was not found out, and what would find it out.

use crate::record::{LookEnd, Record};
use crate::stats::{self, Verdict, Versus};
use crate::units::count;

/// One sentence of all results whose interval is too wide to say anything; none where there are none.
pub(super) fn sentence(record: &Record) -> Option<String> {
    let mut all = stats::results(record);
    all.retain(|result| result.mode != stats::IDLE);
    let unresolved = all.iter().map(|result| &result.versus);
    let unresolved: Vec<&Versus> =
        unresolved.filter(|versus| versus.verdict() == Verdict::Unresolved).collect();
    let most_pairs = unresolved.iter().map(|versus| versus.ratios.len()).max()?;
    let half_width = |versus: &&Versus| (versus.ci.1 - versus.ci.0) / 2.0;
    let widest = unresolved.iter().map(half_width).fold(0.0, f64::max);
    let spent = record.looks.iter().filter(|look| look.end == LookEnd::Budget).count();
    let why = match spent {
        0 => String::new(),
        spent => format!("; the time for {} was up", count(spent, "cell")),
    };
    Some(format!(
        "Unresolved: {} of {} results have an interval that holds 1 and is wider than 0.97 to 1.03, by \
         up to {:.0} % to either side after {most_pairs} pairs{why}. Four times the pairs halve it \
         (--budget SECONDS); processes that are pinned (taskset) and a quieter machine need \
         fewer.",
        unresolved.len(),
        all.len(),
        widest * 100.0,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Look;
    use crate::record::testing::sends;

    #[test]
    fn what_is_too_wide_is_said_with_what_to_do() {
        let rates = [800, 1200, 1000, 900, 1100].map(|rate| [1000, rate]);
        let mut record = sends(&["copy", "nt"], rates);
        let said = sentence(&record).unwrap();
        let words = "2 of 2 results have an interval that holds 1 and is wider than 0.97 to 1.03, by \
                     up to 20 % to either side after 5 pairs. Four times";
        assert!(said.contains(words), "{said}");
        let look = Look { cell: 0, pairs: 5, misses_permille: 50, end: LookEnd::Budget };
        record.looks.push(look);
        let said = sentence(&record).unwrap();
        assert!(said.contains("; the time for 1 cell was up"), "{said}");
    }
}
