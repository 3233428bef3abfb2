//! Every way to fill, a file each.

mod avx2_nt;
mod avx512_nt;
mod clzero;
mod lines;
mod movdir64b;
mod movnti;
mod rep_stosb;
mod rep_stosq;
mod sse2_nt;

use super::cpuid;
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

pub(in crate::arch) const BACKENDS: &[FillBackend] = &[
    generic::LIBC_FILL,
    row(Method::RepStosb, "rep", cpuid::rep, rep_stosb::fill),
    row(Method::RepStosq, "rep", cpuid::rep, rep_stosq::fill),
    row(Method::Movnti, "movnti", cpuid::sse2, movnti::fill),
    row(Method::Sse2Nt, "sse2", cpuid::sse2, sse2_nt::fill),
    row(Method::Avx2Nt, "avx2", cpuid::avx2, avx2_nt::fill),
    row(Method::Avx512Nt, "avx512", cpuid::avx512f, avx512_nt::fill),
    row(Method::Movdir64b, "movdir64b", cpuid::movdir64b, movdir64b::fill),
    row(Method::Clzero, "clzero", cpuid::clzero, clzero::fill),
];
