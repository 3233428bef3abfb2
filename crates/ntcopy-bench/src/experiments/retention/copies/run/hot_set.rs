//! A hot set of any size, walked through in parts.

use std::hint::black_box;

use memmap2::{Advice, MmapMut};

use crate::experiment::LINE_BYTES;
use crate::run::hot_set::cycle;
use crate::run::{Failure, map};

/// Lines of cache in one random cycle; each begins with the number of the next.
pub struct HotSet {
    map: MmapMut,
    at: usize,
}

const LINE: usize = LINE_BYTES as usize;

impl HotSet {
    /// Lays out the lines. The cycle is the same in every run.
    pub fn new(bytes: u64) -> Result<HotSet, Failure> {
        let count = u32::try_from(bytes / LINE_BYTES)
            .map_err(|_| Failure::Limit("a hot set has at most 256 GiB".to_owned()))?;
        let mut map = map(u64::from(count) * LINE_BYTES, Advice::HugePage)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_walk_go_once_through_every_line() {
        let mut hot_set = HotSet::new(1000 * LINE_BYTES).unwrap();
        assert_eq!(hot_set.lines(), 1000);
        let mut seen = vec![false; 1000];
        for _ in 0..1000 {
            assert!(!std::mem::replace(&mut seen[hot_set.at], true), "line {} twice", hot_set.at);
            hot_set.walk(1);
        }
        assert_eq!(hot_set.at, 0);
        hot_set.walk(400);
        let part = hot_set.at;
        hot_set.walk(600);
        assert!(part != 0 && hot_set.at == 0);
    }
}
