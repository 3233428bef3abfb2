//! Copies of one piece, and the fence.

use std::ffi::{c_int, c_uint, c_void};

use ntcopy::Path;

use crate::boundary::{Errno, answer, write_out};
use crate::path;
use crate::{boundary, hints};

/// Copies, fences where it streamed, and says which path it took.
///
/// # Safety
///
/// The memory is the caller's for the call: `len` bytes to read at `src` and to write at `dst`,
/// which may overlap. `path` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ntcopy_copy(
    dst: *mut c_void,
    src: *const c_void,
    len: usize,
    hints: c_uint,
    path: *mut u32,
) -> c_int {
    answer(|| {
        // SAFETY: the caller guarantees the memory; the fence follows.
        let taken = unsafe { copy(dst, src, len, hints)? };
        if taken.is_nontemporal() {
            ntcopy::fence();
        }
        // SAFETY: the caller guarantees that `path` is NULL or can be written.
        unsafe { write_out(path, path::encode(taken)) };
        Ok(0)
    })
}

/// Copies without the fence.
///
/// # Safety
///
/// See [`ntcopy_copy`]; the caller also calls [`ntcopy_fence`] before any other access to `dst`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ntcopy_copy_unfenced(
    dst: *mut c_void,
    src: *const c_void,
    len: usize,
    hints: c_uint,
    path: *mut u32,
) -> c_int {
    answer(|| {
        // SAFETY: the caller guarantees the memory and the fence.
        let taken = unsafe { copy(dst, src, len, hints)? };
        // SAFETY: the caller guarantees that `path` is NULL or can be written.
        unsafe { write_out(path, path::encode(taken)) };
        Ok(0)
    })
}

/// Orders the non-temporal stores of this thread before all that it does next.
#[unsafe(no_mangle)]
pub extern "C" fn ntcopy_fence() {
    ntcopy::fence();
}

/// # Safety
///
/// See [`ntcopy_copy_unfenced`].
#[inline]
unsafe fn copy(
    dst: *mut c_void,
    src: *const c_void,
    len_bytes: usize,
    hints: c_uint,
) -> Result<Path, Errno> {
    let hints = hints::decode(hints)?;
    boundary::check(dst.cast(), len_bytes)?;
    boundary::check(src.cast(), len_bytes)?;
    if len_bytes == 0 {
        // Rust's copies want pointers that aren't NULL even for nothing.
        return Ok(Path::LIBC);
    }
    // SAFETY: the caller guarantees the memory and the fence; the two may overlap.
    Ok(unsafe { ntcopy::copy_unfenced(dst.cast(), src.cast(), len_bytes, hints) })
}
