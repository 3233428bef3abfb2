//! MOVNTDQ, 16 bytes: a line is four stores, back to back.

use core::arch::asm;

use super::lines;

/// # Safety
///
/// - The CPU has the instructions.
/// - `to` is aligned to a line, and `lines` lines from it on, at least one, are valid for writes.
unsafe fn stream(to: *mut u8, word: u64, lines: usize) {
    // SAFETY: the caller guarantees the instructions and the lines; the loop ends after as many.
    unsafe {
        asm!(
            "movq xmm0, {word}",
            "punpcklqdq xmm0, xmm0",
            "2:",
            "movntdq [{to}], xmm0",
            "movntdq [{to} + 16], xmm0",
            "movntdq [{to} + 32], xmm0",
            "movntdq [{to} + 48], xmm0",
            "add {to}, 64",
            "dec {lines}",
            "jnz 2b",
            to = inout(reg) to => _,
            lines = inout(reg) lines => _,
            word = in(reg) word,
            out("xmm0") _,
            options(nostack),
        );
    }
}

/// See [`FillFn`](crate::arch::tables::FillFn).
pub(super) unsafe fn fill(to: *mut u8, value: u8, len_bytes: usize) {
    // SAFETY: the caller guarantees the instructions, the memory and the fence.
    unsafe { lines::fill(to, value, len_bytes, stream) }
}
