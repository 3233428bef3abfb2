//! The loop that all ways to copy share, around what differs: how four lines are moved.
//! `docs/design/copy.md`, "The loop", describes it for the library and the kernel together.

use core::arch::x86_64::{_MM_HINT_NTA, _MM_HINT_T0, _mm_prefetch};
use core::ptr;

use super::super::Edges;
use super::flush::{BLOCK_BYTES, Source};
use crate::arch::{LINE_BYTES, Piece};
use crate::path::{Path, Prefetch, Turns};

/// How far ahead of itself a non-temporal copy prefetches with PREFETCHT0, in bytes: beyond where
/// the hardware's own prefetcher, which starts anew at each page, is late.
pub(super) const T0_AHEAD_BYTES: usize = 1024;
/// The same of a temporal one, as LLVM's libc has it: the hardware fetches the lines of the
/// destination as well. On a Xeon with MOVDIR64B, copies of 256 KiB from memory into a buffer in use
/// at 192 bytes ahead, 320, 512 and 1024: 11.5, 13.6, 11.9 and 11.7 GB/s (no record kept).
pub(super) const TEMPORAL_AHEAD_BYTES: usize = 5 * LINE_BYTES;
/// The same with PREFETCHNTA, which has but a corner of the level-1 cache to put lines into, so
/// that those fetched too early are gone again when they are wanted. On an Emerald Rapids, copies
/// between memory at 256 bytes ahead, 512 and 1024: 8.5, 7.3 and 7.5 GB/s. At less than one round
/// of the loop the loads come first, and the hint has no effect.
const NTA_AHEAD_BYTES: usize = 256;
const PAGE_BYTES: usize = 4096;
/// Lines that are moved at once.
const BATCH_LINES: usize = 4;

const NO_PREFETCH: u8 = 0;
const T0: u8 = 1;
const NTA: u8 = 2;

/// What is particular to an instruction set.
pub(super) trait Lines {
    /// How far ahead lines in a row are prefetched with PREFETCHT0, in bytes.
    const AHEAD_BYTES: usize = T0_AHEAD_BYTES;

    /// Moves four lines: those at 0, `A`, `B` and `A + B` bytes. All four are loaded before one is
    /// stored, where there are registers: with a stride of a page, loads and stores would
    /// otherwise share their low twelve bits, by which the CPU guesses which of them meet.
    ///
    /// # Safety
    ///
    /// - The CPU has the instructions.
    /// - `to` is aligned to a line; the four lines are valid for writes at `to` and for reads at
    ///   `from`.
    unsafe fn four<const A: usize, const B: usize>(to: *mut u8, from: *const u8);

    /// Moves one line.
    ///
    /// # Safety
    ///
    /// The same as [`Lines::four`], for one line.
    unsafe fn one(to: *mut u8, from: *const u8);

    /// What must be done after the last line.
    ///
    /// # Safety
    ///
    /// The CPU has the instructions.
    #[inline(always)]
    unsafe fn end() {}
}

/// A whole copy: the edges normally, the lines between them as `L` does.
///
/// # Safety
///
/// What [`CopyFn`](crate::arch::tables::CopyFn) says, the instructions being those of `L`.
pub(super) unsafe fn copy<L: Lines>(to: *mut u8, from: *const u8, len_bytes: usize, path: Path) {
    let edges = Edges::of(to, len_bytes);
    // SAFETY: head, lines and tail are within the length by construction, and `to` + head is
    // aligned to a line; the caller guarantees the rest. Both edges come first, so that nothing
    // normal is stored beside lines that are still on their way.
    unsafe {
        let tail_at = edges.tail_at();
        ptr::copy_nonoverlapping(from, to, edges.head_bytes);
        ptr::copy_nonoverlapping(from.add(tail_at), to.add(tail_at), edges.tail_bytes);
        let (to, lines_at) = (to.add(edges.head_bytes), from.add(edges.head_bytes));
        let mut source = Source::at(from);
        match path.prefetch {
            _ if edges.lines == 0 => {}
            Prefetch::None => body::<L, NO_PREFETCH>(to, lines_at, edges.lines, path.turns),
            Prefetch::T0 => body::<L, T0>(to, lines_at, edges.lines, path.turns),
            Prefetch::Nta => body::<L, NTA>(to, lines_at, edges.lines, path.turns),
            Prefetch::Flush => flushing::<L>(to, lines_at, edges.lines, path.turns, &mut source),
        }
        if edges.lines > 0 {
            L::end();
        }
        if path.prefetch == Prefetch::Flush {
            source.flush_until(from.add(len_bytes));
        }
    }
}

/// Several copies, [`BATCH_LINES`] of each in turn as long as all have that many, and the rest of each
/// by itself.
///
/// # Safety
///
/// What [`CopyPiecesFn`](crate::arch::tables::CopyPiecesFn) says, the instructions being those of
/// `L`.
pub(super) unsafe fn copy_pieces<L: Lines>(pieces: &[Piece], path: Path) {
    const BATCH_BYTES: usize = BATCH_LINES * LINE_BYTES;
    let ahead_bytes = if path.prefetch == Prefetch::Nta { BATCH_BYTES } else { T0_AHEAD_BYTES };
    let lines_of = |piece: &Piece| Edges::of(piece.to, piece.len_bytes).lines;
    let batches = pieces.iter().map(lines_of).min().unwrap_or(0) / BATCH_LINES;
    let flushes = path.prefetch == Prefetch::Flush;
    let ahead = if flushes { Prefetch::None } else { path.prefetch };
    let linear = Path { prefetch: ahead, turns: Turns::NONE, ..path };
    // SAFETY: all batches are within each piece's whole lines, and what is before and after them
    // makes up the rest of it; the caller guarantees the memory and the instructions.
    unsafe {
        for piece in pieces {
            let head_bytes = Edges::of(piece.to, piece.len_bytes).head_bytes;
            let done = head_bytes + batches * BATCH_BYTES;
            ptr::copy_nonoverlapping(piece.from, piece.to, head_bytes);
            copy::<L>(piece.to.add(done), piece.from.add(done), piece.len_bytes - done, linear);
        }
        for batch in 0..batches {
            for piece in pieces {
                let head_bytes = Edges::of(piece.to, piece.len_bytes).head_bytes;
                let at = head_bytes + batch * BATCH_BYTES;
                for line in 0..BATCH_LINES {
                    let ahead = piece.from.wrapping_add(at + ahead_bytes + line * LINE_BYTES);
                    match path.prefetch {
                        Prefetch::None | Prefetch::Flush => {}
                        Prefetch::T0 => prefetch::<T0>(ahead),
                        Prefetch::Nta => prefetch::<NTA>(ahead),
                    }
                }
                let (to, from) = (piece.to.add(at), piece.from.add(at));
                L::four::<LINE_BYTES, { 2 * LINE_BYTES }>(to, from);
            }
        }
        L::end();
        for piece in pieces.iter().filter(|_| flushes) {
            Source::at(piece.from).flush_until(piece.from.add(piece.len_bytes));
        }
    }
}

/// The body, a block at a time, whose lines of the source are flushed before the next one. They
/// would take the place of others if they stayed for longer; to flush each at once takes longer.
///
/// # Safety
///
/// The same as [`Lines::four`], for `lines` lines; `source` began at `from` or less than a line
/// before.
#[inline(always)]
unsafe fn flushing<L: Lines>(
    to: *mut u8,
    from: *const u8,
    lines: usize,
    turns: Turns,
    source: &mut Source,
) {
    let block_lines = (turns.group_bytes() as usize).max(BLOCK_BYTES) / LINE_BYTES;
    let mut done = 0;
    while done < lines {
        let here = block_lines.min(lines - done);
        // SAFETY: the blocks add up to `lines`, which the caller guarantees.
        unsafe {
            let (to, from) = (to.add(done * LINE_BYTES), from.add(done * LINE_BYTES));
            if turns.is_none() {
                linear::<L, NO_PREFETCH>(to, from, here);
            } else {
                body::<L, NO_PREFETCH>(to, from, here, turns);
            }
            source.flush_until(from.add(here * LINE_BYTES));
        }
        done += here;
    }
}

/// Whole groups of pages in turn, and the rest one line after the other.
///
/// # Safety
///
/// The same as [`Lines::four`], for `lines` lines.
#[inline(always)]
unsafe fn body<L: Lines, const P: u8>(to: *mut u8, from: *const u8, lines: usize, turns: Turns) {
    let group_lines = turns.pages() * (PAGE_BYTES / LINE_BYTES);
    let groups = lines.checked_div(group_lines).unwrap_or(0);
    let done = groups * group_lines;
    // SAFETY: the two parts add up to `lines`, which the caller guarantees.
    unsafe {
        match turns.bytes() {
            64 => in_turn::<L, P, 64>(to, from, turns.pages(), groups),
            128 => in_turn::<L, P, 128>(to, from, turns.pages(), groups),
            _ => in_turn::<L, P, 256>(to, from, turns.pages(), groups),
        }
        linear::<L, P>(to.add(done * LINE_BYTES), from.add(done * LINE_BYTES), lines - done);
    }
}

/// # Safety
///
/// The same as [`Lines::four`], for `lines` lines.
#[inline(always)]
unsafe fn linear<L: Lines, const P: u8>(mut to: *mut u8, mut from: *const u8, lines: usize) {
    const BATCH_BYTES: usize = BATCH_LINES * LINE_BYTES;
    let ahead_bytes = if P == NTA { NTA_AHEAD_BYTES } else { L::AHEAD_BYTES };
    // SAFETY: each step moves within the lines that the caller guarantees.
    unsafe {
        for _ in 0..lines / BATCH_LINES {
            for line in 0..BATCH_LINES {
                prefetch::<P>(from.wrapping_add(ahead_bytes + line * LINE_BYTES));
            }
            L::four::<LINE_BYTES, { 2 * LINE_BYTES }>(to, from);
            (to, from) = (to.add(BATCH_BYTES), from.add(BATCH_BYTES));
        }
        for _ in 0..lines % BATCH_LINES {
            L::one(to, from);
            (to, from) = (to.add(LINE_BYTES), from.add(LINE_BYTES));
        }
    }
}

/// Groups of pages, `BYTES` of each in turn. A page is 4096 bytes from wherever the destination's
/// first whole line is: neither side has to begin where a page of memory does.
///
/// # Safety
///
/// - What [`Lines::four`] asks, for `groups` groups of `pages` pages.
/// - Without groups nothing is asked of `pages`; else it is a multiple of what four lines take.
#[inline(always)]
unsafe fn in_turn<L: Lines, const P: u8, const BYTES: usize>(
    mut to: *mut u8,
    mut from: *const u8,
    pages: usize,
    groups: usize,
) {
    const PAIR: usize = 2 * LINE_BYTES;
    let pages_of_batch = BATCH_LINES * LINE_BYTES / BYTES;
    for _ in 0..groups {
        for at in (0..PAGE_BYTES).step_by(BYTES) {
            for page in (0..pages).step_by(pages_of_batch) {
                let place = page * PAGE_BYTES + at;
                read_ahead::<P, BYTES>(from.wrapping_add(page * PAGE_BYTES), at, pages);
                // SAFETY: the four lines are within these pages.
                unsafe {
                    let (to, from) = (to.add(place), from.add(place));
                    match BYTES {
                        LINE_BYTES => L::four::<PAGE_BYTES, { 2 * PAGE_BYTES }>(to, from),
                        PAIR => L::four::<LINE_BYTES, PAGE_BYTES>(to, from),
                        _ => L::four::<LINE_BYTES, { 2 * LINE_BYTES }>(to, from),
                    }
                }
            }
        }
        // SAFETY: the caller guarantees `groups` of them; one past the last is still in bounds.
        unsafe {
            to = to.add(pages * PAGE_BYTES);
            from = from.add(pages * PAGE_BYTES);
        }
    }
}

/// Prefetches what the four lines at `at` in these pages will be followed by; past the end of the
/// pages, the same lines of the next group.
#[inline(always)]
fn read_ahead<const P: u8, const BYTES: usize>(pages_at: *const u8, at: usize, pages: usize) {
    // With several pages at once there are as many times the lines under way at the same distance.
    let ahead_bytes = if P == NTA { NTA_AHEAD_BYTES.max(2 * BYTES) / 2 } else { T0_AHEAD_BYTES };
    let ahead = match at + ahead_bytes {
        within if within < PAGE_BYTES => within,
        beyond => beyond + (pages - 1) * PAGE_BYTES,
    };
    for line in 0..BATCH_LINES {
        let (page, line) = (line * LINE_BYTES / BYTES, line * LINE_BYTES % BYTES);
        prefetch::<P>(pages_at.wrapping_add(page * PAGE_BYTES + ahead + line));
    }
}

/// Prefetches never fault, so that the address may lie beyond the source.
#[inline(always)]
fn prefetch<const P: u8>(at: *const u8) {
    // SAFETY: a hint, for any address; PREFETCH is part of SSE, which x86-64 includes.
    unsafe {
        match P {
            T0 => _mm_prefetch::<_MM_HINT_T0>(at.cast()),
            NTA => _mm_prefetch::<_MM_HINT_NTA>(at.cast()),
            _ => {}
        }
    }
}

#[cfg(all(test, feature = "std"))]
mod tests {
    use crate::arch::{COPY_BACKENDS, Piece};

    /// Pieces of any lengths, by every row that takes turns, with guards on both sides.
    #[test]
    fn pieces_in_turn_are_copied_whole() {
        let source: Vec<u8> = (0..40_000_usize).map(|at| (at * 7 + at / 64 * 31) as u8).collect();
        let guards = vec![0xa5; 40_000];
        let rows = COPY_BACKENDS.iter().filter(|row| row.takes_turns() && row.is_available());
        for (row, copy_pieces) in rows.filter_map(|row| Some((row, row.copy_pieces?))) {
            for lens in [&[4096; 4][..], &[4096, 1024, 9000, 255], &[1, 64, 4096], &[5000], &[]] {
                for skew in if cfg!(miri) { &[33][..] } else { &[0, 1, 33, 63] } {
                    for path in row.paths() {
                        let mut to = guards.clone();
                        let first = 64 + skew;
                        let (start, mut at) = (to.as_mut_ptr(), first);
                        let mut pieces = Vec::new();
                        for len_bytes in lens.iter().copied() {
                            let from = source[at + 3..].as_ptr();
                            // SAFETY: within the buffer.
                            pieces.push(Piece { to: unsafe { start.add(at) }, from, len_bytes });
                            at += len_bytes;
                        }
                        // SAFETY: the CPU has it; pieces are within the buffers, and apart; the
                        // fence follows.
                        unsafe { copy_pieces(&pieces, path) }
                        crate::fence();
                        assert!(
                            to[first..at] == source[first + 3..at + 3],
                            "{path} {lens:?} {skew}"
                        );
                        let is_guarded = to[..first] == guards[..first] && to[at..] == guards[at..];
                        assert!(is_guarded, "{path} {lens:?} {skew}");
                    }
                }
            }
        }
    }
}
