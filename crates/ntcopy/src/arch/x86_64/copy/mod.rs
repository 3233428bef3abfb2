//! Every way to copy.

mod flush;
mod lines;
mod movdir64b;
mod movnti;
mod rep_movsb;
mod vector;

use self::lines::Lines;
use super::cpuid;
use crate::arch::generic;
use crate::arch::tables::CopyBackend;
use crate::path::{Method, Prefetch};

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

pub(in crate::arch) const BACKENDS: &[CopyBackend] = &[
    generic::LIBC_COPY,
    CopyBackend {
        method: Method::RepMovsb,
        isa: "rep",
        prefetches: &[Prefetch::None],
        available: cpuid::rep,
        copy: rep_movsb::copy,
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
