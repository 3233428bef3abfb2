//! The part of the memory that one thread works on, cut into places for one call each.

use std::hint::black_box;

use super::SEED;
use crate::experiment::LINE_BYTES;
use crate::experiments::bulk::task::Heat;
use crate::run::{Failure, WrongByte, pattern};

/// Between two lines that are looked at after a sample.
const STEP_BYTES: usize = 64 << 10;
/// Bytes that are compared whole after a sample; of larger calls the lines at every step.
const COMPARED_BYTES: usize = 4 << 20;
/// Written to a destination before every byte of it is looked at.
const STALE: u8 = 0x5a;

/// Places for one call each, which come round and round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Places {
    stride: usize,
    count: usize,
    at: usize,
}

impl Places {
    /// One place if hot, else as many as fit. A side that has no memory has one place of nothing.
    pub fn new(region_bytes: usize, size_bytes: usize, heat: Heat) -> Places {
        let stride = size_bytes.next_multiple_of(LINE_BYTES as usize);
        let count = match heat {
            Heat::Hot => 1,
            // The last place may lack the bytes up to its stride.
            Heat::Cold => (region_bytes.saturating_sub(size_bytes) / stride + 1).max(1),
        };
        Places { stride, count, at: 0 }
    }

    fn next(&mut self) -> usize {
        let here = self.at * self.stride;
        self.at = if self.at + 1 == self.count { 0 } else { self.at + 1 };
        here
    }

    /// Where the last of `calls` more calls will be.
    fn last_of(&self, calls: u64) -> usize {
        let steps = (calls.max(1) - 1) % self.count as u64;
        (self.at + steps as usize) % self.count * self.stride
    }

    #[cfg(test)]
    pub fn count(&self) -> usize {
        self.count
    }
}

/// Where a lane stands, from one order to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stand {
    pub source: Places,
    pub destination: Places,
}

/// Where one call reads, and where it writes.
#[derive(Debug, Clone, Copy, Default)]
pub struct OneCall {
    pub from: usize,
    pub to: usize,
}

pub struct Lane<'a> {
    /// What is read, its pattern beginning at this position.
    pub source: &'a [u8],
    pub source_start: u64,
    pub destination: &'a mut [u8],
    pub stand: &'a mut Stand,
    pub size: usize,
    /// Whether each destination is read, once it is copied.
    pub is_read_back: bool,
}

impl Lane<'_> {
    /// Copies `calls` times, from the next place to the next place.
    pub fn copies(&mut self, calls: u64, mut copy: impl FnMut(&mut [u8], &[u8])) {
        for _ in 0..calls {
            let (from, to) = (self.stand.source.next(), self.stand.destination.next());
            let source = &self.source[from..from + self.size];
            let destination = &mut self.destination[to..to + self.size];
            copy(black_box(&mut *destination), black_box(source));
            if self.is_read_back {
                black_box(words(black_box(destination)));
            }
        }
        black_box(&self.destination);
    }

    pub fn fills(&mut self, calls: u64, mut fill: impl FnMut(&mut [u8])) {
        for _ in 0..calls {
            let to = self.stand.destination.next();
            fill(black_box(&mut self.destination[to..to + self.size]));
        }
        black_box(&self.destination);
    }

    /// Makes some lines wrong in the place that the last of the coming calls will write, so few
    /// that the caches hardly notice; [`Lane::check`] will want them right.
    pub fn spoil_last(&mut self, calls: u64, fill: Option<u8>) {
        let OneCall { from, to } = self.last(calls);
        let source = &self.source;
        let destination = &mut self.destination[to..to + self.size];
        for (start, end) in lines(self.size) {
            match fill {
                Some(value) => destination[start..end].fill(!value),
                None => {
                    let right = &source[from + start..from + end];
                    destination[start..end]
                        .iter_mut()
                        .zip(right)
                        .for_each(|(to, from)| *to = !from);
                }
            }
        }
    }

    /// The places that the last of the coming calls reads and writes.
    pub fn last(&self, calls: u64) -> OneCall {
        let Stand { source, destination } = &self.stand;
        OneCall { from: source.last_of(calls), to: destination.last_of(calls) }
    }

    /// Compares a place with what should be there: the lines at every step, and of small calls all.
    pub fn check(&self, OneCall { from, to }: OneCall, fill: Option<u8>) -> Result<(), Failure> {
        let whole = [(0, self.size)];
        let some: Vec<(usize, usize)> = lines(self.size).collect();
        let parts = if self.size <= COMPARED_BYTES { &whole[..] } else { &some };
        for (start, end) in parts {
            let got = &self.destination[to + start..to + end];
            let wrong = match fill {
                Some(value) => first_not(got, value),
                None => first_different(got, &self.source[from + start..from + end]),
            };
            if let Some((at, expected)) = wrong {
                return Err(wrong_byte(start + at, expected, got[at]));
            }
        }
        Ok(())
    }

    /// Writes something else to the place that the next call writes, and gives it and its source.
    pub fn stale(&mut self) -> OneCall {
        let last = self.last(1);
        self.destination[last.to..last.to + self.size].fill(STALE);
        last
    }

    /// Compares every byte of a place with the pattern itself.
    pub fn verify(&self, OneCall { from, to }: OneCall, fill: Option<u8>) -> Result<(), Failure> {
        let got = &self.destination[to..to + self.size];
        match fill.map(|value| first_not(got, value)) {
            None => Ok(pattern::compare(SEED, self.source_start + from as u64, got)?),
            Some(None) => Ok(()),
            Some(Some((at, expected))) => Err(wrong_byte(at, expected, got[at])),
        }
    }
}

/// A line at every step, and the last bytes.
fn lines(size: usize) -> impl Iterator<Item = (usize, usize)> {
    let line = LINE_BYTES as usize;
    let steps = (0..size).step_by(STEP_BYTES).map(move |at| (at, (at + line).min(size)));
    steps.chain([(size - line.min(size), size)])
}

fn first_not(bytes: &[u8], value: u8) -> Option<(usize, u8)> {
    bytes.iter().position(|byte| *byte != value).map(|at| (at, value))
}

fn first_different(bytes: &[u8], right: &[u8]) -> Option<(usize, u8)> {
    if bytes == right {
        return None;
    }
    let at = bytes.iter().zip(right).position(|(got, right)| got != right)?;
    Some((at, right[at]))
}

/// A wrong number at a place, as its first wrong byte.
pub fn wrong_number(place: usize, expected: u64, got: u64) -> Failure {
    let (expected, got) = (expected.to_ne_bytes(), got.to_ne_bytes());
    let at = expected.iter().zip(got).position(|(right, got)| *right != got).unwrap_or(0);
    wrong_byte(place * size_of::<u64>() + at, expected[at], got[at])
}

fn wrong_byte(at: usize, expected: u8, got: u8) -> Failure {
    WrongByte { socket: None, position: at as u64, expected, got }.into()
}

/// The sum of all whole numbers of 8 bytes.
pub fn words(bytes: &[u8]) -> u64 {
    let number = |word: &[u8]| word.try_into().map_or(0, u64::from_ne_bytes);
    bytes.chunks_exact(8).map(number).fold(0, u64::wrapping_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lane(stand: &mut Stand, size: usize, run: impl FnOnce(&mut Lane<'_>)) {
        let mut source = vec![0; 1000];
        pattern::fill(SEED, 0, &mut source);
        let mut destination = vec![0; 1000];
        let mut lane = Lane {
            source: &source,
            source_start: 0,
            destination: &mut destination,
            stand,
            size,
            is_read_back: true,
        };
        run(&mut lane);
    }

    fn stand(size: usize, source: Heat, destination: Heat) -> Stand {
        Stand {
            source: Places::new(1000, size, source),
            destination: Places::new(1000, size, destination),
        }
    }

    #[test]
    fn a_cold_side_walks_and_a_hot_one_stays() {
        let mut stand = stand(100, Heat::Hot, Heat::Cold);
        assert_eq!((stand.source.count(), stand.destination.count()), (1, 8));
        assert_eq!(stand.destination.last_of(10), 128);
        let places: Vec<usize> = (0..10).map(|_| stand.destination.next()).collect();
        assert_eq!(places, [0, 128, 256, 384, 512, 640, 768, 896, 0, 128]);
        assert_eq!(stand.source.last_of(3), 0);
    }

    #[test]
    fn a_copy_that_was_left_out_is_noticed() {
        let mut stand = stand(300, Heat::Cold, Heat::Cold);
        lane(&mut stand, 300, |lane| {
            let last = lane.last(2);
            lane.spoil_last(2, None);
            lane.copies(2, |to, from| to.copy_from_slice(from));
            assert_eq!(lane.check(last, None), Ok(()));
            let last = lane.last(2);
            lane.spoil_last(2, None);
            lane.copies(1, |to, from| to.copy_from_slice(from));
            lane.copies(1, |_, _| ());
            assert!(matches!(lane.check(last, None), Err(Failure::WrongByte(_))));
        });
    }

    #[test]
    fn every_byte_is_looked_at_before_timing() {
        let mut stand = stand(999, Heat::Hot, Heat::Hot);
        lane(&mut stand, 999, |lane| {
            let place = lane.stale();
            lane.copies(1, |to, from| to.copy_from_slice(from));
            assert_eq!(lane.verify(place, None), Ok(()));
            lane.destination[998] ^= 1;
            let Err(Failure::WrongByte(wrong)) = lane.verify(place, None) else {
                panic!("the last byte is wrong");
            };
            assert_eq!(wrong.position, 998);
        });
    }
}
