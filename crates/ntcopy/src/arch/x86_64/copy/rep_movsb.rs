//! REP MOVSB: temporal, and on CPUs with ERMS the microcode's own choice of width.

use core::arch::asm;

use crate::path::Path;

/// See [`CopyFn`](crate::arch::tables::CopyFn).
pub(super) unsafe fn copy(to: *mut u8, from: *const u8, len_bytes: usize, _: Path) {
    // SAFETY: the caller guarantees the memory; the ABI, that the direction flag is clear.
    unsafe {
        asm!("rep movsb", inout("rcx") len_bytes => _, inout("rdi") to => _,
             inout("rsi") from => _, options(nostack, preserves_flags));
    }
}
