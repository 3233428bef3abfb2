//! The public calls against naive ones: random lengths, places, hints and cuts.

mod common;

use std::collections::VecDeque;

use common::pattern;
use ntcopy::{Hint, Hints, Path, Stream, copy, copy_unfenced, copy_vectored, fence, fill};
use proptest::prelude::*;

const ROOM_BYTES: usize = 96 << 10;

fn any_hint() -> impl Strategy<Value = Hint> {
    prop::sample::select(Hint::ALL.to_vec())
}

fn any_hints() -> impl Strategy<Value = Hints> {
    (any_hint(), any_hint()).prop_map(|(source, destination)| Hints::new(source, destination))
}

/// Small ones often, and large enough for eight pages in turn.
fn any_length() -> impl Strategy<Value = usize> {
    prop_oneof![0..700_usize, 0..8192_usize, 0..ROOM_BYTES - 8192]
}

/// Cuts of a whole into pieces, empty ones among them.
fn cut(whole: &[u8], cuts: &[usize]) -> Vec<Vec<u8>> {
    let mut rest = whole;
    let mut pieces = Vec::new();
    for len_bytes in cuts {
        let (piece, later) = rest.split_at((*len_bytes).min(rest.len()));
        pieces.push(piece.to_vec());
        rest = later;
    }
    pieces.push(rest.to_vec());
    pieces
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..Default::default() })]

    #[test]
    fn a_copy_is_a_copy(
        to in 0..4100_usize, from in 0..4100_usize, len in any_length(), hints in any_hints()
    ) {
        let source = pattern(ROOM_BYTES, 1);
        let mut destination = pattern(ROOM_BYTES, 2);
        let mut expected = destination.clone();
        expected[to..to + len].copy_from_slice(&source[from..from + len]);
        let path = copy(&mut destination[to..to + len], &source[from..from + len], hints);
        prop_assert!(destination == expected, "{path}");
        if hints.destination == Hint::Temporal || len < 256 {
            prop_assert!(!path.is_nontemporal(), "{path}");
        }
    }

    #[test]
    fn a_fill_is_a_fill(at in 0..4100_usize, len in any_length(), value: u8, hint in any_hint()) {
        let mut destination = pattern(ROOM_BYTES, 2);
        let mut expected = destination.clone();
        expected[at..at + len].fill(value);
        let path = fill(&mut destination[at..at + len], value, hint);
        prop_assert!(destination == expected, "{path}");
    }

    #[test]
    fn overlapping_sides_are_moved(
        to in 0..4100_usize, from in 0..4100_usize, len in any_length(), hints in any_hints()
    ) {
        let mut memory = pattern(ROOM_BYTES, 1);
        let mut expected = memory.clone();
        expected.copy_within(from..from + len, to);
        let start = memory.as_mut_ptr();
        // SAFETY: both ranges are within the memory, which nothing else refers to; the fence
        // follows.
        let path = unsafe { copy_unfenced(start.add(to), start.add(from), len, hints) };
        fence();
        prop_assert!(memory == expected, "{path}");
        if to.abs_diff(from) < len {
            prop_assert_eq!(path, Path::LIBC);
        }
    }

    #[test]
    fn a_stream_is_its_pieces(
        cuts in prop::collection::vec(any_length(), 0..8),
        hints in any_hints(),
        known in prop::option::of(0..1_u64 << 32),
    ) {
        let source = pattern(ROOM_BYTES, 1);
        let mut destination = vec![0; ROOM_BYTES];
        let mut stream = known.map_or(Stream::growing(hints), |len| Stream::known(len, hints));
        let mut at = 0;
        for piece in cut(&source, &cuts) {
            let to = &mut destination[at..at + piece.len()];
            if at % 2 == 0 {
                stream.copy(to, &piece);
            } else {
                // SAFETY: two slices of the length, one of them borrowed for writing; it fences at
                // the end of the statement.
                unsafe { stream.unfenced().copy(to.as_mut_ptr(), piece.as_ptr(), piece.len()) };
            }
            at += piece.len();
        }
        prop_assert_eq!(stream.finish().bytes, ROOM_BYTES as u64);
        prop_assert!(destination == source);
    }

    #[test]
    fn scattered_is_gathered(
        to_cuts in prop::collection::vec(any_length(), 0..8),
        from_cuts in prop::collection::vec(any_length(), 0..8),
        room in 0..ROOM_BYTES,
        hints in any_hints(),
    ) {
        let source = pattern(ROOM_BYTES, 1);
        let sources = cut(&source, &from_cuts);
        let mut destinations = cut(&vec![0; room], &to_cuts);
        let moved = copy_vectored(&mut destinations, &sources, hints);
        prop_assert_eq!(moved.bytes, room as u64);
        let mut rest: VecDeque<u8> = source.into();
        for destination in destinations {
            let expected: Vec<u8> = rest.drain(..destination.len()).collect();
            prop_assert!(destination == expected);
        }
    }
}

/// Once more in a process of its own for each instruction set that this CPU has, with a threshold
/// that lets whole calls of a few pages stream by themselves, and with other pages in turn.
#[cfg(feature = "std")]
#[test]
fn the_same_under_every_instruction_set() {
    use ntcopy::{ISA_VARIABLE, THRESHOLD_VARIABLE, TURNS_VARIABLE, Turns};
    use std::process::Command;

    let this = std::env::current_exe().expect("this test has a path");
    let mut sets: Vec<&str> = common::copy_backends().iter().map(|backend| backend.isa).collect();
    sets.extend(common::fill_backends().iter().map(|backend| backend.isa));
    sets.sort_unstable();
    sets.dedup();
    assert!(sets.contains(&"libc"), "{sets:?}");
    for (isa, turns) in sets.into_iter().zip(Turns::ALL.iter().cycle().skip(1)) {
        let output = Command::new(&this)
            .args(["--skip", "the_same_under_every_instruction_set"])
            .envs([(ISA_VARIABLE, isa), (THRESHOLD_VARIABLE, "16KiB")])
            .env(TURNS_VARIABLE, turns.name())
            .output()
            .expect("this test can be run");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains(" 0 failed"), "{isa}: {said}");
        assert!(!said.contains(" 0 passed"), "{isa}: {said}");
    }
}
