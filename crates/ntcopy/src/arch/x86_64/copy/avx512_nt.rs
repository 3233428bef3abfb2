//! VMOVNTDQ, 64 bytes: a line is one store. The registers from 16 on have no SSE halves, so that
//! nothing has to be cleaned up afterwards.

use core::arch::asm;

use super::lines::{self, Lines};
use crate::path::Path;

struct Avx512Nt;

impl Lines for Avx512Nt {
    #[inline(always)]
    unsafe fn four<const STRIDE: usize>(to: *mut u8, from: *const u8) {
        // SAFETY: the caller guarantees the instructions and the lines.
        unsafe {
            asm!(
                "vmovdqu64 zmm16, [{from}]",
                "vmovdqu64 zmm17, [{from} + {s}]",
                "vmovdqu64 zmm18, [{from} + 2*{s}]",
                "vmovdqu64 zmm19, [{from} + 3*{s}]",
                "vmovntdq [{to}], zmm16",
                "vmovntdq [{to} + {s}], zmm17",
                "vmovntdq [{to} + 2*{s}], zmm18",
                "vmovntdq [{to} + 3*{s}], zmm19",
                to = in(reg) to,
                from = in(reg) from,
                s = const STRIDE,
                out("zmm16") _, out("zmm17") _, out("zmm18") _, out("zmm19") _,
                options(nostack, preserves_flags),
            );
        }
    }

    #[inline(always)]
    unsafe fn one(to: *mut u8, from: *const u8) {
        // SAFETY: the caller guarantees the instructions and the line.
        unsafe {
            asm!(
                "vmovdqu64 zmm16, [{from}]",
                "vmovntdq [{to}], zmm16",
                to = in(reg) to,
                from = in(reg) from,
                out("zmm16") _,
                options(nostack, preserves_flags),
            );
        }
    }
}

/// See [`CopyFn`](crate::arch::tables::CopyFn).
pub(super) unsafe fn copy(to: *mut u8, from: *const u8, len_bytes: usize, path: Path) {
    // SAFETY: the caller guarantees the instructions, the memory and the fence.
    unsafe { lines::copy::<Avx512Nt>(to, from, len_bytes, path) }
}
