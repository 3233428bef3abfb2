//! Medians and the percentile bootstrap.

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

fn median_in_place(values: &mut [f64]) -> f64 {
    assert!(!values.is_empty(), "the median of nothing");
    values.sort_unstable_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 {
        values[middle]
    } else {
        f64::midpoint(values[middle - 1], values[middle])
    }
}

/// The generator of Steele, Lea and Flood (OOPSLA 2014).
///
/// Written out here because the intervals of records that lie on disk must not
/// change when a library changes its generator.
struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`. The bias is `bound` in 2^64: nothing, for a few samples.
    fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.next()) * bound as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splitmix_gives_the_published_sequence() {
        // First outputs for seed 1234567, as in the generator's reference code.
        let mut random = SplitMix64(1_234_567);
        let first: Vec<u64> = (0..3).map(|_| random.next()).collect();
        let expected =
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!(first, expected);
    }

    #[test]
    fn median_of_odd_and_even_counts() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(median(&[7.0]), 7.0);
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
