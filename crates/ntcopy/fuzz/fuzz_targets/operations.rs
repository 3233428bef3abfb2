//! Random programs of copies and fills on one piece of memory, by every path there is, against
//! the same program done naively.

#![no_main]

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use ntcopy::arch::{COPY_BACKENDS, FILL_BACKENDS};
use ntcopy::{Hint, Hints, Stream, copy_unfenced, copy_vectored, fence, fill};

/// Enough for eight pages in turn at any alignment, and little enough to be compared often.
const ROOM_BYTES: usize = 40 << 10;

#[derive(Arbitrary, Debug, Clone, Copy)]
enum AnyHint {
    Auto,
    Temporal,
    Nontemporal,
}

#[derive(Arbitrary, Debug)]
enum Operation {
    /// By hints, the two sides possibly over one another.
    Copy { to: u16, from: u16, len: u16, source: AnyHint, destination: AnyHint },
    /// By one path of one backend, the sides apart.
    Backend { to: u16, from: u16, len: u16, backend: u8, path: u8 },
    /// By a hint.
    Fill { at: u16, len: u16, value: u8, hint: AnyHint },
    /// By one backend.
    FillBackend { at: u16, len: u16, value: u8, backend: u8 },
    /// Out of the pristine source, in pieces.
    Pieces { at: u16, total: u64, pieces: Vec<u16>, hint: AnyHint },
    /// Out of the pristine source, scattered.
    Vectored { to: Vec<u16>, from: Vec<u16>, hint: AnyHint },
}

impl From<AnyHint> for Hint {
    fn from(hint: AnyHint) -> Hint {
        match hint {
            AnyHint::Auto => Hint::Auto,
            AnyHint::Temporal => Hint::Temporal,
            AnyHint::Nontemporal => Hint::Nontemporal,
        }
    }
}

/// A place and a length that fit the room.
fn fit(at: u16, len: u16) -> (usize, usize) {
    let at = usize::from(at) % ROOM_BYTES;
    (at, usize::from(len).min(ROOM_BYTES - at))
}

fn run(operation: &Operation, source: &[u8], memory: &mut [u8], expected: &mut [u8]) {
    match operation {
        Operation::Copy { to, from, len, source, destination } => {
            let ((to, room), (from, len)) = (fit(*to, *len), fit(*from, *len));
            let (len, hints) = (len.min(room), Hints::new((*source).into(), (*destination).into()));
            expected.copy_within(from..from + len, to);
            let start = memory.as_mut_ptr();
            // SAFETY: both ranges are within the memory; the fence follows.
            unsafe { copy_unfenced(start.add(to), start.add(from), len, hints) };
            fence();
        }
        Operation::Backend { to, from, len, backend, path } => {
            let ((to, room), (from, len)) = (fit(*to, *len), fit(*from, *len));
            let len = len.min(room);
            let backend = &COPY_BACKENDS[usize::from(*backend) % COPY_BACKENDS.len()];
            let paths: Vec<_> = backend.paths().collect();
            let path = paths[usize::from(*path) % paths.len()];
            if backend.copy(&mut memory[to..to + len], &source[from..from + len], path) {
                expected[to..to + len].copy_from_slice(&source[from..from + len]);
            }
        }
        Operation::Fill { at, len, value, hint } => {
            let (at, len) = fit(*at, *len);
            fill(&mut memory[at..at + len], *value, (*hint).into());
            expected[at..at + len].fill(*value);
        }
        Operation::FillBackend { at, len, value, backend } => {
            let (at, len) = fit(*at, *len);
            let backend = &FILL_BACKENDS[usize::from(*backend) % FILL_BACKENDS.len()];
            if backend.fill(&mut memory[at..at + len], *value) {
                expected[at..at + len].fill(*value);
            }
        }
        Operation::Pieces { at, total, pieces, hint } => {
            let mut stream = Stream::known(*total, Hints::new(Hint::Auto, (*hint).into()));
            let mut at = usize::from(*at) % ROOM_BYTES;
            for piece in pieces.iter().take(16) {
                let len = usize::from(*piece).min(ROOM_BYTES - at);
                stream.copy(&mut memory[at..at + len], &source[at..at + len]);
                expected[at..at + len].copy_from_slice(&source[at..at + len]);
                at += len;
            }
            stream.finish();
        }
        Operation::Vectored { to, from, hint } => {
            let mut rest = &mut memory[..];
            let mut destinations: Vec<&mut [u8]> = Vec::new();
            for len in to {
                let (slice, later) = rest.split_at_mut(usize::from(*len).min(rest.len()));
                destinations.push(slice);
                rest = later;
            }
            let mut rest = source;
            let mut sources: Vec<&[u8]> = Vec::new();
            for len in from {
                let (slice, later) = rest.split_at(usize::from(*len).min(rest.len()));
                sources.push(slice);
                rest = later;
            }
            let sum = |lens: &[u16]| lens.iter().map(|len| usize::from(*len)).sum::<usize>();
            let moved = copy_vectored(
                &mut destinations,
                &sources,
                Hints::new((*hint).into(), (*hint).into()),
            );
            let len = sum(to).min(sum(from)).min(ROOM_BYTES);
            assert_eq!(moved.bytes, len as u64);
            expected[..len].copy_from_slice(&source[..len]);
        }
    }
}

fuzz_target!(|operations: Vec<Operation>| {
    let source: Vec<u8> = (0..ROOM_BYTES).map(|at| (at * 7 + at / 64 * 31) as u8).collect();
    let mut memory = vec![0xa5; ROOM_BYTES];
    let mut expected = memory.clone();
    for operation in operations.iter().take(32) {
        run(operation, &source, &mut memory, &mut expected);
        assert!(memory == expected, "a wrong byte after {operation:?}");
    }
});
