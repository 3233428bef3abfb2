//! What is particular to an architecture, behind one table of ways to copy and one of ways to fill.
//!
//! [`COPY_BACKENDS`] and [`FILL_BACKENDS`] are all that the rest of the library knows of an
//! architecture, so that tests and benchmarks go through every way that there is. Another
//! architecture enters here: its own folder, its own two tables. Without one, both tables hold the
//! C library alone.

mod facts;
mod generic;
mod tables;
#[cfg(target_arch = "x86_64")]
pub mod x86_64;

pub use self::facts::{Facts, Vendor};
pub(crate) use self::tables::Piece;
pub use self::tables::{CopyBackend, FillBackend};
use crate::path::Method;
#[cfg(not(target_arch = "x86_64"))]
use generic as here;
#[cfg(target_arch = "x86_64")]
use x86_64 as here;

/// Bytes of a cache line, on every CPU that the library has non-temporal stores for.
pub const LINE_BYTES: usize = 64;

/// Every way to copy that the architecture knows, whether or not this CPU has it.
pub static COPY_BACKENDS: &[CopyBackend] = here::COPY_BACKENDS;

/// Every way to fill that the architecture knows, whether or not this CPU has it.
pub static FILL_BACKENDS: &[FillBackend] = here::FILL_BACKENDS;

/// The way to copy that is a method, if the architecture knows it.
pub fn copy_backend(method: Method) -> Option<&'static CopyBackend> {
    COPY_BACKENDS.iter().find(|backend| backend.method == method)
}

/// The way to fill that is a method, if the architecture knows it.
pub fn fill_backend(method: Method) -> Option<&'static FillBackend> {
    FILL_BACKENDS.iter().find(|backend| backend.method == method)
}
