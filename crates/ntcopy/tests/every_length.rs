//! Every way that this CPU has, at every length and alignment: the bytes, and the guards.
//!
//! The default run takes every length at chosen alignments, and every pair of alignments at chosen
//! lengths. The whole product, some minutes of work in release mode:
//!
//! ```text
//! cargo test --release -p ntcopy --test every_length -- --ignored
//! ```

mod common;

use common::{Guarded, copy_backends, fill_backends, pattern};
use ntcopy::arch::{CopyBackend, FillBackend};
use ntcopy::{Path, Prefetch};

const MAX_BYTES: usize = 16 << 10;
/// Two groups of eight pages, and more than half a page.
const MAX_TURNS_BYTES: usize = 2 * 8 * 4096 + 4096;

/// 0..=1024 one by one, and steps to 16 KiB that are no multiple of anything.
fn all_lengths() -> impl Iterator<Item = usize> {
    (0..=1024).chain((1025..MAX_BYTES).step_by(257)).chain([MAX_BYTES - 1, MAX_BYTES])
}

const CHOSEN_LENGTHS: [usize; 14] =
    [0, 1, 63, 64, 65, 127, 191, 256, 257, 320, 511, 1000, 4097, MAX_BYTES];
const CHOSEN_OFFSETS: [(usize, usize); 6] = [(0, 0), (1, 0), (0, 1), (63, 32), (8, 56), (33, 33)];

struct Copies {
    to: Guarded,
    from: Guarded,
}

impl Copies {
    fn new(room_bytes: usize) -> Copies {
        let (to, mut from) = (Guarded::new(room_bytes), Guarded::new(room_bytes + 64));
        let bytes = pattern(room_bytes + 64, 3);
        from.at(0, room_bytes + 64).copy_from_slice(&bytes);
        Copies { to, from }
    }

    fn check(
        &mut self,
        backend: &CopyBackend,
        path: Path,
        offsets: (usize, usize),
        len_bytes: usize,
    ) {
        let (to_at, from_at) = offsets;
        let what = || format!("{path}, {len_bytes} bytes, {from_at} to {to_at} past a line");
        let from = &self.from.at(0, len_bytes + 64)[from_at..][..len_bytes];
        let to = self.to.at(to_at, len_bytes);
        assert!(backend.copy(to, from, path));
        assert!(to == from, "{}: a wrong byte", what());
        self.to.check(to_at, len_bytes, what);
        self.to.reset(to_at, len_bytes);
    }
}

fn fill_and_check(to: &mut Guarded, backend: &FillBackend, value: u8, at: usize, len: usize) {
    let what = || format!("{} with {value}, {len} bytes, {at} past a line", backend.name());
    assert!(backend.fill(to.at(at, len), value));
    assert!(to.at(at, len).iter().all(|&byte| byte == value), "{}: a wrong byte", what());
    to.check(at, len, what);
    to.reset(at, len);
}

fn pairs_of_offsets() -> impl Iterator<Item = (usize, usize)> {
    (0..64).flat_map(|to| (0..64).map(move |from| (to, from)))
}

#[test]
fn copies_of_every_length_at_chosen_offsets() {
    let mut copies = Copies::new(MAX_BYTES);
    for backend in copy_backends() {
        // Below a group of pages, turns change nothing.
        for path in backend.paths().filter(|path| path.turns.is_none()) {
            for len_bytes in all_lengths() {
                for offsets in CHOSEN_OFFSETS {
                    copies.check(backend, path, offsets, len_bytes);
                }
            }
        }
    }
}

#[test]
fn copies_of_chosen_lengths_at_every_pair_of_offsets() {
    let mut copies = Copies::new(MAX_BYTES);
    for backend in copy_backends() {
        // The ways of reading ahead differ in no address; flushing goes in blocks.
        let linear = backend.paths().filter(|path| path.turns.is_none());
        for path in linear.filter(|path| matches!(path.prefetch, Prefetch::None | Prefetch::Flush))
        {
            for len_bytes in CHOSEN_LENGTHS {
                for offsets in pairs_of_offsets() {
                    copies.check(backend, path, offsets, len_bytes);
                }
            }
        }
    }
}

/// Lengths around one group of pages and two, where pages of both sides begin anywhere.
#[test]
fn copies_in_turn_around_whole_groups_of_pages() {
    let mut copies = Copies::new(MAX_TURNS_BYTES);
    for backend in copy_backends() {
        for path in backend.paths().filter(|path| !path.turns.is_none()) {
            let group_bytes = path.turns.pages() * 4096;
            for whole_bytes in [group_bytes, 2 * group_bytes, 2 * group_bytes + 2048] {
                for len_bytes in [whole_bytes - 1, whole_bytes, whole_bytes + 65] {
                    for offsets in CHOSEN_OFFSETS {
                        copies.check(backend, path, offsets, len_bytes);
                    }
                }
            }
        }
    }
}

#[test]
fn fills_of_every_length_at_every_offset() {
    let mut to = Guarded::new(MAX_BYTES);
    for backend in fill_backends() {
        for len_bytes in all_lengths() {
            let step = if len_bytes <= 256 || len_bytes % 64 == 1 { 1 } else { 13 };
            for offset in (0..64).step_by(step) {
                fill_and_check(&mut to, backend, 0, offset, len_bytes);
            }
        }
        for value in [1, 0x7f, 0xa4, 0xff].into_iter().filter(|v| backend.can_fill_with(*v)) {
            for len_bytes in CHOSEN_LENGTHS {
                fill_and_check(&mut to, backend, value, len_bytes % 64, len_bytes);
            }
        }
    }
}

#[test]
#[ignore = "minutes: the whole product, for a release build"]
fn copies_of_every_length_at_every_pair_of_offsets() {
    let mut copies = Copies::new(MAX_BYTES);
    for backend in copy_backends() {
        for path in backend.paths() {
            for len_bytes in all_lengths() {
                for offsets in pairs_of_offsets() {
                    copies.check(backend, path, offsets, len_bytes);
                }
            }
        }
    }
}

#[test]
#[ignore = "minutes: the whole product, for a release build"]
fn fills_of_every_length_at_every_offset_with_many_values() {
    let mut to = Guarded::new(MAX_BYTES);
    for backend in fill_backends() {
        for value in [0, 1, 0x7f, 0xa4, 0xff].into_iter().filter(|v| backend.can_fill_with(*v)) {
            for len_bytes in all_lengths() {
                for offset in 0..64 {
                    fill_and_check(&mut to, backend, value, offset, len_bytes);
                }
            }
        }
    }
}
