//! A victim's hot set: lines of cache in one random cycle, walked as a whole or in parts.

use std::hint::black_box;

use memmap2::{Advice, MmapMut};

use crate::experiment::LINE_BYTES;
use crate::run::{Failure, map};

const LINE: usize = LINE_BYTES as usize;

/// Lines of cache, each of which begins with the number of the next.
pub struct HotSet {
    map: MmapMut,
    at: usize,
}

impl HotSet {
    /// Lays out the lines. The cycle is the same in every run.
    pub fn new(bytes: u64, advice: Advice) -> Result<HotSet, Failure> {
        let count = u32::try_from(bytes / LINE_BYTES)
            .map_err(|_| Failure::Limit("a hot set has at most 256 GiB".to_owned()))?;
        let mut map = map(u64::from(count) * LINE_BYTES, advice)?;
        for (line, next) in map.chunks_exact_mut(LINE).zip(cycle(count)) {
            line[..4].copy_from_slice(&next.to_ne_bytes());
        }
        Ok(HotSet { map, at: 0 })
    }

    pub fn lines(&self) -> u64 {
        self.map.len() as u64 / LINE_BYTES
    }

    /// Goes on from where the last walk ended, each load waiting for the one before it.
    pub fn walk(&mut self, lines: u64) {
        let (set, mut at) = (&self.map[..], self.at);
        for _ in 0..lines {
            // A line that is not there cannot be named by another; the start is as good.
            let next = set.get(at * LINE..).and_then(<[u8]>::first_chunk::<4>);
            at = next.map_or(0, |next| u32::from_ne_bytes(*next) as usize);
        }
        self.at = black_box(at);
    }
}

/// One cycle through all the lines in random order (Sattolo's shuffle), so
/// that no prefetcher guesses the next one: for each line the one to go to.
fn cycle(count: u32) -> Vec<u32> {
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
    fn parts_of_a_walk_go_once_through_every_line() {
        for count in [2, 3, 1000] {
            let mut hot_set = HotSet::new(count * LINE_BYTES, Advice::Normal).unwrap();
            assert_eq!(hot_set.lines(), count);
            let mut seen = vec![false; count as usize];
            for _ in 0..count {
                assert!(!std::mem::replace(&mut seen[hot_set.at], true), "line {}", hot_set.at);
                hot_set.walk(1);
            }
            assert_eq!(hot_set.at, 0);
            hot_set.walk(1);
            assert_ne!(hot_set.at, 0);
            hot_set.walk(count - 1);
            assert_eq!(hot_set.at, 0);
        }
    }
}
