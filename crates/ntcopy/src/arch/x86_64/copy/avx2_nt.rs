//! VMOVNTDQ, 32 bytes: a line is two stores, back to back.

use core::arch::asm;

use super::lines::{self, Lines};
use crate::path::Path;

struct Avx2Nt;

impl Lines for Avx2Nt {
    #[inline(always)]
    unsafe fn four<const STRIDE: usize>(to: *mut u8, from: *const u8) {
        // SAFETY: the caller guarantees the instructions and the lines.
        unsafe {
            asm!(
                "vmovdqu ymm0, [{from}]",
                "vmovdqu ymm1, [{from} + 32]",
                "vmovdqu ymm2, [{from} + {s}]",
                "vmovdqu ymm3, [{from} + {s} + 32]",
                "vmovdqu ymm4, [{from} + 2*{s}]",
                "vmovdqu ymm5, [{from} + 2*{s} + 32]",
                "vmovdqu ymm6, [{from} + 3*{s}]",
                "vmovdqu ymm7, [{from} + 3*{s} + 32]",
                "vmovntdq [{to}], ymm0",
                "vmovntdq [{to} + 32], ymm1",
                "vmovntdq [{to} + {s}], ymm2",
                "vmovntdq [{to} + {s} + 32], ymm3",
                "vmovntdq [{to} + 2*{s}], ymm4",
                "vmovntdq [{to} + 2*{s} + 32], ymm5",
                "vmovntdq [{to} + 3*{s}], ymm6",
                "vmovntdq [{to} + 3*{s} + 32], ymm7",
                to = in(reg) to,
                from = in(reg) from,
                s = const STRIDE,
                out("ymm0") _, out("ymm1") _, out("ymm2") _, out("ymm3") _, out("ymm4") _,
                out("ymm5") _, out("ymm6") _, out("ymm7") _,
                options(nostack, preserves_flags),
            );
        }
    }

    #[inline(always)]
    unsafe fn one(to: *mut u8, from: *const u8) {
        // SAFETY: the caller guarantees the instructions and the line.
        unsafe {
            asm!(
                "vmovdqu ymm0, [{from}]",
                "vmovdqu ymm1, [{from} + 32]",
                "vmovntdq [{to}], ymm0",
                "vmovntdq [{to} + 32], ymm1",
                to = in(reg) to,
                from = in(reg) from,
                out("ymm0") _, out("ymm1") _,
                options(nostack, preserves_flags),
            );
        }
    }

    #[inline(always)]
    unsafe fn end() {
        // SAFETY: the caller guarantees AVX.
        unsafe { lines::clear_upper_halves() }
    }
}

/// See [`CopyFn`](crate::arch::tables::CopyFn).
pub(super) unsafe fn copy(to: *mut u8, from: *const u8, len_bytes: usize, path: Path) {
    // SAFETY: the caller guarantees the instructions, the memory and the fence.
    unsafe { lines::copy::<Avx2Nt>(to, from, len_bytes, path) }
}
