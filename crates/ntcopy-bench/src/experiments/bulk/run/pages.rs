//! A buffer that is cleared or copied page by page, and then read back.
//!
//! Every page is a call of its own with a fence of its own, as in a kernel whose `clear_page()` or
//! `copy_page()` knows nothing of the pages before and after it.

mod page_nt;
mod routines;

use std::hint::black_box;

use super::lanes::{Lane, words, wrong_number};
use crate::experiments::bulk::task::{Action, PAGE_BYTES, PageWay, ReadBack};
use crate::run::Failure;

pub use routines::unavailable;

/// Places in a page that [`ReadBack::Some`] reads from, and how far they are apart: five lines out
/// of the 64, with others between them.
const PLACES: usize = 5;
const STEP_BYTES: usize = 13 * 64;
const PLACE_BYTES: usize = 20;

/// Clears or copies the whole buffer `calls` times, and reads it back each time; gives the last
/// sum of what was read.
pub fn run(
    lane: &mut Lane<'_>,
    action: Action,
    read_back: ReadBack,
    way: PageWay,
    calls: u64,
) -> u64 {
    let (source, size) = (lane.source, lane.size);
    let destination = &mut lane.destination[..size];
    let source = if action == Action::Copy { &source[..size] } else { &[] };
    let mut sum = 0;
    for _ in 0..calls {
        let (to, from) = (black_box(&mut *destination), black_box(source));
        routines::each_page(to, from, way);
        sum = black_box(read(destination, read_back));
    }
    sum
}

/// Compares the sum of what was read with that of what should have been there.
pub fn check_read(
    lane: &Lane<'_>,
    action: Action,
    read_back: ReadBack,
    sum: u64,
) -> Result<(), Failure> {
    let right = match action {
        Action::Clear => 0,
        Action::Copy => read(&lane.source[..lane.size], read_back),
    };
    if sum == right { Ok(()) } else { Err(wrong_number(0, right, sum)) }
}

fn read(buffer: &[u8], read_back: ReadBack) -> u64 {
    match read_back {
        ReadBack::None => 0,
        ReadBack::Some => {
            let pages = buffer.chunks_exact(PAGE_BYTES as usize);
            pages.map(some_of).fold(0, u64::wrapping_add)
        }
        ReadBack::All => words(buffer),
    }
}

fn some_of(page: &[u8]) -> u64 {
    let place = |place: usize| {
        let bytes = &page[place * STEP_BYTES..place * STEP_BYTES + PLACE_BYTES];
        let number = |word: &[u8]| word.try_into().map_or(0, u32::from_ne_bytes);
        bytes.chunks_exact(4).map(number).map(u64::from).fold(0, u64::wrapping_add)
    };
    (0..PLACES).map(place).fold(0, u64::wrapping_add)
}

#[cfg(test)]
mod tests {
    use super::super::lanes::{OneCall, Places, Stand};
    use super::page_nt::Page;
    use super::*;
    use crate::experiments::bulk::task::Heat;

    const SIZE: usize = 3 * PAGE_BYTES as usize;

    /// Runs something on three pages of a lane; the pages' neighbours must stay as they are.
    fn with_lane(work: impl Fn(&mut Lane<'_>)) {
        let mut source = vec![Page::ZERO; 3];
        for (number, byte) in source.iter_mut().flat_map(|page| &mut page.0).enumerate() {
            *byte = (number % 251) as u8 + 1;
        }
        let mut destination = vec![Page([0xee; PAGE_BYTES as usize]); 4];
        // SAFETY: pages are bytes, and any bytes make a page.
        let (source, destination) =
            unsafe { (source.align_to::<u8>().1, destination.align_to_mut::<u8>().1) };
        let places = Places::new(SIZE, SIZE, Heat::Hot);
        let mut stand = Stand { source: places, destination: places };
        let mut lane = Lane {
            source,
            source_start: 0,
            destination,
            stand: &mut stand,
            size: SIZE,
            is_read_back: false,
        };
        work(&mut lane);
        assert!(lane.destination[SIZE..].iter().all(|byte| *byte == 0xee), "the page behind");
    }

    #[test]
    fn every_way_clears_and_copies_whole_pages_and_reads_them_back() {
        for way in PageWay::ALL.iter().copied().filter(|way| unavailable(*way).is_none()) {
            for action in Action::ALL.iter().copied().filter(|at| way.not_for(*at).is_none()) {
                for read_back in ReadBack::ALL.iter().copied() {
                    with_lane(|lane| {
                        let sum = run(lane, action, read_back, way, 1);
                        let value = (action == Action::Clear).then_some(0);
                        assert_eq!(lane.check(OneCall::default(), value), Ok(()), "{way} {action}");
                        assert_eq!(check_read(lane, action, read_back, sum), Ok(()), "{way}");
                    });
                }
            }
        }
    }

    #[test]
    fn a_hundred_bytes_of_a_page_are_read_and_a_wrong_one_shows() {
        assert_eq!(PLACES * PLACE_BYTES, 100);
        const { assert!((PLACES - 1) * STEP_BYTES + PLACE_BYTES <= PAGE_BYTES as usize) };
        with_lane(|lane| {
            let sum = run(lane, Action::Copy, ReadBack::Some, PageWay::RepB, 1);
            let wrong = check_read(lane, Action::Copy, ReadBack::Some, sum + 1);
            assert!(matches!(wrong, Err(Failure::WrongByte(_))), "{wrong:?}");
            lane.destination[PAGE_BYTES as usize + STEP_BYTES + PLACE_BYTES - 1] ^= 1;
            assert_ne!(read(&lane.destination[..SIZE], ReadBack::Some), sum);
        });
    }
}
