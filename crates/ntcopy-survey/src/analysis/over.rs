//! Medians over machines, with intervals by order statistics.
//!
//! Whether a machine lies above or below the true median is the toss of a coin, whatever the
//! distribution. The r-th smallest and the r-th largest of n machines therefore hold the median
//! between them with a chance that the binomial distribution gives exactly (David and Nagaraja,
//! *Order Statistics*, 7.1). Nothing is drawn anew, and nothing is assumed to be normal.

use serde::Serialize;

/// The fewest machines that have an interval: as with pairs, the span of five holds the median in
/// 94 of 100 cases, that of four in 88.
pub const LEAST_MACHINES: usize = 5;

/// Above this number of machines the binomial distribution is as good as normal, and its terms are
/// too small for a floating-point number.
const MOST_EXACT: usize = 1000;

/// One machine's ratio, with the interval of its own pairs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct One {
    pub ratio: f64,
    pub low: f64,
    pub high: f64,
}

/// A ratio over machines.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Over {
    pub median: f64,
    /// The 95 % interval of the median; of [`LEAST_MACHINES`] and fewer what they span; of one the
    /// interval of its own pairs.
    pub low: f64,
    pub high: f64,
    pub machines: usize,
}

impl Over {
    #[must_use]
    pub fn of(machines: &[One]) -> Option<Over> {
        if let [One { ratio, low, high }] = *machines {
            return Some(Over { median: ratio, low, high, machines: 1 });
        }
        let mut ratios: Vec<f64> = machines.iter().map(|one| one.ratio).collect();
        let median = median(&mut ratios)?;
        let at = depth(ratios.len());
        let (low, high) = (ratios[at], ratios[ratios.len() - 1 - at]);
        Some(Over { median, low, high, machines: ratios.len() })
    }
}

/// The median; sorts the values.
pub(super) fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let upper = *values.get(values.len() / 2)?;
    let is_odd = !values.len().is_multiple_of(2);
    Some(if is_odd { upper } else { f64::midpoint(values[values.len() / 2 - 1], upper) })
}

/// How many values the 95 % interval of the median leaves out on either side.
fn depth(count: usize) -> usize {
    if count < LEAST_MACHINES {
        return 0;
    }
    if count > MOST_EXACT {
        let half = count as f64 / 2.0 - 1.96 * (count as f64).sqrt() / 2.0;
        return half as usize - 1;
    }
    let mut term = 0.5_f64.powi(count as i32);
    let (mut below, mut left_out) = (0.0, 0);
    loop {
        below += term;
        if below > 0.025 {
            // The interval from the (left_out)th value on; five have no better than their span.
            return usize::max(left_out, 1) - 1;
        }
        term *= (count - left_out) as f64 / (left_out + 1) as f64;
        left_out += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_depths_are_those_of_the_tables() {
        // Conover, Practical Nonparametric Statistics, table A3: the r-th value from either end.
        let of = |count| depth(count) + 1;
        let got = [5, 6, 8, 9, 10, 15, 20, 25, 50, 100].map(of);
        assert_eq!(got, [1, 1, 1, 2, 2, 4, 6, 8, 18, 40]);
        let (exact, normal) = (of(1000), of(1001));
        assert!(normal.abs_diff(exact) <= 1, "{exact} {normal}");
    }

    #[test]
    fn few_machines_have_their_span_and_one_has_its_own_pairs() {
        let over = |ratios: &[f64]| {
            let ones =
                ratios.iter().map(|&ratio| One { ratio, low: ratio - 0.5, high: ratio + 0.5 });
            let found = Over::of(&ones.collect::<Vec<One>>());
            found.map(|over| (over.median, over.low, over.high))
        };
        assert_eq!(over(&[3.0, 1.0, 5.0, 2.0, 4.0]), Some((3.0, 1.0, 5.0)));
        assert_eq!(over(&[2.0, 1.0]), Some((1.5, 1.0, 2.0)));
        assert_eq!(over(&[2.0]), Some((2.0, 1.5, 2.5)));
        assert_eq!(over(&[]), None);
    }
}
