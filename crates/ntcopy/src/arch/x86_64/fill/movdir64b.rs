//! MOVDIR64B from one line that holds the value.

use core::arch::asm;

use super::lines;

#[repr(align(64))]
struct Line([u64; 8]);

/// # Safety
///
/// - The CPU has the instructions.
/// - `to` is aligned to a line, and `lines` lines from it on, at least one, are valid for writes.
unsafe fn stream(to: *mut u8, word: u64, lines: usize) {
    let line = Line([word; 8]);
    // SAFETY: the caller guarantees the instructions and the lines; the loop ends after as many.
    unsafe {
        asm!(
            "2:",
            "movdir64b {to}, [{from}]",
            "add {to}, 64",
            "dec {lines}",
            "jnz 2b",
            to = inout(reg) to => _,
            lines = inout(reg) lines => _,
            from = in(reg) line.0.as_ptr(),
            options(nostack),
        );
    }
}

/// See [`FillFn`](crate::arch::tables::FillFn).
pub(super) unsafe fn fill(to: *mut u8, value: u8, len_bytes: usize) {
    // SAFETY: the caller guarantees the instructions, the memory and the fence.
    unsafe { lines::fill(to, value, len_bytes, stream) }
}
