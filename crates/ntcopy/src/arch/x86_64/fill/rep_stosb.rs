//! REP STOSB: temporal, and on CPUs with ERMS the microcode's own choice of width.

use core::arch::asm;

/// See [`FillFn`](crate::arch::tables::FillFn).
pub(super) unsafe fn fill(to: *mut u8, value: u8, len_bytes: usize) {
    // SAFETY: the caller guarantees the memory; the ABI, that the direction flag is clear.
    unsafe {
        asm!("rep stosb", inout("rcx") len_bytes => _, inout("rdi") to => _, in("al") value,
             options(nostack, preserves_flags));
    }
}
