//! Copies of one piece.

use core::ptr;

use crate::hint::Hints;
use crate::path::{Method, Path};
use crate::policy::MIN_STREAMED_BYTES;
use crate::{arch, fence, settings};

/// Copies all of `source` into `destination` and says which path it took.
///
/// When it returns, the copied bytes are ordered like any other stores: it fences where it
/// streamed.
///
/// # Panics
///
/// If the slices differ in length, as [`slice::copy_from_slice`] does.
///
/// ```
/// use ntcopy::{Hints, copy};
///
/// let message = [7; 4096];
/// let mut kept = vec![0; 4096];
/// let path = copy(&mut kept, &message, Hints::NONTEMPORAL_DESTINATION);
/// assert_eq!(kept, message);
/// println!("copied by {path}");
/// ```
#[inline]
pub fn copy(destination: &mut [u8], source: &[u8], hints: Hints) -> Path {
    copy_part(destination, source, source.len() as u64, hints)
}

/// [`copy`] of a piece of `total_bytes`: what a [`Stream`](crate::Stream) knows.
#[inline]
pub(crate) fn copy_part(
    destination: &mut [u8],
    source: &[u8],
    total_bytes: u64,
    hints: Hints,
) -> Path {
    if destination.len() != source.len() {
        lengths_differ(destination.len(), source.len());
    }
    let (to, from) = (destination.as_mut_ptr(), source.as_ptr());
    // SAFETY: both slices have the length, they don't overlap since one is borrowed for writing,
    // and the fence follows before this returns.
    let path = unsafe { copy_apart(to, from, source.len(), total_bytes, hints) };
    if path.is_nontemporal() {
        fence();
    }
    path
}

#[cold]
#[track_caller]
fn lengths_differ(to: usize, from: usize) -> ! {
    panic!("a copy of {from} bytes into {to}: the slices must have one length")
}

/// Copies `len_bytes` without the fence, and says which path it took. Where the two sides overlap,
/// it is the C library's `memmove`.
///
/// # Safety
///
/// - `destination` is valid for writes and `source` for reads of `len_bytes`. They may overlap.
/// - If the path [is non-temporal](Path::is_nontemporal), this thread executes
///   [`fence`](crate::fence()) before any other access to the destination, its own included,
///   and before anything that lets another thread know of it. (Rust's memory model knows no
///   stores that are ordered with nothing; until the fence, no thread may use the bytes.)
#[inline]
pub unsafe fn copy_unfenced(
    destination: *mut u8,
    source: *const u8,
    len_bytes: usize,
    hints: Hints,
) -> Path {
    // SAFETY: the caller guarantees the memory and the fence.
    unsafe { copy_part_unfenced(destination, source, len_bytes, len_bytes as u64, hints) }
}

/// [`copy_unfenced`] of a piece of `total_bytes`.
///
/// # Safety
///
/// The same as [`copy_unfenced`].
#[inline]
pub(crate) unsafe fn copy_part_unfenced(
    destination: *mut u8,
    source: *const u8,
    len_bytes: usize,
    total_bytes: u64,
    hints: Hints,
) -> Path {
    let (to, from) = (destination as usize, source as usize);
    if to.abs_diff(from) < len_bytes {
        // SAFETY: the caller guarantees the memory; this may overlap.
        unsafe { ptr::copy(source, destination, len_bytes) }
        return Path::LIBC;
    }
    // SAFETY: the caller guarantees the memory and the fence; the two sides are at least
    // `len_bytes` apart.
    unsafe { copy_apart(destination, source, len_bytes, total_bytes, hints) }
}

/// # Safety
///
/// The same as [`copy_unfenced`], and the sides don't overlap.
#[inline]
unsafe fn copy_apart(
    to: *mut u8,
    from: *const u8,
    len_bytes: usize,
    total_bytes: u64,
    hints: Hints,
) -> Path {
    if len_bytes < MIN_STREAMED_BYTES || settings::is_plain_copy(total_bytes, hints) {
        // SAFETY: the caller guarantees the memory, and that the sides don't overlap.
        unsafe { ptr::copy_nonoverlapping(from, to, len_bytes) }
        return Path::LIBC;
    }
    // SAFETY: the caller guarantees the memory and the fence.
    unsafe { copy_by(to, from, len_bytes, total_bytes, hints) }
}

/// # Safety
///
/// The same as [`copy_unfenced`], and the sides don't overlap.
unsafe fn copy_by(
    to: *mut u8,
    from: *const u8,
    len_bytes: usize,
    total_bytes: u64,
    hints: Hints,
) -> Path {
    let path = settings::policy().choose_copy(len_bytes, total_bytes, hints);
    // SAFETY: the caller guarantees the memory and the fence; `settings` lets no policy in whose
    // methods the CPU doesn't have.
    unsafe {
        match arch::copy_backend(path.method) {
            Some(backend) if path.method != Method::Libc => {
                (backend.copy)(to, from, len_bytes, path);
            }
            _ => ptr::copy_nonoverlapping(from, to, len_bytes),
        }
    }
    path
}
