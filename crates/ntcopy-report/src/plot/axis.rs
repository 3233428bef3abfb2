//! Where places and values lie, and which of them are told.

use super::LETTER;
use super::chart::Chart;
use crate::svg::Place;

/// Room left of the axes for the values, and right of them, above for the unit, and below.
const LEFT: f64 = 58.0;
const RIGHT: f64 = 18.0;
const ABOVE: f64 = 26.0;
const BELOW: f64 = 44.0;
/// The letters of a place's label, at most.
const LABEL_LETTERS: f64 = 7.5;

/// The rectangle between the axes. Places lie by their logarithm.
pub(super) struct Plane {
    pub left: f64,
    pub right: f64,
    pub top: f64,
    pub bottom: f64,
    places: (f64, f64),
    values: (f64, f64),
    is_log: bool,
}

impl Plane {
    pub fn new(chart: &Chart, (width, height): Place) -> Plane {
        let (low, high) = chart.x_bounds().unwrap_or((1, 2));
        let (low, high) = (low as f64, high as f64);
        // No point may lie on the frame.
        let room = (high / low).powf(0.04);
        Plane {
            left: LEFT,
            right: width - RIGHT,
            top: ABOVE,
            bottom: height - BELOW,
            places: (low / room, high * room),
            values: chart.y_range,
            is_log: chart.is_log,
        }
    }

    /// The least and the most place.
    pub fn ends(&self) -> (f64, f64) {
        self.places
    }

    pub fn x(&self, at: f64) -> f64 {
        let (low, high) = self.places;
        self.left + (at / low).ln() / (high / low).ln() * (self.right - self.left)
    }

    pub fn y(&self, value: f64) -> f64 {
        let (low, high) = self.values;
        let part = match self.is_log {
            true => (value / low).ln() / (high / low).ln(),
            false => (value - low) / (high - low),
        };
        self.bottom - part * (self.bottom - self.top)
    }

    /// Those of the sorted places that have room for their labels.
    pub fn ticks(&self, places: &[u64]) -> Vec<f64> {
        let mut ticks: Vec<f64> = Vec::new();
        for at in places.iter().map(|at| *at as f64) {
            let has_room = |before: &f64| self.x(at) - self.x(*before) >= LETTER * LABEL_LETTERS;
            if ticks.last().is_none_or(has_room) {
                ticks.push(at);
            }
        }
        ticks
    }

    /// Round values.
    pub fn values(&self) -> Vec<f64> {
        let (low, high) = self.values;
        if self.is_log {
            return log_ticks(low, high);
        }
        let step = step(high - low);
        let first = (low / step).ceil() as i64;
        (first..).map(|number| number as f64 * step).take_while(|value| *value <= high).collect()
    }
}

/// A round number that parts a range into six at most.
fn step(range: f64) -> f64 {
    let power = 10f64.powf((range / 6.0).log10().floor());
    let steps = [1.0, 2.0, 2.5, 5.0, 10.0].map(|round| round * power);
    steps.into_iter().find(|step| range / step <= 6.0).unwrap_or(10.0 * power)
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
    use crate::plot::{Axis, Line, SIZE};

    fn plane(places: &[u64], y_range: (f64, f64), is_log: bool) -> Plane {
        let point = |at: &u64| crate::plot::Point { at: *at, value: 1.0, ci: None };
        let points = places.iter().map(point).collect();
        let line = Line { name: "a".into(), slot: 0, points };
        let chart = Chart {
            axis: Axis::Count("n".into()),
            is_log,
            y_label: "".into(),
            y_range,
            reference: None,
            lines: vec![line],
            marks: vec![],
        };
        Plane::new(&chart, SIZE)
    }

    #[test]
    fn a_doubling_is_the_same_distance_everywhere() {
        let plane = plane(&[1 << 20, 128 << 20], (0.0, 1.0), false);
        let at = |mib: u32| plane.x(f64::from(mib) * f64::from(1 << 20));
        assert!(((at(2) - at(1)) - (at(128) - at(64))).abs() < 0.01);
        assert!(at(1) > plane.left && at(128) < plane.right);
    }

    #[test]
    fn ticks_are_places_that_were_measured_thinned_to_the_room() {
        let places: Vec<u64> = (0..20).map(|shift| 1 << shift).collect();
        let count =
            |last: usize| plane(&places[..last], (0.0, 1.0), false).ticks(&places[..last]).len();
        assert_eq!((count(4), count(7), count(20)), (4, 7, 7));
    }

    #[test]
    fn values_that_are_told_are_round() {
        assert_eq!([0.3, 1.0, 9.6, 14.0, 40.0].map(step), [0.05, 0.2, 2.0, 2.5, 10.0]);
        assert_eq!(plane(&[1, 2], (0.88, 1.3), false).values().len(), 5);
        assert_eq!(log_ticks(0.9, 12.0), [1.0, 2.0, 5.0, 10.0]);
        assert_eq!(log_ticks(3.0, 9000.0), [10.0, 100.0, 1000.0]);
        assert_eq!(log_ticks(2.2, 4.2), [2.5, 3.0, 3.5, 4.0]);
        assert_eq!(log_ticks(1.05, 1.35).len(), 3);
        let log = plane(&[1, 2], (1.0, 100.0), true);
        let middle = (log.top + log.bottom) / 2.0;
        assert!((log.y(10.0) - middle).abs() < 1e-9 && log.y(1.0) == log.bottom);
    }
}
