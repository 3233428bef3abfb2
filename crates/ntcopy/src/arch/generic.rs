//! The C library behind the seam: all that an architecture without a folder of its own has.

use super::{CopyBackend, FillBackend};
use crate::path::{Method, Path, Prefetch};

/// The row of the C library.
pub(super) const LIBC_COPY: CopyBackend = CopyBackend {
    method: Method::Libc,
    isa: "libc",
    prefetches: &[Prefetch::None],
    available: || true,
    copy,
    copy_pieces: None,
};

/// The row of the C library.
pub(super) const LIBC_FILL: FillBackend =
    FillBackend { method: Method::Libc, isa: "libc", zero_only: false, available: || true, fill };

#[cfg(not(target_arch = "x86_64"))]
pub(super) const COPY_BACKENDS: &[CopyBackend] = &[LIBC_COPY];
#[cfg(not(target_arch = "x86_64"))]
pub(super) const FILL_BACKENDS: &[FillBackend] = &[LIBC_FILL];

/// What is known of a CPU of which nothing is known.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn facts() -> super::Facts {
    super::Facts::UNKNOWN
}

/// `memmove`: the two sides may overlap.
///
/// # Safety
///
/// `to` is valid for writes and `from` for reads of `len_bytes`.
pub(crate) unsafe fn copy(to: *mut u8, from: *const u8, len_bytes: usize, _: Path) {
    // SAFETY: the caller guarantees the memory; bytes have no alignment.
    unsafe { core::ptr::copy(from, to, len_bytes) }
}

/// `memset`.
///
/// # Safety
///
/// `to` is valid for writes of `len_bytes`.
pub(crate) unsafe fn fill(to: *mut u8, value: u8, len_bytes: usize) {
    // SAFETY: the caller guarantees the memory; bytes have no alignment.
    unsafe { core::ptr::write_bytes(to, value, len_bytes) }
}
