//! MOVNTI, 8 bytes: a line is eight stores, back to back.

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
            "2:",
            "movnti [{to}], {word}",
            "movnti [{to} + 8], {word}",
            "movnti [{to} + 16], {word}",
            "movnti [{to} + 24], {word}",
            "movnti [{to} + 32], {word}",
            "movnti [{to} + 40], {word}",
            "movnti [{to} + 48], {word}",
            "movnti [{to} + 56], {word}",
            "add {to}, 64",
            "dec {lines}",
            "jnz 2b",
            to = inout(reg) to => _,
            lines = inout(reg) lines => _,
            word = in(reg) word,
            options(nostack),
        );
    }
}

/// See [`FillFn`](crate::arch::tables::FillFn).
pub(super) unsafe fn fill(to: *mut u8, value: u8, len_bytes: usize) {
    // SAFETY: the caller guarantees the instructions, the memory and the fence.
    unsafe { lines::fill(to, value, len_bytes, stream) }
}
