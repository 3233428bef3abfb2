//! The streamer: copies from a source to a destination that are both too large for any cache.

use std::ops::Range;
use std::time::{Duration, Instant};

use memmap2::{Advice, MmapMut};
use ntcopy::{Hints, Path};
use ntcopy_record::units::Bytes;

use super::pace::Window;
use crate::experiments::retention::copies::CopyMode;
use crate::run::{Failure, Stop, WrongByte, map, ns, pattern};

const SEED: u64 = 1 << 41;
/// What a destination holds before it is verified.
const BLANK: u8 = 0x5a;
const CHECKED_BYTES: u64 = 16 << 20;
/// Bytes before and after a verified copy that must stay as they are.
const GUARD: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Streamed {
    /// Bytes copied, of those that were due while the clock ran.
    pub bytes: u64,
    /// Bytes that were due while the clock ran.
    pub offered_bytes: u64,
    pub copy_ns: u64,
}

pub struct Stream {
    source: MmapMut,
    destination: MmapMut,
    object: usize,
    /// Copies so far. The n-th goes to place n, modulo the places, and takes its bytes from one
    /// place further in each lap: what a place holds from the lap before is never right again.
    copies: u64,
    /// What `copies` was when the last run began.
    began: u64,
}

fn hints(mode: CopyMode) -> Hints {
    match mode {
        CopyMode::Idle | CopyMode::Copy => Hints::TEMPORAL,
        CopyMode::Nt => Hints::NONTEMPORAL_DESTINATION,
        CopyMode::NtBoth => Hints::NONTEMPORAL,
    }
}

/// The way that the mode's bytes go in copies of `object_bytes`, or why the mode is not to be had.
pub fn path(mode: CopyMode, object_bytes: u64) -> Result<Path, String> {
    let policy = &ntcopy::Settings::current().policy;
    let len = usize::try_from(object_bytes).unwrap_or(usize::MAX);
    let path = policy.choose_copy(len, object_bytes, hints(mode));
    let is_right = match mode {
        CopyMode::Idle | CopyMode::Copy => !path.is_nontemporal(),
        CopyMode::Nt => path.is_nontemporal() && !path.source_is_nontemporal(),
        CopyMode::NtBoth => path.is_nontemporal() && path.source_is_nontemporal(),
    };
    if is_right {
        return Ok(path);
    }
    Err(format!(
        "the library would copy {} by {path} here: that is not what mode {mode} is about; see \
         `ntcopy probe`, and NTCOPY_ISA, if it is set",
        Bytes(object_bytes)
    ))
}

impl Stream {
    /// Maps both sides and fills the source with its pattern, on huge pages where the kernel gives
    /// them: a victim that misses the TLB at every line would hide what the caches do.
    pub fn new(dataset_bytes: u64, object_bytes: u64) -> Result<Stream, Failure> {
        let mut source = map(dataset_bytes, Advice::HugePage)?;
        pattern::fill(SEED, 0, &mut source);
        let mut destination = map(dataset_bytes, Advice::HugePage)?;
        destination.fill(BLANK);
        // The plan has seen to it that an object fits several times.
        Ok(Stream { source, destination, object: object_bytes as usize, copies: 0, began: 0 })
    }

    pub fn cut_into(self, object_bytes: u64) -> Stream {
        Stream { object: object_bytes as usize, copies: 0, began: 0, ..self }
    }

    pub fn object_bytes(&self) -> u64 {
        self.object as u64
    }

    /// A run begins: what it copies can be checked after it.
    pub fn begin(&mut self) {
        self.began = self.copies;
    }

    fn places(&self) -> u64 {
        (self.source.len() / self.object) as u64
    }

    /// Where copy number `copy` goes to, and where it takes its bytes: offsets in bytes.
    fn ends(&self, copy: u64) -> (usize, usize) {
        let places = self.places();
        let (to, lap) = (copy % places, copy / places);
        let from = (to + lap % places) % places;
        (to as usize * self.object, from as usize * self.object)
    }

    pub fn copy_next(&mut self, mode: CopyMode) {
        let (to, from) = self.ends(self.copies);
        let destination = &mut self.destination[to..to + self.object];
        ntcopy::copy(destination, &self.source[from..from + self.object], hints(mode));
        self.copies += 1;
    }

    pub fn run(&mut self, mode: CopyMode, window: &Window, stop: &Stop) -> Streamed {
        let object = self.object_bytes();
        let end = window.to + window.grace(object);
        let mut streamed = Streamed { bytes: 0, offered_bytes: 0, copy_ns: 0 };
        for copy in 0.. {
            let due = window.due(copy, object);
            let until = due.unwrap_or(Duration::ZERO);
            while window.now() < until.min(window.to) || Instant::now() < window.start {
                std::hint::spin_loop();
            }
            let start = window.now();
            if until >= window.to || start >= end || stop.signal().is_some() {
                break;
            }
            self.copy_next(mode);
            let done = window.now();
            if window.holds(due.unwrap_or(start)) && done <= end {
                streamed.bytes += object;
                streamed.copy_ns += ns(done - start);
            }
        }
        let offered = window.offered(object).map(|copies| copies * object);
        // The schedule's rounding may put one copy more into the window than was counted.
        streamed.offered_bytes = offered.unwrap_or(streamed.bytes).max(streamed.bytes);
        streamed
    }

    /// Compares what the last run copied, as far as it has not been overwritten since.
    pub fn check(&self) -> Result<(), Failure> {
        let object = self.object_bytes();
        let last = (self.copies - self.began).min(self.places());
        let step = last.div_ceil((CHECKED_BYTES / object).max(1)).max(1);
        for back in (1..=last).step_by(usize::try_from(step).unwrap_or(usize::MAX)) {
            let (to, from) = self.ends(self.copies - back);
            self.compare(to..to + self.object, from)?;
        }
        Ok(())
    }

    /// Compares a part of the destination with what was copied to it from that place on.
    fn compare(&self, to: Range<usize>, from: usize) -> Result<(), Failure> {
        let compared = pattern::compare(SEED, from as u64, &self.destination[to.clone()]);
        Ok(compared.map_err(|wrong| wrong.after(to.start as u64))?)
    }

    /// Copies odd sizes from and to odd places, and compares every byte and its surroundings.
    /// `spoil` turns one byte into a wrong one, to see that it is noticed.
    pub fn verify(&mut self, mode: CopyMode, spoil: bool) -> Result<(), Failure> {
        if mode == CopyMode::Idle {
            return Ok(());
        }
        for size in [1, 63, 4097, self.object - self.object / 3, self.object] {
            let size = size.min(self.object);
            // Off a line's and a page's boundary, by different amounts. Four objects fit.
            let (to, from) = (GUARD + 13, 7);
            self.destination[..to + size + GUARD].fill(BLANK);
            let destination = &mut self.destination[to..to + size];
            ntcopy::copy(destination, &self.source[from..from + size], hints(mode));
            if spoil {
                destination[size / 2] ^= 1;
            }
            self.compare(to..to + size, from)?;
            let around = (0..to).chain(to + size..to + size + GUARD);
            if let Some(at) = around.into_iter().find(|at| self.destination[*at] != BLANK) {
                let (position, got) = (at as u64, self.destination[at]);
                return Err(WrongByte { socket: None, position, expected: BLANK, got }.into());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OBJECT: u64 = 4096;

    #[test]
    fn every_lap_takes_other_bytes_to_the_same_place() {
        let stream = Stream::new(4 * OBJECT, OBJECT).unwrap();
        let sources: Vec<usize> = (0..4).map(|lap| stream.ends(lap * 4 + 1).1).collect();
        assert_eq!(sources.iter().map(|at| at / 4096).collect::<Vec<_>>(), [1, 2, 3, 0]);
        assert!((0..16).all(|copy| stream.ends(copy).0 == (copy as usize % 4) * 4096));
    }

    #[test]
    fn what_was_copied_checks_and_what_was_left_out_does_not() {
        for mode in [CopyMode::Copy, CopyMode::Nt, CopyMode::NtBoth] {
            let mut stream = Stream::new(5 * OBJECT, OBJECT).unwrap();
            stream.verify(mode, false).unwrap();
            assert!(matches!(stream.verify(mode, true), Err(Failure::WrongByte(_))));
            stream.begin();
            for _ in 0..12 {
                stream.copy_next(mode);
                stream.check().unwrap();
            }
            // A copy that is counted and was not made leaves the lap before in its place.
            stream.copies += 1;
            assert!(matches!(stream.check(), Err(Failure::WrongByte(_))));
        }
    }

    #[test]
    fn a_run_moves_what_was_offered_and_checks() {
        let mut stream = Stream::new(64 * OBJECT, OBJECT).unwrap();
        let window = Window {
            start: Instant::now() + Duration::from_millis(1),
            from: Duration::from_millis(2),
            to: Duration::from_millis(6),
            rate_bytes_per_s: Some(4_096_000),
        };
        stream.begin();
        let streamed = stream.run(CopyMode::Nt, &window, &Stop::default());
        assert_eq!(streamed.offered_bytes, 4 * OBJECT);
        assert!(streamed.bytes <= streamed.offered_bytes);
        stream.check().unwrap();
    }

    #[test]
    fn each_mode_has_the_path_that_it_is_about_or_says_why_not() {
        let normal = path(CopyMode::Copy, 256 << 10).unwrap();
        assert!(!normal.is_nontemporal());
        for mode in [CopyMode::Nt, CopyMode::NtBoth] {
            match path(mode, 256 << 10) {
                Ok(path) => assert!(path.is_nontemporal(), "{path}"),
                Err(why) => assert!(why.contains(mode.as_str()), "{why}"),
            }
        }
    }
}
