//! Whether the pairs of a cell that are there say enough.

use std::collections::BTreeMap;

use ntcopy_judge::Ratio;
use ntcopy_judge::stats::looks::{LastLook, Looks};
use ntcopy_judge::stats::{self, MIN_PAIRS, Verdict};

pub struct Pairs<'a> {
    looks: Looks,
    /// Nothing is said of fewer pairs, whatever the time.
    fewest: u32,
    baseline: &'a str,
    /// Each mode's figure in each group that has one.
    figures: BTreeMap<String, BTreeMap<u32, f64>>,
}

impl<'a> Pairs<'a> {
    /// None yet; the first look comes after `first` pairs.
    pub fn new(first: u32, baseline: &'a str) -> Pairs<'a> {
        let (looks, figures) = (Looks::from_pairs(first), BTreeMap::new());
        Pairs { looks, fewest: first, baseline, figures }
    }

    /// Adds a figure of which more is better.
    pub fn add(&mut self, mode: &str, pair: u32, figure: f64) {
        self.figures.entry(mode.to_owned()).or_default().insert(pair, figure);
    }

    /// The look after this number of pairs, if it is the last one.
    pub fn last(&mut self, pairs: u32, is_time_up: bool) -> Option<LastLook> {
        if pairs < self.fewest {
            return None;
        }
        let Pairs { looks, baseline, figures, .. } = self;
        looks.last(pairs, is_time_up, |permille| is_resolved(figures, baseline, permille))
    }
}

/// Whether every mode is a win, a loss or equal beside the baseline. One that has too few pairs
/// (it failed, or is not measured by this) has nothing to resolve.
fn is_resolved(
    figures: &BTreeMap<String, BTreeMap<u32, f64>>,
    baseline: &str,
    permille: u32,
) -> bool {
    let Some(baseline_figures) = figures.get(baseline) else { return true };
    figures.iter().filter(|(mode, _)| *mode != baseline).all(|(_, ours)| {
        let pairs =
            ours.iter().filter_map(|(pair, ours)| Some((ours, baseline_figures.get(pair)?)));
        let ratios: Vec<f64> = pairs
            .filter(|(_, theirs)| **theirs > 0.0)
            .map(|(ours, theirs)| ours / theirs)
            .collect();
        ratios.len() < MIN_PAIRS || result(&ratios, permille).verdict() != Verdict::Unresolved
    })
}

fn result(ratios: &[f64], permille: u32) -> Ratio {
    Ratio { ratio: stats::median(ratios), ci: stats::interval(ratios, permille) }
}

#[cfg(test)]
mod tests {
    use ntcopy_record::LookEnd;

    use super::*;

    /// Samples pairs at these rates of `nt`, in turns, beside 1000 of `copy`; the pairs after which
    /// sampling ended, and with what.
    fn sampled(rates: &[f64], most: u32) -> (u32, LastLook) {
        let mut pairs = Pairs::new(5, "plain");
        let mut count = 0;
        loop {
            if let Some(last) = pairs.last(count, count >= most) {
                return (count, last);
            }
            pairs.add("plain", count, 1000.0);
            pairs.add("hinted", count, rates[count as usize % rates.len()]);
            count += 1;
        }
    }

    #[test]
    fn a_cell_is_sampled_until_it_is_resolved() {
        let clear = sampled(&[1200.0, 1210.0], 100);
        assert_eq!((clear.0, clear.1.end), (8, LookEnd::Resolved), "the first look");
        let equal = sampled(&[1000.0, 1010.0, 990.0], 100);
        assert_eq!((equal.0, equal.1.end), (8, LookEnd::Resolved));
        let (count, last) = sampled(&[800.0, 1300.0], 100);
        assert_eq!((count, last.end), (100, LookEnd::Budget));
        let (count, last) = sampled(&[800.0, 1300.0], 1000);
        assert_eq!((count, last.end), (128, LookEnd::Pairs), "the last look");
    }

    #[test]
    fn a_budget_that_is_spent_leaves_the_pairs_of_the_plan() {
        let (count, last) = sampled(&[800.0, 1300.0], 0);
        assert_eq!((count, last.misses_permille, last.end), (5, 50, LookEnd::Budget));
    }

    #[test]
    fn a_mode_without_pairs_holds_nothing_up() {
        let mut pairs = Pairs::new(8, "plain");
        for pair in 0..8 {
            pairs.add("plain", pair, 1000.0);
        }
        pairs.add("hinted", 0, 1.0);
        assert!(pairs.last(8, false).is_some_and(|last| last.end == LookEnd::Resolved));
    }
}
