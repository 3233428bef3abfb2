//! A logarithmic axis of sizes whose ticks are the sizes that were measured.

use std::ops::Range;

use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};
use plotters::coord::types::RangedCoordf64;

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

/// Values, as they are or by their logarithm.
pub(super) enum ValueAxis {
    /// Values stand as they are.
    Linear(RangedCoordf64),
    /// By their logarithm, from and to.
    Log(f64, f64),
}

impl ValueAxis {
    /// An axis over a range; where it is logarithmic, of values above 0.
    pub fn new((low, high): (f64, f64), is_log: bool) -> ValueAxis {
        if is_log { ValueAxis::Log(low, high) } else { ValueAxis::Linear((low..high).into()) }
    }
}

impl Ranged for ValueAxis {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (first, last): (i32, i32)) -> i32 {
        match self {
            ValueAxis::Linear(axis) => axis.map(value, (first, last)),
            ValueAxis::Log(low, high) => {
                let part = (value / low).ln() / (high / low).ln();
                first + (f64::from(last - first) * part).round() as i32
            }
        }
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        match self {
            ValueAxis::Linear(axis) => axis.key_points(hint),
            // Lines are wanted at the labels alone.
            ValueAxis::Log(..) if hint.weight().allow_light_points() => Vec::new(),
            ValueAxis::Log(low, high) => log_ticks(*low, *high),
        }
    }

    fn range(&self) -> Range<f64> {
        match self {
            ValueAxis::Linear(axis) => axis.range(),
            ValueAxis::Log(low, high) => *low..*high,
        }
    }
}

/// Round values of each power of ten: the fewest kinds of them that give three.
fn log_ticks(low: f64, high: f64) -> Vec<f64> {
    let powers = low.log10().floor() as i32..=high.log10().ceil() as i32;
    let ticks = |tenths: &[u32]| -> Vec<f64> {
        let of =
            |power: i32| tenths.iter().map(move |step| f64::from(*step) * 10f64.powi(power - 1));
        powers.clone().flat_map(of).filter(|tick| (low..=high).contains(tick)).collect()
    };
    let halves: Vec<u32> = (10..100).step_by(5).collect();
    let tenths: Vec<u32> = (10..100).collect();
    let kinds: [&[u32]; 4] = [&[10], &[10, 20, 50], &halves, &tenths];
    let enough = kinds.into_iter().map(ticks).find(|ticks| ticks.len() >= 3);
    enough.unwrap_or_else(|| vec![low, high])
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

    #[test]
    fn a_logarithmic_axis_of_values_has_round_ticks_inside_it() {
        assert_eq!(log_ticks(0.9, 12.0), [1.0, 2.0, 5.0, 10.0]);
        assert_eq!(log_ticks(3.0, 9000.0), [10.0, 100.0, 1000.0]);
        assert_eq!(log_ticks(2.2, 4.2), [2.5, 3.0, 3.5, 4.0]);
        assert_eq!(log_ticks(1.05, 1.35).len(), 3);
        let axis = ValueAxis::new((1.0, 100.0), true);
        assert_eq!([1.0, 10.0, 100.0].map(|value| axis.map(&value, (0, 200))), [0, 100, 200]);
    }
}
