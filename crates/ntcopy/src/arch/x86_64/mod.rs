//! x86-64.

mod copy;
mod detect;
mod edges;
mod fill;
#[cfg(feature = "std")]
pub mod page_nt;

pub(super) use copy::BACKENDS as COPY_BACKENDS;
pub(crate) use detect::facts;
pub(super) use fill::BACKENDS as FILL_BACKENDS;
