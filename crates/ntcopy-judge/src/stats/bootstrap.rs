//! Medians and the percentile bootstrap.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::random::SplitMix64;

/// Resamples that an interval is made from.
const RESAMPLES: usize = 10_000;

/// Where the resampling starts. A constant, so that the same record gives the
/// same interval to everybody; any other number would do as well.
const SEED: u64 = 0x6e74_636f_7079;

/// The middle of the values: of an even number, the mean of the two in the middle.
#[must_use]
pub fn median(values: &[f64]) -> f64 {
    assert!(!values.is_empty(), "the median of nothing");
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let last = sorted.len() - 1;
    f64::midpoint(sorted[last / 2], sorted[last.div_ceil(2)])
}

/// The percentile bootstrap interval of the median of `values`, which may miss it in this part of
/// 1000. Of five it is their span, which holds the median in 94 of 100 cases.
///
/// Deterministic: the same values give the same interval, in whatever order they come.
#[must_use]
pub fn interval(values: &[f64], permille: u32) -> (f64, f64) {
    let ranked = Ranked::new(values);
    let mut medians: Vec<(f64, usize)> =
        ranked.drawings.counted.iter().map(|(at, count)| (ranked.median(*at), *count)).collect();
    medians.sort_unstable_by(|one, other| one.0.total_cmp(&other.0));
    let at = |index: usize| {
        let mut before = 0;
        let holds = |(_, count): &&(f64, usize)| {
            before += count;
            before > index
        };
        medians.iter().find(holds).expect("as many medians as resamples").0
    };
    let outside = outside(RESAMPLES, permille);
    (at(outside), at(RESAMPLES - 1 - outside))
}

/// How many of `drawings` lie outside on one side.
fn outside(drawings: usize, permille: u32) -> usize {
    drawings * permille as usize / 2000
}

/// The places of the two values in the middle, among sorted ones: the same one twice of an odd
/// number.
type Middle = (usize, usize);

/// Which values are in the middle of each drawing: that depends on how many there are, and on
/// nothing else, so it is drawn once for each number of values.
struct Drawings {
    each: Vec<Middle>,
    /// The same with how often each comes: most drawings have the same few.
    counted: BTreeMap<Middle, usize>,
}

impl Drawings {
    fn of(many: usize) -> Arc<Drawings> {
        static KNOWN: Mutex<BTreeMap<usize, Arc<Drawings>>> = Mutex::new(BTreeMap::new());
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        known.entry(many).or_insert_with(|| Arc::new(Drawings::new(many))).clone()
    }

    fn new(many: usize) -> Drawings {
        let mut random = SplitMix64(SEED);
        let mut counts = vec![0; many];
        let each: Vec<Middle> =
            (0..RESAMPLES).map(|_| drawn_middle(&mut counts, &mut random)).collect();
        let mut counted = BTreeMap::new();
        for middle in &each {
            *counted.entry(*middle).or_default() += 1;
        }
        Drawings { each, counted }
    }
}

/// Draws as many as there are, and walks up to the middle of what was drawn.
fn drawn_middle(counts: &mut [u32], random: &mut SplitMix64) -> Middle {
    let many = counts.len();
    counts.fill(0);
    for _ in 0..many {
        counts[random.below(many)] += 1;
    }
    let (lower, upper) = ((many - 1) / 2, many / 2);
    let (mut before, mut first) = (0, None);
    for (place, count) in counts.iter().enumerate() {
        before += *count as usize;
        if before > lower && first.is_none() {
            first = Some(place);
        }
        if before > upper {
            return (first.unwrap_or(place), place);
        }
    }
    unreachable!("as many are counted as were drawn")
}

/// Values that medians of drawings are taken of.
struct Ranked {
    sorted: Vec<f64>,
    drawings: Arc<Drawings>,
}

impl Ranked {
    fn new(values: &[f64]) -> Ranked {
        assert!(!values.is_empty(), "the median of nothing");
        let mut sorted = values.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        Ranked { sorted, drawings: Drawings::of(values.len()) }
    }

    fn median(&self, (lower, upper): Middle) -> f64 {
        match lower == upper {
            true => self.sorted[lower],
            false => f64::midpoint(self.sorted[lower], self.sorted[upper]),
        }
    }

    fn drawn_median(&self, random: &mut SplitMix64) -> f64 {
        self.median(self.drawings.each[random.below(RESAMPLES)])
    }
}

/// The percentile bootstrap interval of the geometric mean of the medians of several lists, which
/// may miss it in this part of 1000. Beside each list is another one, whose median its own is
/// divided by; it is empty where there is none. All are drawn anew, each by itself.
#[must_use]
pub fn interval_of_geomean(lists: &[(&[f64], &[f64])], permille: u32) -> (f64, f64) {
    assert!(!lists.is_empty(), "the mean of nothing");
    let both = |(ours, theirs): &(&[f64], &[f64])| {
        (Ranked::new(ours), (!theirs.is_empty()).then(|| Ranked::new(theirs)))
    };
    let ranked: Vec<(Ranked, Option<Ranked>)> = lists.iter().map(both).collect();
    // The mean of many medians varies little, so fewer resamples than for one do.
    let drawings = if ranked.iter().any(|(_, theirs)| theirs.is_some()) { 2000 } else { 1000 };
    let mut random = SplitMix64(SEED);
    let mut draw = |_| {
        let logs = ranked.iter().map(|(ours, theirs)| {
            let ours = ours.drawn_median(&mut random).ln();
            ours - theirs.as_ref().map_or(0.0, |list| list.drawn_median(&mut random).ln())
        });
        (logs.sum::<f64>() / lists.len() as f64).exp()
    };
    let mut drawn: Vec<f64> = (0..drawings).map(&mut draw).collect();
    drawn.sort_unstable_by(f64::total_cmp);
    let outside = outside(drawings, permille);
    (drawn[outside], drawn[drawings - 1 - outside])
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
    fn a_geometric_mean_of_points_is_a_point() {
        let (low, high) = interval_of_geomean(&[(&[2.0; 5], &[]), (&[8.0; 7], &[])], 50);
        assert!((low - 4.0).abs() < 1e-9 && (high - 4.0).abs() < 1e-9, "{low} {high}");
        let (low, high) = interval_of_geomean(&[(&[0.9, 1.0, 1.1, 1.0, 0.95], &[])], 50);
        assert!(low < 1.0 && high >= 1.0, "{low} {high}");
    }

    #[test]
    fn quotients_of_lists_that_were_measured_apart_carry_the_noise_of_both() {
        let (two, eight, noisy) = ([2.0; 5], [8.0; 7], [0.8, 1.0, 1.2, 0.9, 1.1]);
        let (low, high) = interval_of_geomean(&[(&eight, &two)], 50);
        assert!((low - 4.0).abs() < 1e-9 && (high - 4.0).abs() < 1e-9, "{low} {high}");
        let (low, high) = interval_of_geomean(&[(&eight, &two), (&two, &eight)], 50);
        assert!((low - 1.0).abs() < 1e-9 && (high - 1.0).abs() < 1e-9, "{low} {high}");
        let (low, high) = interval_of_geomean(&[(&noisy, &noisy)], 50);
        assert!(low < 0.9 && high > 1.1, "two lists, not one twice: {low} {high}");
    }

    /// The same by its definition.
    fn plain_interval(values: &[f64]) -> (f64, f64) {
        let mut values = values.to_vec();
        values.sort_unstable_by(f64::total_cmp);
        let mut random = SplitMix64(SEED);
        let mut drawn = || -> Vec<f64> {
            (0..values.len()).map(|_| values[random.below(values.len())]).collect()
        };
        let mut medians: Vec<f64> = (0..RESAMPLES).map(|_| median(&drawn())).collect();
        medians.sort_unstable_by(f64::total_cmp);
        (medians[RESAMPLES / 40], medians[RESAMPLES - 1 - RESAMPLES / 40])
    }

    #[test]
    fn counting_gives_what_sorting_gives() {
        let mut random = SplitMix64(7);
        for many in [1, 2, 3, 4, 5, 6, 15, 16, 40] {
            // Some of them equal.
            let values: Vec<f64> = (0..many).map(|_| random.below(20) as f64 / 7.0).collect();
            assert_eq!(interval(&values, 50), plain_interval(&values), "{values:?}");
        }
    }

    #[test]
    fn interval_of_five_is_their_span() {
        // P(median of 5 draws is the least) is 5.8 %, above the 2.5 % cut off.
        assert_eq!(interval(&[1.0, 5.0, 2.0, 4.0, 3.0], 50), (1.0, 5.0));
    }

    #[test]
    fn interval_of_fifteen_drops_the_outlier() {
        let mut values: Vec<f64> = (0..14).map(|n| 1.0 + f64::from(n) / 100.0).collect();
        values.push(50.0);
        let (low, high) = interval(&values, 50);
        assert!(low >= 1.0 && high < 1.2, "{low} {high}");
    }
}
