//! MOVDIR64B: a line from memory to memory in one instruction, never torn.

use core::arch::asm;

use super::lines::{self, Lines};
use crate::path::Path;

struct Movdir64b;

impl Lines for Movdir64b {
    #[inline(always)]
    unsafe fn four<const STRIDE: usize>(to: *mut u8, from: *const u8) {
        // SAFETY: the caller guarantees the instruction and the lines; the destination is a
        // register's content, so that the addresses are computed first.
        unsafe {
            asm!(
                "movdir64b {to0}, [{from}]",
                "movdir64b {to1}, [{from} + {s}]",
                "movdir64b {to2}, [{from} + 2*{s}]",
                "movdir64b {to3}, [{from} + 3*{s}]",
                to0 = in(reg) to,
                to1 = in(reg) to.add(STRIDE),
                to2 = in(reg) to.add(2 * STRIDE),
                to3 = in(reg) to.add(3 * STRIDE),
                from = in(reg) from,
                s = const STRIDE,
                options(nostack, preserves_flags),
            );
        }
    }

    #[inline(always)]
    unsafe fn one(to: *mut u8, from: *const u8) {
        // SAFETY: the caller guarantees the instruction and the line.
        unsafe {
            asm!("movdir64b {to}, [{from}]", to = in(reg) to, from = in(reg) from,
                 options(nostack, preserves_flags));
        }
    }
}

/// See [`CopyFn`](crate::arch::tables::CopyFn).
pub(super) unsafe fn copy(to: *mut u8, from: *const u8, len_bytes: usize, path: Path) {
    // SAFETY: the caller guarantees the instructions, the memory and the fence.
    unsafe { lines::copy::<Movdir64b>(to, from, len_bytes, path) }
}
