//! Every way to copy, a file each.

mod avx2;
mod avx2_nt;
mod avx512_nt;
mod lines;
mod movdir64b;
mod movnti;
mod rep_movsb;
mod sse2;
mod sse2_nt;

use super::detect;
use crate::arch::generic;
use crate::arch::tables::CopyBackend;
use crate::path::{Method, Prefetch};

const AHEAD: &[Prefetch] = &[Prefetch::None, Prefetch::T0, Prefetch::Nta];

pub(in crate::arch) const BACKENDS: &[CopyBackend] = &[
    generic::LIBC_COPY,
    CopyBackend {
        method: Method::RepMovsb,
        isa: "rep",
        prefetches: &[Prefetch::None],
        interleaves: false,
        available: detect::rep,
        copy: rep_movsb::copy,
    },
    CopyBackend {
        method: Method::Sse2,
        isa: "sse2",
        prefetches: &[Prefetch::Nta],
        interleaves: false,
        available: detect::sse2,
        copy: sse2::copy,
    },
    CopyBackend {
        method: Method::Avx2,
        isa: "avx2",
        prefetches: &[Prefetch::Nta],
        interleaves: false,
        available: detect::avx2,
        copy: avx2::copy,
    },
    CopyBackend {
        method: Method::Movnti,
        isa: "movnti",
        prefetches: AHEAD,
        interleaves: true,
        available: detect::sse2,
        copy: movnti::copy,
    },
    CopyBackend {
        method: Method::Sse2Nt,
        isa: "sse2",
        prefetches: AHEAD,
        interleaves: true,
        available: detect::sse2,
        copy: sse2_nt::copy,
    },
    CopyBackend {
        method: Method::Avx2Nt,
        isa: "avx2",
        prefetches: AHEAD,
        interleaves: true,
        available: detect::avx2,
        copy: avx2_nt::copy,
    },
    CopyBackend {
        method: Method::Avx512Nt,
        isa: "avx512",
        prefetches: AHEAD,
        interleaves: true,
        available: detect::avx512f,
        copy: avx512_nt::copy,
    },
    CopyBackend {
        method: Method::Movdir64b,
        isa: "movdir64b",
        prefetches: AHEAD,
        interleaves: true,
        available: detect::movdir64b,
        copy: movdir64b::copy,
    },
];
