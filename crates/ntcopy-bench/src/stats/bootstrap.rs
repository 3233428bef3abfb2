//! Medians and the percentile bootstrap.

use crate::random::SplitMix64;

/// Resamples that an interval is made from.
pub const RESAMPLES: usize = 10_000;

/// Where the resampling starts. A constant, so that the same record gives the
/// same interval to everybody; any other number would do as well.
const SEED: u64 = 0x6e74_636f_7079;

/// The middle of the values: of an even number, the mean of the two in the middle.
///
/// # Panics
///
/// When there are no values.
#[must_use]
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    median_in_place(&mut sorted)
}

/// The 95 % percentile bootstrap interval of the median of `values`.
///
/// Deterministic: the same values in the same order give the same interval.
///
/// # Panics
///
/// When there are no values.
#[must_use]
pub fn interval(values: &[f64]) -> (f64, f64) {
    let mut random = SplitMix64(SEED);
    let mut drawn = vec![0.0; values.len()];
    let mut medians: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            for slot in &mut drawn {
                *slot = values[random.below(values.len())];
            }
            median_in_place(&mut drawn)
        })
        .collect();
    medians.sort_unstable_by(f64::total_cmp);
    // 2.5 % of the medians lie outside on either side.
    let outside = RESAMPLES / 40;
    (medians[outside], medians[RESAMPLES - 1 - outside])
}

/// The 95 % percentile bootstrap interval of the geometric mean of the medians
/// of several lists; each list is drawn anew by itself.
///
/// # Panics
///
/// When there are no lists, or one has no values.
#[must_use]
pub fn interval_of_geomean(lists: &[Vec<f64>]) -> (f64, f64) {
    /// The mean of many medians varies little, so fewer resamples than for one do.
    const RESAMPLES: usize = 1000;
    assert!(!lists.is_empty(), "the mean of nothing");
    let mut random = SplitMix64(SEED);
    let mut drawn = Vec::new();
    let mut means: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            let logs = lists.iter().map(|values| {
                drawn.clear();
                drawn.extend((0..values.len()).map(|_| values[random.below(values.len())]));
                median_in_place(&mut drawn).ln()
            });
            (logs.sum::<f64>() / lists.len() as f64).exp()
        })
        .collect();
    means.sort_unstable_by(f64::total_cmp);
    let outside = RESAMPLES / 40;
    (means[outside], means[RESAMPLES - 1 - outside])
}

/// The 95 % percentile bootstrap interval of the geometric mean of quotients of medians, each of
/// two lists that were measured apart: both are drawn anew, each by itself.
///
/// # Panics
///
/// When there are no quotients, or a list has no values.
#[must_use]
pub fn interval_of_quotients(quotients: &[(&[f64], &[f64])]) -> (f64, f64) {
    const RESAMPLES: usize = 2000;
    assert!(!quotients.is_empty(), "the mean of nothing");
    let mut random = SplitMix64(SEED);
    let mut drawn = Vec::new();
    let mut log_of_median = |values: &[f64]| {
        drawn.clear();
        drawn.extend((0..values.len()).map(|_| values[random.below(values.len())]));
        median_in_place(&mut drawn).ln()
    };
    let mut means: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            let logs: f64 = quotients
                .iter()
                .map(|(ours, theirs)| log_of_median(ours) - log_of_median(theirs))
                .sum();
            (logs / quotients.len() as f64).exp()
        })
        .collect();
    means.sort_unstable_by(f64::total_cmp);
    let outside = RESAMPLES / 40;
    (means[outside], means[RESAMPLES - 1 - outside])
}

/// The 95 % percentile bootstrap interval of any figure of `count` things that are drawn together:
/// `figure` gets the numbers of those drawn, and none is what cannot be told from them.
///
/// None when a drawing in 40 or more has no figure.
///
/// # Panics
///
/// When there are no things.
#[must_use]
pub fn interval_of(count: usize, figure: impl Fn(&[usize]) -> Option<f64>) -> Option<(f64, f64)> {
    const RESAMPLES: usize = 2000;
    let mut random = SplitMix64(SEED);
    let mut drawn = vec![0; count];
    let mut figures: Vec<f64> = (0..RESAMPLES)
        .filter_map(|_| {
            drawn.iter_mut().for_each(|slot| *slot = random.below(count));
            figure(&drawn)
        })
        .collect();
    if figures.len() <= RESAMPLES - RESAMPLES / 40 {
        return None;
    }
    figures.sort_unstable_by(f64::total_cmp);
    let outside = figures.len() / 40;
    Some((figures[outside], figures[figures.len() - 1 - outside]))
}

/// The value below which a part of the values lies, `part` from 0 to 1 (the
/// nearest rank: always one of the values).
///
/// # Panics
///
/// When there are no values.
#[must_use]
pub fn quantile(values: &[f64], part: f64) -> f64 {
    assert!(!values.is_empty(), "a quantile of nothing");
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let rank = (part * sorted.len() as f64).ceil() as usize;
    sorted[rank.clamp(1, sorted.len()) - 1]
}

fn median_in_place(values: &mut [f64]) -> f64 {
    assert!(!values.is_empty(), "the median of nothing");
    let middle = values.len() / 2;
    let is_odd = values.len() % 2 == 1;
    // Not sorted but parted: an interval takes ten thousand medians.
    let (below, upper, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    if is_odd {
        return *upper;
    }
    let lower = below.iter().copied().max_by(f64::total_cmp).unwrap_or(*upper);
    f64::midpoint(lower, *upper)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_of_odd_and_even_counts() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(median(&[7.0]), 7.0);
    }

    #[test]
    fn quantiles_are_nearest_ranks() {
        let values: Vec<f64> = (1..=200).map(f64::from).collect();
        assert_eq!(quantile(&values, 0.99), 198.0);
        assert_eq!(quantile(&values, 1.0), 200.0);
        assert_eq!(quantile(&values, 0.0), 1.0);
        assert_eq!(quantile(&[3.0], 0.5), 3.0);
    }

    #[test]
    fn a_geometric_mean_of_points_is_a_point() {
        let (low, high) = interval_of_geomean(&[vec![2.0; 5], vec![8.0; 7]]);
        assert!((low - 4.0).abs() < 1e-9 && (high - 4.0).abs() < 1e-9, "{low} {high}");
        let (low, high) = interval_of_geomean(&[vec![0.9, 1.0, 1.1, 1.0, 0.95]]);
        assert!(low < 1.0 && high >= 1.0, "{low} {high}");
    }

    #[test]
    fn things_that_are_drawn_together_keep_their_ratio() {
        let (ours, theirs) = ([2.0, 4.0, 6.0, 8.0, 10.0], [1.0, 2.0, 3.0, 4.0, 5.0]);
        let of = |values: &[f64], drawn: &[usize]| {
            median(&drawn.iter().map(|at| values[*at]).collect::<Vec<f64>>())
        };
        let ratio = |drawn: &[usize]| Some(of(&ours, drawn) / of(&theirs, drawn));
        assert_eq!(interval_of(5, ratio), Some((2.0, 2.0)));
        let seldom = |drawn: &[usize]| (drawn[0] > 0).then_some(1.0);
        assert_eq!(interval_of(5, seldom), None);
    }

    #[test]
    fn quotients_of_lists_that_were_measured_apart_carry_the_noise_of_both() {
        let (two, eight, noisy) = ([2.0; 5], [8.0; 7], [0.8, 1.0, 1.2, 0.9, 1.1]);
        let (low, high) = interval_of_quotients(&[(&eight, &two)]);
        assert!((low - 4.0).abs() < 1e-9 && (high - 4.0).abs() < 1e-9, "{low} {high}");
        let (low, high) = interval_of_quotients(&[(&eight, &two), (&two, &eight)]);
        assert!((low - 1.0).abs() < 1e-9 && (high - 1.0).abs() < 1e-9, "{low} {high}");
        let (low, high) = interval_of_quotients(&[(&noisy, &noisy)]);
        assert!(low < 0.9 && high > 1.1, "two lists, not one twice: {low} {high}");
    }

    #[test]
    fn interval_of_equal_values_is_a_point() {
        assert_eq!(interval(&[1.25; 15]), (1.25, 1.25));
    }

    #[test]
    fn interval_of_five_is_their_span() {
        // P(median of 5 draws is the least) is 5.8 %, above the 2.5 % cut off.
        assert_eq!(interval(&[1.0, 5.0, 2.0, 4.0, 3.0]), (1.0, 5.0));
    }

    #[test]
    fn interval_of_fifteen_drops_the_outlier() {
        let mut values: Vec<f64> = (0..14).map(|n| 1.0 + f64::from(n) / 100.0).collect();
        values.push(50.0);
        let (low, high) = interval(&values);
        assert!(low >= 1.0 && high < 1.2, "{low} {high}");
    }
}
