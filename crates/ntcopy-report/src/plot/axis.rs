//! A logarithmic axis of sizes whose ticks are the sizes that were measured.

use std::ops::Range;

use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};

/// Bytes, mapped by their logarithm.
pub(super) struct Log2Axis {
    low: f64,
    high: f64,
    ticks: Vec<f64>,
}

impl Log2Axis {
    /// An axis over two different sizes above 0, with a little room beside them, and at most
    /// about `most_ticks` of the sorted `sizes` as its ticks.
    pub fn new((low, high): (u64, u64), sizes: Vec<u64>, most_ticks: u32) -> Log2Axis {
        let (low, high) = (low as f64, high as f64);
        // No point may lie on the frame.
        let room = (high / low).powf(0.04);
        let least = (high / low).log2() / f64::from(most_ticks.max(1));
        let mut ticks: Vec<f64> = Vec::new();
        for size in sizes.into_iter().map(|size| size as f64) {
            if ticks.last().is_none_or(|before| (size / before).log2() >= least) {
                ticks.push(size);
            }
        }
        Log2Axis { low: low / room, high: high * room, ticks }
    }

    /// Where it begins and ends.
    pub fn ends(&self) -> (f64, f64) {
        (self.low, self.high)
    }
}

impl Ranged for Log2Axis {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (first, last): (i32, i32)) -> i32 {
        let part = (value / self.low).log2() / (self.high / self.low).log2();
        first + (f64::from(last - first) * part).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _hint: Hint) -> Vec<f64> {
        self.ticks.clone()
    }

    fn range(&self) -> Range<f64> {
        self.low..self.high
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_doubling_is_the_same_distance_everywhere() {
        let axis = Log2Axis::new((1 << 20, 128 << 20), vec![], 8);
        let at = |mib: u32| axis.map(&(f64::from(mib) * f64::from(1 << 20)), (0, 10_000));
        assert!(((at(2) - at(1)) - (at(128) - at(64))).abs() <= 1);
        assert!(at(1) > 0 && at(128) < 10_000);
    }

    #[test]
    fn ticks_are_sizes_that_were_measured_thinned_to_the_room() {
        let sizes: Vec<u64> = (20..28).map(|shift| 1 << shift).collect();
        let count = |most| Log2Axis::new((1 << 20, 1 << 27), sizes.clone(), most).ticks.len();
        assert_eq!((count(10), count(4), count(1)), (8, 4, 2));
    }
}
