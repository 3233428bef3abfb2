//! Fills of one piece.

use core::ptr;

use crate::hint::Hint;
use crate::path::{Method, Path};
use crate::policy::MIN_STREAMED_BYTES;
use crate::{arch, fence, settings};

/// Fills all of `destination` with `value` and says which path it took.
///
/// When it returns, the bytes are ordered like any other stores: it fences where it streamed.
///
/// ```
/// use ntcopy::{Hint, fill};
///
/// let mut buffer = vec![1; 100_000];
/// fill(&mut buffer, 0, Hint::Nontemporal);
/// assert!(buffer.iter().all(|&byte| byte == 0));
/// ```
#[inline]
pub fn fill(destination: &mut [u8], value: u8, hint: Hint) -> Path {
    fill_part(destination, value, destination.len() as u64, hint)
}

/// [`fill`] of a piece of `total_bytes`: what a [`Stream`](crate::Stream) knows.
#[inline]
pub(crate) fn fill_part(destination: &mut [u8], value: u8, total_bytes: u64, hint: Hint) -> Path {
    let (to, len_bytes) = (destination.as_mut_ptr(), destination.len());
    // SAFETY: the slice has the length, and the fence follows before this returns.
    let path = unsafe { fill_part_unfenced(to, value, len_bytes, total_bytes, hint) };
    if path.is_nontemporal() {
        fence();
    }
    path
}

/// Fills `len_bytes` without the fence, and says which path it took.
///
/// # Safety
///
/// - `destination` is valid for writes of `len_bytes`.
/// - If the path [is non-temporal](Path::is_nontemporal), this thread executes
///   [`fence`](crate::fence()) before any other access to the destination, its own included,
///   and before anything that lets another thread know of it.
#[inline]
pub unsafe fn fill_unfenced(destination: *mut u8, value: u8, len_bytes: usize, hint: Hint) -> Path {
    // SAFETY: the caller guarantees the memory and the fence.
    unsafe { fill_part_unfenced(destination, value, len_bytes, len_bytes as u64, hint) }
}

/// [`fill_unfenced`] of a piece of `total_bytes`.
///
/// # Safety
///
/// The same as [`fill_unfenced`].
#[inline]
pub(crate) unsafe fn fill_part_unfenced(
    to: *mut u8,
    value: u8,
    len_bytes: usize,
    total_bytes: u64,
    hint: Hint,
) -> Path {
    if len_bytes < MIN_STREAMED_BYTES || settings::is_plain_fill(total_bytes, hint) {
        // SAFETY: the caller guarantees the memory.
        unsafe { ptr::write_bytes(to, value, len_bytes) }
        return Path::LIBC;
    }
    // SAFETY: the caller guarantees the memory and the fence.
    unsafe { fill_by(to, value, len_bytes, total_bytes, hint) }
}

/// # Safety
///
/// The same as [`fill_unfenced`].
unsafe fn fill_by(to: *mut u8, value: u8, len_bytes: usize, total_bytes: u64, hint: Hint) -> Path {
    let path = settings::policy().choose_fill(len_bytes, total_bytes, value, hint);
    // SAFETY: the caller guarantees the memory and the fence; `settings` lets no policy in whose
    // methods the CPU doesn't have or that couldn't store the value.
    unsafe {
        match arch::fill_backend(path.method) {
            Some(backend) if path.method != Method::Libc => {
                (backend.fill)(to, value, len_bytes);
            }
            _ => ptr::write_bytes(to, value, len_bytes),
        }
    }
    path
}
