//! The victim's hot set: lines of cache in one random cycle.

use std::hint::black_box;

use super::Failure;
use super::clock::{Ticks, ticks_now};
use crate::experiment::LINE_BYTES;

/// One cache line, which holds the number of the line to go to next.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line {
    next: u32,
}

pub struct HotSet {
    lines: Vec<Line>,
    ticks: Ticks,
}

impl HotSet {
    /// Lays out the lines. The cycle is the same in every run.
    pub fn new(bytes: u64) -> Result<HotSet, Failure> {
        let count = u32::try_from(bytes / LINE_BYTES)
            .map_err(|_| Failure::Limit("a hot set has at most 256 GiB".to_owned()))?;
        let lines = cycle(count).into_iter().map(|next| Line { next }).collect();
        Ok(HotSet { lines, ticks: Ticks::calibrate() })
    }

    /// Walks once through every line, each load waiting for the one before it;
    /// gives the nanoseconds that it took.
    pub fn walk(&self) -> u64 {
        let start = ticks_now();
        let mut at = 0;
        for _ in 0..self.lines.len() {
            at = self.lines[at as usize].next;
        }
        black_box(at);
        self.ticks.ns(start, ticks_now())
    }
}

/// One cycle through all the lines in random order (Sattolo's shuffle), so
/// that no prefetcher guesses the next one: for each line the one to go to.
pub(crate) fn cycle(count: u32) -> Vec<u32> {
    let mut next: Vec<u32> = (0..count).collect();
    let mut state: u64 = 0x9e37_79b9_7f4a_7c15;
    for last in (1..next.len()).rev() {
        // The generator of Knuth's MMIX; its upper bits are good enough for an order.
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let other = ((u128::from(state) * last as u128) >> 64) as usize;
        next.swap(last, other);
    }
    next
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_walk_visits_every_line_once() {
        for count in [1, 2, 3, 1000] {
            let lines = cycle(count);
            let mut seen = vec![false; lines.len()];
            let mut at = 0;
            for _ in 0..count {
                assert!(!std::mem::replace(&mut seen[at as usize], true), "line {at} twice");
                at = lines[at as usize];
            }
            assert_eq!(at, 0);
        }
    }

    #[test]
    fn a_line_fills_a_cache_line() {
        assert_eq!(size_of::<Line>() as u64, LINE_BYTES);
        assert!(HotSet::new(4096).unwrap().walk() > 0);
    }
}
