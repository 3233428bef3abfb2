//! Fills of one piece.

use std::ffi::{c_int, c_uint, c_void};

use ntcopy::Path;

use crate::boundary::{Errno, answer, write_out};
use crate::path;
use crate::{boundary, hints};

/// Fills, fences where it streamed, and says which path it took.
///
/// # Safety
///
/// The memory is the caller's for the call: `len` bytes to write at `dst`. `path` is NULL or can
/// be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ntcopy_fill(
    dst: *mut c_void,
    value: c_int,
    len: usize,
    hints: c_uint,
    path: *mut u32,
) -> c_int {
    answer(|| {
        // SAFETY: the caller guarantees the memory; the fence follows.
        let taken = unsafe { fill(dst, value, len, hints)? };
        if taken.is_nontemporal() {
            ntcopy::fence();
        }
        // SAFETY: the caller guarantees that `path` is NULL or can be written.
        unsafe { write_out(path, path::encode(taken)) };
        Ok(0)
    })
}

/// Fills without the fence.
///
/// # Safety
///
/// See [`ntcopy_fill`]; the caller also calls [`ntcopy_fence`](crate::copy::ntcopy_fence) before
/// any other access to `dst`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ntcopy_fill_unfenced(
    dst: *mut c_void,
    value: c_int,
    len: usize,
    hints: c_uint,
    path: *mut u32,
) -> c_int {
    answer(|| {
        // SAFETY: the caller guarantees the memory and the fence.
        let taken = unsafe { fill(dst, value, len, hints)? };
        // SAFETY: the caller guarantees that `path` is NULL or can be written.
        unsafe { write_out(path, path::encode(taken)) };
        Ok(0)
    })
}

/// # Safety
///
/// See [`ntcopy_fill_unfenced`].
#[inline]
unsafe fn fill(
    dst: *mut c_void,
    value: c_int,
    len_bytes: usize,
    hints: c_uint,
) -> Result<Path, Errno> {
    let hint = hints::decode(hints)?.destination;
    boundary::check(dst.cast(), len_bytes)?;
    if len_bytes == 0 {
        return Ok(Path::LIBC);
    }
    // SAFETY: the caller guarantees the memory and the fence. The value's low byte counts, as
    // with memset.
    Ok(unsafe { ntcopy::fill_unfenced(dst.cast(), value as u8, len_bytes, hint) })
}
