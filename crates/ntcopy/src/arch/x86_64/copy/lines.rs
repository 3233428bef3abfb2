//! The loops that all ways to copy share, around what differs: how four lines are moved.

use core::arch::asm;
use core::arch::x86_64::{_MM_HINT_NTA, _MM_HINT_T0, _mm_prefetch};
use core::ptr;

use super::super::edges::Edges;
use crate::arch::LINE_BYTES;
use crate::path::{Path, Prefetch};

/// How far ahead of itself a copy prefetches with PREFETCHT0, in bytes: beyond where the hardware's
/// own prefetcher, which starts anew at each page, is late.
const T0_AHEAD_BYTES: usize = 1024;
/// The same with PREFETCHNTA, which has but a corner of the level-1 cache to put lines into, so
/// that those fetched too early are gone again when they are wanted. On an Emerald Rapids, copies
/// between memory at 256 bytes ahead, 512 and 1024: 8.5, 7.3 and 7.5 GB/s. At less than one round
/// of the loop the loads come first, and the hint has no effect.
const NTA_AHEAD_BYTES: usize = 256;
/// With four pages at once there are four times as many lines under way at the same distance:
/// 9.1, 7.0 and 6.6 GB/s at 128 bytes ahead, 192 and 1024.
const NTA_AHEAD_OF_PAGES_BYTES: usize = 128;
const PAGE_BYTES: usize = 4096;
/// Pages that are copied at once where copies are interleaved.
const PAGES: usize = 4;

const NO_PREFETCH: u8 = 0;
const T0: u8 = 1;
const NTA: u8 = 2;

/// What is particular to an instruction set.
pub(super) trait Lines {
    /// Moves four lines, the second `STRIDE` bytes after the first and so on. All four are loaded
    /// before one is stored: with a stride of a page, loads and stores would otherwise share
    /// their low twelve bits, by which the CPU guesses which of them meet.
    ///
    /// # Safety
    ///
    /// - The CPU has the instructions.
    /// - `to` is aligned to a line; the four lines from `to` on are valid for writes, those from
    ///   `from` on for reads.
    unsafe fn four<const STRIDE: usize>(to: *mut u8, from: *const u8);

    /// Moves one line.
    ///
    /// # Safety
    ///
    /// As [`Lines::four`], for one line.
    unsafe fn one(to: *mut u8, from: *const u8);

    /// What must be done after the last line.
    ///
    /// # Safety
    ///
    /// The CPU has the instructions.
    #[inline(always)]
    unsafe fn end() {}
}

/// [`Lines::end`] of the ways that leave something in the upper halves of the AVX registers, which
/// slows down SSE instructions that follow.
///
/// # Safety
///
/// The CPU has AVX.
#[inline(always)]
pub(super) unsafe fn clear_upper_halves() {
    // SAFETY: the caller guarantees AVX; the lower halves keep what they hold, and the compiler
    // keeps nothing in the upper ones across a block that names the registers.
    unsafe {
        asm!(
            "vzeroupper",
            out("ymm0") _, out("ymm1") _, out("ymm2") _, out("ymm3") _, out("ymm4") _,
            out("ymm5") _, out("ymm6") _, out("ymm7") _, out("ymm8") _, out("ymm9") _,
            out("ymm10") _, out("ymm11") _, out("ymm12") _, out("ymm13") _, out("ymm14") _,
            out("ymm15") _,
            options(nomem, nostack, preserves_flags),
        );
    }
}

/// A whole copy: the edges normally, the lines between them as `L` does.
///
/// # Safety
///
/// What [`CopyFn`](crate::arch::tables::CopyFn) says, the instructions being those of `L`.
#[inline(always)]
pub(super) unsafe fn copy<L: Lines>(to: *mut u8, from: *const u8, len_bytes: usize, path: Path) {
    let edges = Edges::of(to, len_bytes);
    // SAFETY: head, lines and tail are within the length by construction, and `to` + head is
    // aligned to a line; the caller guarantees the rest. Both edges come first, so that nothing
    // normal is stored beside lines that are still on their way.
    unsafe {
        let tail_at = edges.tail_at();
        ptr::copy_nonoverlapping(from, to, edges.head_bytes);
        ptr::copy_nonoverlapping(from.add(tail_at), to.add(tail_at), edges.tail_bytes);
        if edges.lines == 0 {
            return;
        }
        let (to, from) = (to.add(edges.head_bytes), from.add(edges.head_bytes));
        match path.prefetch {
            Prefetch::None => body::<L, NO_PREFETCH>(to, from, edges.lines, path.interleaved),
            Prefetch::T0 => body::<L, T0>(to, from, edges.lines, path.interleaved),
            Prefetch::Nta => body::<L, NTA>(to, from, edges.lines, path.interleaved),
        }
        L::end();
    }
}

/// # Safety
///
/// As [`Lines::four`], for `lines` lines.
#[inline(always)]
unsafe fn body<L: Lines, const P: u8>(
    to: *mut u8,
    from: *const u8,
    lines: usize,
    interleaved: bool,
) {
    const LINES_OF_PAGE: usize = PAGE_BYTES / LINE_BYTES;
    let before = (to as usize).wrapping_neg() % PAGE_BYTES / LINE_BYTES;
    // SAFETY: the three parts add up to `lines`, which the caller guarantees.
    unsafe {
        if !interleaved || lines < before + PAGES * LINES_OF_PAGE {
            return linear::<L, P>(to, from, lines);
        }
        let groups = (lines - before) / (PAGES * LINES_OF_PAGE);
        linear::<L, P>(to, from, before);
        let at = before * LINE_BYTES;
        pages::<L, P>(to.add(at), from.add(at), groups);
        let done = before + groups * PAGES * LINES_OF_PAGE;
        linear::<L, P>(to.add(done * LINE_BYTES), from.add(done * LINE_BYTES), lines - done);
    }
}

/// # Safety
///
/// As [`Lines::four`], for `lines` lines.
#[inline(always)]
unsafe fn linear<L: Lines, const P: u8>(mut to: *mut u8, mut from: *const u8, lines: usize) {
    let ahead_bytes = if P == NTA { NTA_AHEAD_BYTES } else { T0_AHEAD_BYTES };
    // SAFETY: each step moves within the lines that the caller guarantees.
    unsafe {
        for _ in 0..lines / 4 {
            for line in 0..4 {
                prefetch::<P>(from.wrapping_add(ahead_bytes + line * LINE_BYTES));
            }
            L::four::<LINE_BYTES>(to, from);
            (to, from) = (to.add(4 * LINE_BYTES), from.add(4 * LINE_BYTES));
        }
        for _ in 0..lines % 4 {
            L::one(to, from);
            (to, from) = (to.add(LINE_BYTES), from.add(LINE_BYTES));
        }
    }
}

/// Groups of four pages, a line of each in turn: the memory has four rows open instead of one,
/// and the hardware's prefetchers, which stop at the end of a page, start anew a quarter as often.
///
/// # Safety
///
/// As [`Lines::four`], for `groups` groups of pages.
#[inline(always)]
unsafe fn pages<L: Lines, const P: u8>(mut to: *mut u8, mut from: *const u8, groups: usize) {
    let ahead_bytes = if P == NTA { NTA_AHEAD_OF_PAGES_BYTES } else { T0_AHEAD_BYTES };
    for _ in 0..groups {
        for at in (0..PAGE_BYTES).step_by(LINE_BYTES) {
            // Past the end of these pages, the same lines of the next group.
            let ahead = match at + ahead_bytes {
                within if within < PAGE_BYTES => within,
                beyond => beyond + (PAGES - 1) * PAGE_BYTES,
            };
            for page in 0..PAGES {
                prefetch::<P>(from.wrapping_add(ahead + page * PAGE_BYTES));
            }
            // SAFETY: `at` is a line of the first page, and the strides lead to the other three.
            unsafe { L::four::<PAGE_BYTES>(to.add(at), from.add(at)) }
        }
        // SAFETY: the caller guarantees `groups` of them; one past the last is still in bounds.
        unsafe {
            to = to.add(PAGES * PAGE_BYTES);
            from = from.add(PAGES * PAGE_BYTES);
        }
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
