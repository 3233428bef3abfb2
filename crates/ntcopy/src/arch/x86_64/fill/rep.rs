//! REP STOS: temporal stores.

use core::arch::asm;
use core::ptr;

/// By the byte; on CPUs with ERMS the width is the microcode's own choice. See
/// [`FillFn`](crate::arch::tables::FillFn).
pub(super) unsafe fn stosb(to: *mut u8, value: u8, len_bytes: usize) {
    // SAFETY: the caller guarantees the memory; the ABI, that the direction flag is clear.
    unsafe {
        asm!("rep stosb", inout("rcx") len_bytes => _, inout("rdi") to => _, in("al") value,
             options(nostack, preserves_flags));
    }
}

/// Eight bytes at a time, and the last few bytes by themselves. See
/// [`FillFn`](crate::arch::tables::FillFn).
pub(super) unsafe fn stosq(to: *mut u8, value: u8, len_bytes: usize) {
    let word = u64::from(value) * 0x0101_0101_0101_0101;
    let rest_bytes = len_bytes % 8;
    // SAFETY: the words and the rest add up to the length, which the caller guarantees; the ABI,
    // that the direction flag is clear.
    unsafe {
        ptr::write_bytes(to.add(len_bytes - rest_bytes), value, rest_bytes);
        asm!("rep stosq", inout("rcx") len_bytes / 8 => _, inout("rdi") to => _, in("rax") word,
             options(nostack, preserves_flags));
    }
}
