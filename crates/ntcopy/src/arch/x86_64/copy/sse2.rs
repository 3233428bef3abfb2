//! Temporal stores of 16 bytes: for a source that is prefetched past the outer caches, into a
//! destination that belongs into them.

use core::arch::asm;

use super::lines::{self, Lines};
use crate::path::Path;

struct Sse2;

impl Lines for Sse2 {
    #[inline(always)]
    unsafe fn four<const STRIDE: usize>(to: *mut u8, from: *const u8) {
        // SAFETY: the caller guarantees the instructions and the lines.
        unsafe {
            asm!(
                "movdqu xmm0, [{from}]",
                "movdqu xmm1, [{from} + 16]",
                "movdqu xmm2, [{from} + 32]",
                "movdqu xmm3, [{from} + 48]",
                "movdqu xmm4, [{from} + {s}]",
                "movdqu xmm5, [{from} + {s} + 16]",
                "movdqu xmm6, [{from} + {s} + 32]",
                "movdqu xmm7, [{from} + {s} + 48]",
                "movdqu xmm8, [{from} + 2*{s}]",
                "movdqu xmm9, [{from} + 2*{s} + 16]",
                "movdqu xmm10, [{from} + 2*{s} + 32]",
                "movdqu xmm11, [{from} + 2*{s} + 48]",
                "movdqu xmm12, [{from} + 3*{s}]",
                "movdqu xmm13, [{from} + 3*{s} + 16]",
                "movdqu xmm14, [{from} + 3*{s} + 32]",
                "movdqu xmm15, [{from} + 3*{s} + 48]",
                "movdqa [{to}], xmm0",
                "movdqa [{to} + 16], xmm1",
                "movdqa [{to} + 32], xmm2",
                "movdqa [{to} + 48], xmm3",
                "movdqa [{to} + {s}], xmm4",
                "movdqa [{to} + {s} + 16], xmm5",
                "movdqa [{to} + {s} + 32], xmm6",
                "movdqa [{to} + {s} + 48], xmm7",
                "movdqa [{to} + 2*{s}], xmm8",
                "movdqa [{to} + 2*{s} + 16], xmm9",
                "movdqa [{to} + 2*{s} + 32], xmm10",
                "movdqa [{to} + 2*{s} + 48], xmm11",
                "movdqa [{to} + 3*{s}], xmm12",
                "movdqa [{to} + 3*{s} + 16], xmm13",
                "movdqa [{to} + 3*{s} + 32], xmm14",
                "movdqa [{to} + 3*{s} + 48], xmm15",
                to = in(reg) to,
                from = in(reg) from,
                s = const STRIDE,
                out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _, out("xmm4") _,
                out("xmm5") _, out("xmm6") _, out("xmm7") _, out("xmm8") _, out("xmm9") _,
                out("xmm10") _, out("xmm11") _, out("xmm12") _, out("xmm13") _, out("xmm14") _,
                out("xmm15") _,
                options(nostack, preserves_flags),
            );
        }
    }

    #[inline(always)]
    unsafe fn one(to: *mut u8, from: *const u8) {
        // SAFETY: the caller guarantees the instructions and the line.
        unsafe {
            asm!(
                "movdqu xmm0, [{from}]",
                "movdqu xmm1, [{from} + 16]",
                "movdqu xmm2, [{from} + 32]",
                "movdqu xmm3, [{from} + 48]",
                "movdqa [{to}], xmm0",
                "movdqa [{to} + 16], xmm1",
                "movdqa [{to} + 32], xmm2",
                "movdqa [{to} + 48], xmm3",
                to = in(reg) to,
                from = in(reg) from,
                out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _,
                options(nostack, preserves_flags),
            );
        }
    }
}

/// See [`CopyFn`](crate::arch::tables::CopyFn).
pub(super) unsafe fn copy(to: *mut u8, from: *const u8, len_bytes: usize, path: Path) {
    // SAFETY: the caller guarantees the instructions, the memory and the fence.
    unsafe { lines::copy::<Sse2>(to, from, len_bytes, path) }
}
