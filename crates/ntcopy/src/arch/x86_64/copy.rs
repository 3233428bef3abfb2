//! Every way to copy.

mod flush;
mod lines;
mod movdir64b;
mod movnti;
#[cfg(miri)]
mod plain;
mod vector;

use core::arch::asm;

use self::lines::Lines;
use super::cpuid;
use crate::arch::generic;
use crate::arch::tables::CopyBackend;
use crate::path::{Method, Path, Prefetch};

/// A row around the loop that all share.
const fn row<L: Lines>(method: Method, isa: &'static str, available: fn() -> bool) -> CopyBackend {
    CopyBackend {
        method,
        isa,
        prefetches: &Prefetch::ALL,
        available,
        copy: lines::copy::<L>,
        copy_pieces: Some(lines::copy_pieces::<L>),
    }
}

#[cfg(miri)]
pub(in crate::arch) const BACKENDS: &[CopyBackend] = &[
    generic::LIBC_COPY,
    row::<plain::Plain>(Method::Sse2, "sse2", cpuid::sse2),
    row::<plain::Plain>(Method::Sse2Nt, "sse2", cpuid::sse2),
];

#[cfg(not(miri))]
pub(in crate::arch) const BACKENDS: &[CopyBackend] = &[
    generic::LIBC_COPY,
    CopyBackend {
        method: Method::RepMovsb,
        isa: "rep",
        prefetches: &[Prefetch::None],
        available: cpuid::rep,
        copy: rep_movsb,
        copy_pieces: None,
    },
    row::<vector::Sse2>(Method::Sse2, "sse2", cpuid::sse2),
    row::<vector::Avx2>(Method::Avx2, "avx2", cpuid::avx2),
    row::<vector::Avx512>(Method::Avx512, "avx512", cpuid::avx512f),
    row::<movnti::Movnti>(Method::Movnti, "movnti", cpuid::sse2),
    row::<vector::Sse2Nt>(Method::Sse2Nt, "sse2", cpuid::sse2),
    row::<vector::Avx2Nt>(Method::Avx2Nt, "avx2", cpuid::avx2),
    row::<vector::Avx512Nt>(Method::Avx512Nt, "avx512", cpuid::avx512f),
    row::<movdir64b::Movdir64b>(Method::Movdir64b, "movdir64b", cpuid::movdir64b),
];

/// REP MOVSB: temporal, and on CPUs with ERMS the microcode's own choice of width. See
/// [`CopyFn`](crate::arch::tables::CopyFn).
unsafe fn rep_movsb(to: *mut u8, from: *const u8, len_bytes: usize, _: Path) {
    // SAFETY: the caller guarantees the memory; the ABI, that the direction flag is clear.
    unsafe {
        asm!("rep movsb", inout("rcx") len_bytes => _, inout("rdi") to => _,
             inout("rsi") from => _, options(nostack, preserves_flags));
    }
}
