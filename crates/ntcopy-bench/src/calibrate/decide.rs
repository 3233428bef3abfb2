//! Makes thresholds of figures. Pure.

use ntcopy_judge::stats::{interval, median};
use ntcopy_record::MISSES_PERMILLE;

/// The rates of two ways in the same rounds, as ratios.
pub fn ratios(ours: &[f64], theirs: &[f64]) -> Vec<f64> {
    ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs).collect()
}

/// The number of the way that is to be used: the first, unless another beats it in all that its
/// interval holds; of several such, the one with the best median ratio.
pub fn best(rates: &[Vec<f64>]) -> usize {
    let Some(first) = rates.first() else { return 0 };
    let ratio = |way: &Vec<f64>| {
        let ratios = ratios(way, first);
        (interval(&ratios, MISSES_PERMILLE).0 > 1.0).then(|| median(&ratios))
    };
    let better = rates.iter().enumerate().skip(1).filter_map(|(at, way)| Some((at, ratio(way)?)));
    better.max_by(|a, b| a.1.total_cmp(&b.1)).map_or(0, |(at, _)| at)
}

/// The size from which on the sizes have most to gain: the sum of the scores' logarithms from there
/// to the last is the largest. None if no such sum is a gain. Sizes are in ascending order.
///
/// A sum, so that one figure that something disturbed does not decide alone.
pub fn from_size(scores: &[(u64, f64)]) -> Option<u64> {
    let mut sum = 0.0;
    let mut best = (0.0, None);
    for (size, score) in scores.iter().rev() {
        sum += score.ln();
        if sum > best.0 {
            best = (sum, Some(*size));
        }
    }
    best.1
}

/// The size from which on no score is below `least`. Sizes are in ascending order.
pub fn safe_from(scores: &[(u64, f64)], least: f64) -> Option<u64> {
    scores.iter().rev().take_while(|(_, score)| *score >= least).last().map(|(size, _)| *size)
}

/// The longest run of sizes with scores of at least `least`: from a size, and below a size (none
/// if it goes on to the last). None if there is no such run of two sizes or more: one alone is
/// chance.
pub fn range(scores: &[(u64, f64)], least: f64) -> Option<(u64, Option<u64>)> {
    let mut best: Option<(usize, usize)> = None;
    let mut start = 0;
    for end in 0..=scores.len() {
        if end == scores.len() || scores[end].1 < least {
            if end - start >= 2 && best.is_none_or(|(from, to)| end - start > to - from) {
                best = Some((start, end));
            }
            start = end + 1;
        }
    }
    best.map(|(from, to)| (scores[from].0, scores.get(to).map(|(size, _)| *size)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_stays_unless_another_is_surely_better() {
        let noisy = vec![0.9, 1.1, 1.2, 1.3, 1.4];
        let better = vec![1.1, 1.2, 1.1, 1.2, 1.1];
        let best_of_all = vec![1.5; 5];
        assert_eq!(best(&[vec![1.0; 5], noisy.clone()]), 0);
        assert_eq!(best(&[vec![1.0; 5], noisy, better.clone()]), 2);
        assert_eq!(best(&[vec![1.0; 5], better, best_of_all]), 2);
        assert_eq!(best(&[]), 0);
    }

    #[test]
    fn a_threshold_is_where_most_is_gained_from_there_on() {
        assert_eq!(from_size(&[(1, 0.5), (2, 0.8), (4, 1.3), (8, 1.2), (16, 1.5)]), Some(4));
        assert_eq!(from_size(&[(1, 0.5), (2, 1.5), (4, 1.5), (8, 0.98)]), Some(2), "a blot");
        assert_eq!(from_size(&[(1, 1.1), (2, 0.5), (4, 1.1)]), Some(4));
        assert_eq!(from_size(&[(1, 1.5), (2, 0.5)]), None);
        assert_eq!(from_size(&[]), None);
    }

    #[test]
    fn a_size_is_safe_where_none_above_it_loses() {
        assert_eq!(safe_from(&[(1, 0.9), (2, 1.1), (4, 0.9), (8, 1.0), (16, 1.2)], 0.95), Some(8));
        assert_eq!(safe_from(&[(1, 1.1), (2, 0.5)], 0.95), None);
        assert_eq!(safe_from(&[], 0.95), None);
    }

    #[test]
    fn a_range_is_the_longest_run_and_one_size_is_none() {
        let scores = [(1, 1.2), (2, 0.9), (4, 1.1), (8, 1.1), (16, 0.8), (32, 1.3)];
        assert_eq!(range(&scores, 1.03), Some((4, Some(16))));
        assert_eq!(range(&scores[4..], 1.03), None);
        assert_eq!(range(&scores[2..4], 1.03), Some((4, None)));
    }
}
