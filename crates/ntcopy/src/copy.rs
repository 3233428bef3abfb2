//! Copies of one piece.

use core::mem::MaybeUninit;
use core::{ptr, slice};

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

/// [`copy`] into memory that holds nothing yet; gives it as what it holds then.
///
/// # Panics
///
/// If the slices differ in length.
///
/// ```
/// use ntcopy::{Hints, copy_uninit};
///
/// let message = [7; 4096];
/// let mut kept = Vec::with_capacity(message.len());
/// let room = &mut kept.spare_capacity_mut()[..message.len()];
/// let (copied, path) = copy_uninit(room, &message, Hints::NONTEMPORAL_DESTINATION);
/// println!("copied {} bytes by {path}", copied.len());
/// // SAFETY: all of it was copied to.
/// unsafe { kept.set_len(message.len()) }
/// assert_eq!(kept, message);
/// ```
#[inline]
pub fn copy_uninit<'a>(
    destination: &'a mut [MaybeUninit<u8>],
    source: &[u8],
    hints: Hints,
) -> (&'a mut [u8], Path) {
    copy_part_uninit(destination, source, source.len() as u64, hints)
}

/// [`copy`] of a piece of `total_bytes`: what a [`Stream`](crate::Stream) knows.
#[inline]
pub(crate) fn copy_part(
    destination: &mut [u8],
    source: &[u8],
    total_bytes: u64,
    hints: Hints,
) -> Path {
    // SAFETY: bytes may be written to where there are bytes already; `copy_part_uninit` writes
    // whole bytes only.
    let destination =
        unsafe { slice::from_raw_parts_mut(destination.as_mut_ptr().cast(), destination.len()) };
    copy_part_uninit(destination, source, total_bytes, hints).1
}

/// [`copy_uninit`] of a piece of `total_bytes`.
#[inline]
pub(crate) fn copy_part_uninit<'a>(
    destination: &'a mut [MaybeUninit<u8>],
    source: &[u8],
    total_bytes: u64,
    hints: Hints,
) -> (&'a mut [u8], Path) {
    if destination.len() != source.len() {
        lengths_differ(destination.len(), source.len());
    }
    let (to, from) = (destination.as_mut_ptr().cast::<u8>(), source.as_ptr());
    // SAFETY: both slices have the length, they don't overlap since one is borrowed for writing,
    // and the fence follows before this returns.
    let path = unsafe { copy_apart(to, from, source.len(), total_bytes, hints) };
    if path.is_nontemporal() {
        fence();
    }
    // SAFETY: every byte of the destination was written; it stays borrowed.
    (unsafe { slice::from_raw_parts_mut(to, source.len()) }, path)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::Stream;

    #[test]
    fn memory_that_holds_nothing_is_copied_to_whole() {
        for hints in [Hints::AUTO, Hints::NONTEMPORAL] {
            for len_bytes in [0, 1, 255, 256, 9_000] {
                let source: Vec<u8> = (0..len_bytes).map(|at| (at * 7 + at / 64) as u8).collect();
                let mut room: Vec<u8> = Vec::with_capacity(2 * len_bytes + 3);
                let (first, second) = room.spare_capacity_mut()[3..].split_at_mut(len_bytes);
                let (copied, path) = copy_uninit(first, &source, hints);
                assert!(copied == source, "{path} {len_bytes}");
                let mut stream = Stream::growing(hints);
                let (copied, path) = stream.copy_uninit(&mut second[..len_bytes], &source);
                assert!(copied == source, "{path} {len_bytes}");
                assert_eq!(stream.moved().bytes, len_bytes as u64);
            }
        }
    }

    #[test]
    #[should_panic(expected = "a copy of 3 bytes into 4")]
    fn lengths_that_differ_are_refused() {
        copy_uninit(&mut [MaybeUninit::uninit(); 4], &[1; 3], Hints::AUTO);
    }
}
