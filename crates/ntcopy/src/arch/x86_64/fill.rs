//! Every way to fill: temporal ones, and those whose stores go past the caches. Each of the latter
//! stores whole lines, and all share what is around that.

use core::arch::asm;
use core::ptr;

use super::{Edges, cpuid};
use crate::arch::generic;
use crate::arch::tables::{FillBackend, FillFn};
use crate::path::Method;

const fn row(
    method: Method,
    isa: &'static str,
    available: fn() -> bool,
    fill: FillFn,
) -> FillBackend {
    FillBackend { method, isa, zero_only: matches!(method, Method::Clzero), available, fill }
}

/// Plain Rust under the name of SSE2: Miri runs no assembly.
#[cfg(miri)]
pub(in crate::arch) const BACKENDS: &[FillBackend] =
    &[generic::LIBC_FILL, row(Method::Sse2Nt, "sse2", cpuid::sse2, plain)];

#[cfg(not(miri))]
pub(in crate::arch) const BACKENDS: &[FillBackend] = &[
    generic::LIBC_FILL,
    row(Method::RepStosb, "rep", cpuid::rep, stosb),
    row(Method::RepStosq, "rep", cpuid::rep, stosq),
    row(Method::Movnti, "movnti", cpuid::sse2, movnti),
    row(Method::Sse2Nt, "sse2", cpuid::sse2, sse2),
    row(Method::Avx2Nt, "avx2", cpuid::avx2, avx2),
    row(Method::Avx512Nt, "avx512", cpuid::avx512f, avx512),
    row(Method::Movdir64b, "movdir64b", cpuid::movdir64b, movdir64b),
    row(Method::Clzero, "clzero", cpuid::clzero, clzero),
];

/// REP STOSB: by the byte; on CPUs with ERMS the width is the microcode's own choice. See
/// [`FillFn`].
unsafe fn stosb(to: *mut u8, value: u8, len_bytes: usize) {
    // SAFETY: the caller guarantees the memory; the ABI, that the direction flag is clear.
    unsafe {
        asm!("rep stosb", inout("rcx") len_bytes => _, inout("rdi") to => _, in("al") value,
             options(nostack, preserves_flags));
    }
}

/// REP STOSQ: eight bytes at a time, and the last few bytes by themselves. See [`FillFn`].
unsafe fn stosq(to: *mut u8, value: u8, len_bytes: usize) {
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

/// A whole fill: the edges normally, the lines between them as `lines` does, which gets where
/// they begin and how many they are, at least one.
///
/// # Safety
///
/// What [`FillFn`] says, the instructions being those of `lines`.
#[inline(always)]
unsafe fn around(to: *mut u8, value: u8, len_bytes: usize, lines: unsafe fn(*mut u8, u64, usize)) {
    let edges = Edges::of(to, len_bytes);
    // SAFETY: head, lines and tail are within the length by construction; the caller guarantees
    // the rest.
    unsafe {
        ptr::write_bytes(to, value, edges.head_bytes);
        ptr::write_bytes(to.add(edges.tail_at()), value, edges.tail_bytes);
        if edges.lines > 0 {
            let word = u64::from(value) * 0x0101_0101_0101_0101;
            lines(to.add(edges.head_bytes), word, edges.lines);
        }
    }
}

/// A way to fill: a loop of the instructions that store one line, and what is around all lines.
/// What goes before the loop and behind it, and its operands, are the way's own; `word` is the
/// value, eight times.
macro_rules! way {
    ($(#[$doc:meta])* $name:ident($word:ident)
     $before:literal loop [$($store:literal),+] $after:literal $($operands:tt)+) => {
        $(#[$doc])*
        ///
        /// See [`FillFn`].
        unsafe fn $name(to: *mut u8, value: u8, len_bytes: usize) {
            unsafe fn lines(to: *mut u8, $word: u64, lines: usize) {
                // SAFETY: the caller guarantees the instructions, and so many lines, at least one,
                // aligned; the loop ends after as many.
                unsafe {
                    asm!(
                        $before,
                        "2:",
                        $($store,)+
                        "add {to}, 64",
                        "dec {lines}",
                        "jnz 2b",
                        $after,
                        to = inout(reg) to => _,
                        lines = inout(reg) lines => _,
                        $($operands)+,
                        options(nostack),
                    );
                }
            }
            // SAFETY: the caller guarantees the instructions, the memory and the fence.
            unsafe { around(to, value, len_bytes, lines) }
        }
    };
}

way! {
    /// MOVNTI, 8 bytes: a line is eight stores, back to back.
    movnti(word) "" loop [
        "movnti [{to}], {word}",
        "movnti [{to} + 8], {word}",
        "movnti [{to} + 16], {word}",
        "movnti [{to} + 24], {word}",
        "movnti [{to} + 32], {word}",
        "movnti [{to} + 40], {word}",
        "movnti [{to} + 48], {word}",
        "movnti [{to} + 56], {word}"
    ] ""
    word = in(reg) word
}

way! {
    /// MOVNTDQ, 16 bytes: a line is four stores, back to back.
    sse2(word) "movq xmm0, {word}\npunpcklqdq xmm0, xmm0" loop [
        "movntdq [{to}], xmm0",
        "movntdq [{to} + 16], xmm0",
        "movntdq [{to} + 32], xmm0",
        "movntdq [{to} + 48], xmm0"
    ] ""
    word = in(reg) word, out("xmm0") _
}

way! {
    /// VMOVNTDQ, 32 bytes: a line is two stores, back to back.
    avx2(word) "vmovq xmm0, {word}\nvpbroadcastq ymm0, xmm0" loop [
        "vmovntdq [{to}], ymm0",
        "vmovntdq [{to} + 32], ymm0"
    ] "vzeroupper"
    word = in(reg) word,
    out("ymm0") _, out("ymm1") _, out("ymm2") _, out("ymm3") _, out("ymm4") _, out("ymm5") _,
    out("ymm6") _, out("ymm7") _, out("ymm8") _, out("ymm9") _, out("ymm10") _, out("ymm11") _,
    out("ymm12") _, out("ymm13") _, out("ymm14") _, out("ymm15") _
}

way! {
    /// VMOVNTDQ, 64 bytes: a line is one store.
    avx512(word) "vpbroadcastq zmm16, {word}" loop ["vmovntdq [{to}], zmm16"] ""
    word = in(reg) word, out("zmm16") _
}

/// A line that holds the value.
#[repr(align(64))]
struct Line([u64; 8]);

way! {
    /// MOVDIR64B from one line that holds the value.
    movdir64b(word) "" loop ["movdir64b {to}, [{from}]"] ""
    from = in(reg) Line([word; 8]).0.as_ptr()
}

/// CLZERO: a line of zeros in one instruction, non-temporally. AMD has it. See [`FillFn`].
unsafe fn clzero(to: *mut u8, value: u8, len_bytes: usize) {
    unsafe fn lines(to: *mut u8, _: u64, lines: usize) {
        // SAFETY: the caller guarantees the instruction, and so many lines, at least one, aligned;
        // the loop ends after as many.
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
    // SAFETY: the caller guarantees the instructions, the memory and the fence.
    unsafe { around(to, value, len_bytes, lines) }
}

/// Normal stores. See [`FillFn`].
#[cfg(miri)]
unsafe fn plain(to: *mut u8, value: u8, len_bytes: usize) {
    unsafe fn lines(to: *mut u8, word: u64, lines: usize) {
        for line in 0..lines {
            // SAFETY: the caller guarantees the lines, aligned.
            unsafe { to.cast::<Line>().add(line).write(Line([word; 8])) }
        }
    }
    // SAFETY: the caller guarantees the memory.
    unsafe { around(to, value, len_bytes, lines) }
}
