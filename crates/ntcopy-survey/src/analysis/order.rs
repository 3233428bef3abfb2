//! Medians over machines, with intervals by order statistics.
//!
//! Whether a machine lies above or below the true median is the toss of a coin, whatever the
//! distribution. The r-th smallest and the r-th largest of n machines therefore hold the median
//! between them with a chance that the binomial distribution gives exactly (David and Nagaraja,
//! *Order Statistics*, 7.1). Nothing is drawn anew, nothing is assumed to be normal, and a machine
//! whose figure is "never" has its place in the order like any other.

/// The fewest machines that have an interval: as with pairs, the span of five holds the median in
/// 94 of 100 cases, that of four in 88.
pub const LEAST_MACHINES: usize = 5;

/// Above this number of machines the binomial distribution is as good as normal, and its terms are
/// too small for a floating-point number.
const MOST_EXACT: usize = 1000;

/// A figure over machines.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Over {
    /// The machine in the middle.
    pub median: f64,
    /// The 95 % interval of the median: low, high. None with fewer than [`LEAST_MACHINES`].
    pub ci: Option<(f64, f64)>,
    /// The least and the most that a machine has.
    pub span: (f64, f64),
    /// How many machines.
    pub machines: usize,
}

impl Over {
    /// Takes one value a machine, infinities allowed; gives none for none.
    #[must_use]
    pub fn of(mut values: Vec<f64>) -> Option<Over> {
        values.sort_unstable_by(f64::total_cmp);
        let (first, last) = (*values.first()?, *values.last()?);
        let ci = depth(values.len()).map(|at| (values[at], values[values.len() - 1 - at]));
        Some(Over { median: middle(&values), ci, span: (first, last), machines: values.len() })
    }

    /// The same figure in another unit; `to` must rise.
    #[must_use]
    pub fn map(self, to: impl Fn(f64) -> f64) -> Over {
        Over {
            median: to(self.median),
            ci: self.ci.map(|(low, high)| (to(low), to(high))),
            span: (to(self.span.0), to(self.span.1)),
            machines: self.machines,
        }
    }

    /// The interval, or the span where there are too few machines for one.
    #[must_use]
    pub fn bracket(&self) -> (f64, f64) {
        self.ci.unwrap_or(self.span)
    }
}

/// The middle of sorted values; between two of them halfway, unless that is nowhere.
#[must_use]
pub fn middle(sorted: &[f64]) -> f64 {
    let upper = sorted[sorted.len() / 2];
    if !sorted.len().is_multiple_of(2) {
        return upper;
    }
    let lower = sorted[sorted.len() / 2 - 1];
    if lower.is_finite() && upper.is_finite() { f64::midpoint(lower, upper) } else { upper }
}

/// The median of values in any order, all finite.
#[must_use]
pub fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    (!values.is_empty()).then(|| middle(&values))
}

/// How many values the 95 % interval of the median leaves out on either side.
fn depth(count: usize) -> Option<usize> {
    if count < LEAST_MACHINES {
        return None;
    }
    if count > MOST_EXACT {
        let half = count as f64 / 2.0 - 1.96 * (count as f64).sqrt() / 2.0;
        return Some(half as usize - 1);
    }
    let mut term = 0.5_f64.powi(i32::try_from(count).ok()?);
    let (mut below, mut left_out) = (0.0, 0);
    loop {
        below += term;
        if below > 0.025 {
            // The interval from the (left_out)th value on; five have no better than their span.
            return Some(usize::max(left_out, 1) - 1);
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
        let of = |count| depth(count).map(|at| at + 1);
        assert_eq!(of(4), None);
        let got = [5, 6, 8, 9, 10, 15, 20, 25, 50, 100].map(|count| of(count).unwrap());
        assert_eq!(got, [1, 1, 1, 2, 2, 4, 6, 8, 18, 40]);
        let (exact, normal) = (of(1000).unwrap(), of(1001).unwrap());
        assert!(normal.abs_diff(exact) <= 1, "{exact} {normal}");
    }

    #[test]
    fn five_have_their_span_and_fewer_have_none() {
        let five = Over::of(vec![3.0, 1.0, 5.0, 2.0, 4.0]).unwrap();
        assert_eq!((five.median, five.ci), (3.0, Some((1.0, 5.0))));
        let two = Over::of(vec![2.0, 1.0]).unwrap();
        assert_eq!((two.median, two.ci, two.bracket()), (1.5, None, (1.0, 2.0)));
        assert_eq!(Over::of(vec![]), None);
    }

    #[test]
    fn never_has_its_place_in_the_order() {
        let values = vec![1.0, 2.0, 3.0, f64::INFINITY, f64::INFINITY, f64::INFINITY];
        let over = Over::of(values).unwrap();
        assert_eq!(over.median, f64::INFINITY, "half of the machines never do");
        assert_eq!(over.ci, Some((1.0, f64::INFINITY)));
    }
}
