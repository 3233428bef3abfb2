//! The calls that are compared.

use std::ffi::c_void;

use ntcopy::arch::{self, CopyBackend, FillBackend};
use ntcopy::{Hint, Hints, Path, Stream};

use super::lanes::Lane;
use super::peers::{Memcpy, Peers};
use crate::experiments::bulk::task::{Heat, PIECE_BYTES, Task, Way};
use crate::run::Failure;

#[derive(Clone, Copy)]
pub enum Call {
    Libc,
    Peer(Memcpy),
    /// The library's own choice of one call.
    Ours,
    Pieces {
        whole_bytes: u64,
    },
    Copy(&'static CopyBackend, Path),
    Fill(&'static FillBackend),
}

impl Call {
    /// Looks a way up. `region_bytes` is what a cold destination's stream comes to.
    pub fn find(
        way: Way,
        task: Task,
        size_bytes: u64,
        region_bytes: u64,
        peers: &Peers,
    ) -> Result<Call, Failure> {
        let is_stream = matches!(task, Task::Copy { destination: Heat::Cold, .. });
        let missing = || Failure::Answer(format!("{way} is not to be had here"));
        match way {
            Way::Libc | Way::LibcTuned => Ok(Call::Libc),
            Way::Peer(peer) => peers.get(peer).map(Call::Peer).ok_or_else(missing),
            Way::Ours => Ok(Call::Ours),
            Way::Stream => {
                Ok(Call::Pieces { whole_bytes: if is_stream { region_bytes } else { size_bytes } })
            }
            Way::Copy(path) => arch::copy_backend(path.method)
                .filter(|row| row.is_available())
                .map(|row| Call::Copy(row, path))
                .ok_or_else(missing),
            Way::Fill(method) => arch::fill_backend(method)
                .filter(|row| row.is_available())
                .map(Call::Fill)
                .ok_or_else(missing),
            Way::Walk(_) | Way::Page(_) => Err(missing()),
        }
    }

    /// Copies `calls` times; gives the path, where the library chose it.
    pub fn copies(self, lane: &mut Lane<'_>, calls: u64) -> Option<Path> {
        match self {
            Call::Libc => lane.copies(calls, memcpy),
            Call::Peer(function) => lane.copies(calls, |to, from| {
                let (to, len) = (to.as_mut_ptr().cast::<c_void>(), from.len());
                // SAFETY: both slices have the length and don't overlap. Each of
                // them orders its stores before it returns (libpmem2 without flags).
                unsafe { function(to, from.as_ptr().cast(), len, 0) };
            }),
            Call::Copy(row, path) => lane.copies(calls, |to, from| {
                // `Call::find` has seen that the CPU has it; a copy not done would not verify.
                let _ = row.copy(to, from, path);
            }),
            Call::Ours => return ours(lane, calls),
            Call::Pieces { whole_bytes } => return pieces(lane, calls, whole_bytes),
            Call::Fill(_) => {}
        }
        None
    }

    /// Fills `calls` times; gives the path, where the library chose it.
    pub fn fills(self, lane: &mut Lane<'_>, calls: u64, value: u8) -> Option<Path> {
        match self {
            Call::Libc => lane.fills(calls, |to| {
                // SAFETY: the slice is valid for writes of its length.
                unsafe { libc::memset(to.as_mut_ptr().cast(), i32::from(value), to.len()) };
            }),
            Call::Fill(row) => lane.fills(calls, |to| {
                // `Call::find` has seen that the CPU has it; a fill not done would not verify.
                let _ = row.fill(to, value);
            }),
            Call::Ours => {
                let mut path = Path::LIBC;
                lane.fills(calls, |to| path = ntcopy::fill(to, value, Hint::Auto));
                return Some(path);
            }
            Call::Peer(_) | Call::Pieces { .. } | Call::Copy(..) => {}
        }
        None
    }
}

fn memcpy(to: &mut [u8], from: &[u8]) {
    // SAFETY: both slices have the length, and don't overlap.
    unsafe { libc::memcpy(to.as_mut_ptr().cast(), from.as_ptr().cast(), from.len()) };
}

/// Calls as a program does that doesn't want to know the path; only the last call is asked for it.
fn ours(lane: &mut Lane<'_>, calls: u64) -> Option<Path> {
    let mut path = Path::LIBC;
    let before = calls.saturating_sub(1);
    lane.copies(before, |to, from| _ = ntcopy::copy(to, from, Hints::AUTO));
    lane.copies(calls - before, |to, from| path = ntcopy::copy(to, from, Hints::AUTO));
    Some(path)
}

fn pieces(lane: &mut Lane<'_>, calls: u64, whole_bytes: u64) -> Option<Path> {
    let piece = PIECE_BYTES as usize;
    let mut path = Path::LIBC;
    lane.copies(calls, |to, from| {
        let mut stream = Stream::known(whole_bytes, Hints::AUTO);
        for (to, from) in to.chunks_mut(piece).zip(from.chunks(piece)) {
            path = stream.copy(to, from);
        }
    });
    Some(path)
}
