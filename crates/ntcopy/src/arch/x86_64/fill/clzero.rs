//! CLZERO: a line of zeros in one instruction, non-temporally. AMD has it.

use core::arch::asm;

use super::lines;

/// # Safety
///
/// - The CPU has the instructions.
/// - `to` is aligned to a line, and `lines` lines from it on, at least one, are valid for writes.
unsafe fn stream(to: *mut u8, _: u64, lines: usize) {
    // SAFETY: the caller guarantees the instructions and the lines; the loop ends after as many.
    unsafe {
        asm!(
            "2:",
            "clzero",
            "add rax, 64",
            "dec {lines}",
            "jnz 2b",
            lines = inout(reg) lines => _,
            inout("rax") to => _,
            options(nostack),
        );
    }
}

/// See [`FillFn`](crate::arch::tables::FillFn).
pub(super) unsafe fn fill(to: *mut u8, value: u8, len_bytes: usize) {
    // SAFETY: the caller guarantees the instructions, the memory and the fence.
    unsafe { lines::fill(to, value, len_bytes, stream) }
}
