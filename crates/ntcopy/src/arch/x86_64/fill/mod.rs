//! Every way to fill.

mod nontemporal;
mod rep;

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
    row(Method::RepStosb, "rep", cpuid::rep, rep::stosb),
    row(Method::RepStosq, "rep", cpuid::rep, rep::stosq),
    row(Method::Movnti, "movnti", cpuid::sse2, nontemporal::movnti),
    row(Method::Sse2Nt, "sse2", cpuid::sse2, nontemporal::sse2),
    row(Method::Avx2Nt, "avx2", cpuid::avx2, nontemporal::avx2),
    row(Method::Avx512Nt, "avx512", cpuid::avx512f, nontemporal::avx512),
    row(Method::Movdir64b, "movdir64b", cpuid::movdir64b, nontemporal::movdir64b),
    row(Method::Clzero, "clzero", cpuid::clzero, nontemporal::clzero),
];
