//! VMOVNTDQ, 32 bytes: a line is two stores, back to back.

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
            "vmovq xmm0, {word}",
            "vpbroadcastq ymm0, xmm0",
            "2:",
            "vmovntdq [{to}], ymm0",
            "vmovntdq [{to} + 32], ymm0",
            "add {to}, 64",
            "dec {lines}",
            "jnz 2b",
            "vzeroupper",
            to = inout(reg) to => _,
            lines = inout(reg) lines => _,
            word = in(reg) word,
            out("ymm0") _, out("ymm1") _, out("ymm2") _, out("ymm3") _, out("ymm4") _,
            out("ymm5") _, out("ymm6") _, out("ymm7") _, out("ymm8") _, out("ymm9") _,
            out("ymm10") _, out("ymm11") _, out("ymm12") _, out("ymm13") _, out("ymm14") _,
            out("ymm15") _,
            options(nostack),
        );
    }
}

/// See [`FillFn`](crate::arch::tables::FillFn).
pub(super) unsafe fn fill(to: *mut u8, value: u8, len_bytes: usize) {
    // SAFETY: the caller guarantees the instructions, the memory and the fence.
    unsafe { lines::fill(to, value, len_bytes, stream) }
}
