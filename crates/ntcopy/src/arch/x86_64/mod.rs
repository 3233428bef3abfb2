//! x86-64.

mod copy;
pub(crate) mod cpuid;
mod edges;
mod fill;
#[cfg(feature = "std")]
pub mod page_nt;

pub(super) use copy::BACKENDS as COPY_BACKENDS;
pub(crate) use cpuid::facts;
pub(super) use fill::BACKENDS as FILL_BACKENDS;
