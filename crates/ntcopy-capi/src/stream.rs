//! Many pieces that are one whole.

use std::alloc::{Layout, alloc};
use std::ffi::{c_int, c_uint, c_void};
use std::{mem, ptr};

use ntcopy::{Hints, Moved, Path, Stream, Unfenced};

use crate::boundary::{Errno, answer, write_out};
use crate::path;
use crate::{boundary, hints};

/// A stream, or what one that is finished has moved. C knows it by pointer only.
pub struct ntcopy_stream {
    stream: Option<Stream>,
    finished: Moved,
    /// Whether a fence is due. The header has the calls that make it come from the thread that
    /// copied.
    is_unfenced: bool,
}

impl ntcopy_stream {
    /// The next piece, by `store`, and the fence where it streamed.
    fn piece(
        &mut self,
        fenced: bool,
        store: impl FnOnce(&mut Unfenced<'_>) -> Path,
    ) -> Result<Path, Errno> {
        let mut unfenced = self.stream.as_mut().ok_or(Errno::INVALID)?.unfenced();
        let path = store(&mut unfenced);
        if fenced {
            drop(unfenced);
            self.is_unfenced &= !path.is_nontemporal();
        } else {
            // The fence is the next call's.
            mem::forget(unfenced);
            self.is_unfenced |= path.is_nontemporal();
        }
        Ok(path)
    }

    fn fence(&mut self) {
        if self.is_unfenced {
            ntcopy::fence();
            self.is_unfenced = false;
        }
    }
}

/// What became of many pieces.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ntcopy_moved {
    /// All bytes.
    pub bytes: u64,
    /// Those of them that took a non-temporal path.
    pub nontemporal_bytes: u64,
}

impl From<Moved> for ntcopy_moved {
    fn from(moved: Moved) -> ntcopy_moved {
        ntcopy_moved { bytes: moved.bytes, nontemporal_bytes: moved.nontemporal_bytes }
    }
}

/// A stream of which the total is known.
///
/// # Safety
///
/// `stream` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ntcopy_stream_known(
    total_bytes: u64,
    hints: c_uint,
    stream: *mut *mut ntcopy_stream,
) -> c_int {
    // SAFETY: the caller guarantees that `stream` is NULL or can be written.
    answer(|| unsafe { create(stream, hints, |hints| Stream::known(total_bytes, hints)) })
}

/// A stream that is as long as it has become.
///
/// # Safety
///
/// `stream` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ntcopy_stream_growing(
    hints: c_uint,
    stream: *mut *mut ntcopy_stream,
) -> c_int {
    // SAFETY: the caller guarantees that `stream` is NULL or can be written.
    answer(|| unsafe { create(stream, hints, Stream::growing) })
}

/// # Safety
///
/// `out` is NULL or can be written.
unsafe fn create(
    out: *mut *mut ntcopy_stream,
    hints: c_uint,
    make: impl FnOnce(Hints) -> Stream,
) -> Result<c_int, Errno> {
    if out.is_null() {
        return Err(Errno::INVALID);
    }
    // SAFETY: the caller guarantees that it can be written. On an error, it is NULL.
    unsafe { out.write(ptr::null_mut()) };
    let hints = hints::decode(hints)?;
    // A Box of its own would end the process where there is no memory.
    // SAFETY: the layout has a size.
    let stream: *mut ntcopy_stream = unsafe { alloc(Layout::new::<ntcopy_stream>()).cast() };
    if stream.is_null() {
        return Err(Errno::NO_MEMORY);
    }
    let made =
        ntcopy_stream { stream: Some(make(hints)), finished: Moved::default(), is_unfenced: false };
    // SAFETY: the memory was allocated for it; `out` as above.
    unsafe {
        stream.write(made);
        out.write(stream);
    }
    Ok(0)
}

/// Copies the next piece, and fences where it streamed.
///
/// # Safety
///
/// `stream` is NULL or a live stream that no other thread uses; the memory as for
/// [`ntcopy_copy`](crate::copy::ntcopy_copy).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ntcopy_stream_copy(
    stream: *mut ntcopy_stream,
    dst: *mut c_void,
    src: *const c_void,
    len: usize,
    path: *mut u32,
) -> c_int {
    // SAFETY: the caller guarantees the stream and the memory; the fence is asked for.
    answer(|| unsafe { copy(stream, dst, src, len, path, true) })
}

/// Copies the next piece, unfenced.
///
/// # Safety
///
/// See [`ntcopy_stream_copy`]; the caller also fences before any other access to `dst`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ntcopy_stream_copy_unfenced(
    stream: *mut ntcopy_stream,
    dst: *mut c_void,
    src: *const c_void,
    len: usize,
    path: *mut u32,
) -> c_int {
    // SAFETY: the caller guarantees the stream, the memory and the fence.
    answer(|| unsafe { copy(stream, dst, src, len, path, false) })
}

/// Fills the next piece, and fences where it streamed.
///
/// # Safety
///
/// `stream` is NULL or a live stream that no other thread uses; the memory as for
/// [`ntcopy_fill`](crate::fill::ntcopy_fill).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ntcopy_stream_fill(
    stream: *mut ntcopy_stream,
    dst: *mut c_void,
    value: c_int,
    len: usize,
    path: *mut u32,
) -> c_int {
    // SAFETY: the caller guarantees the stream and the memory; the fence is asked for.
    answer(|| unsafe { fill(stream, dst, value, len, path, true) })
}

/// Fills the next piece, unfenced.
///
/// # Safety
///
/// See [`ntcopy_stream_fill`]; the caller also fences before any other access to `dst`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ntcopy_stream_fill_unfenced(
    stream: *mut ntcopy_stream,
    dst: *mut c_void,
    value: c_int,
    len: usize,
    path: *mut u32,
) -> c_int {
    // SAFETY: the caller guarantees the stream, the memory and the fence.
    answer(|| unsafe { fill(stream, dst, value, len, path, false) })
}

/// # Safety
///
/// See [`ntcopy_stream_copy_unfenced`]; with `fenced`, the fence is made here.
unsafe fn copy(
    stream: *mut ntcopy_stream,
    dst: *mut c_void,
    src: *const c_void,
    len_bytes: usize,
    path: *mut u32,
    fenced: bool,
) -> Result<c_int, Errno> {
    // SAFETY: the caller guarantees that it is NULL or a live stream without another user.
    let stream = unsafe { running(stream)? };
    boundary::check(dst.cast(), len_bytes)?;
    boundary::check(src.cast(), len_bytes)?;
    let taken = stream.piece(fenced, |unfenced| match len_bytes {
        0 => Path::LIBC,
        // SAFETY: the caller guarantees the memory and, where `piece` doesn't make it, the fence.
        _ => unsafe { unfenced.copy(dst.cast(), src.cast(), len_bytes) },
    })?;
    // SAFETY: the caller guarantees that `path` is NULL or can be written.
    unsafe { write_out(path, path::encode(taken)) };
    Ok(0)
}

/// # Safety
///
/// See [`ntcopy_stream_fill_unfenced`]; with `fenced`, the fence is made here.
unsafe fn fill(
    stream: *mut ntcopy_stream,
    dst: *mut c_void,
    value: c_int,
    len_bytes: usize,
    path: *mut u32,
    fenced: bool,
) -> Result<c_int, Errno> {
    // SAFETY: the caller guarantees that it is NULL or a live stream without another user.
    let stream = unsafe { running(stream)? };
    boundary::check(dst.cast(), len_bytes)?;
    let taken = stream.piece(fenced, |unfenced| match len_bytes {
        0 => Path::LIBC,
        // SAFETY: the caller guarantees the memory and, where `piece` doesn't make it, the fence.
        _ => unsafe { unfenced.fill(dst.cast(), value as u8, len_bytes) },
    })?;
    // SAFETY: the caller guarantees that `path` is NULL or can be written.
    unsafe { write_out(path, path::encode(taken)) };
    Ok(0)
}

/// The stream behind a pointer, if it takes more.
///
/// # Safety
///
/// `stream` is NULL, or a live stream without another user while the answer is used.
unsafe fn running<'a>(stream: *mut ntcopy_stream) -> Result<&'a mut ntcopy_stream, Errno> {
    // SAFETY: the caller guarantees it.
    let stream = unsafe { stream.as_mut() };
    stream.filter(|stream| stream.stream.is_some()).ok_or(Errno::INVALID)
}

/// Fences what is unfenced; the stream goes on.
///
/// # Safety
///
/// `stream` is NULL or a live stream that no other thread uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ntcopy_stream_fence(stream: *mut ntcopy_stream) -> c_int {
    answer(|| {
        // SAFETY: the caller guarantees that it is NULL or a live stream without another user.
        unsafe { running(stream)? }.fence();
        Ok(0)
    })
}

/// Says what went by so far.
///
/// # Safety
///
/// `stream` is NULL or a live stream that no other thread uses; `moved` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ntcopy_stream_moved(
    stream: *const ntcopy_stream,
    moved: *mut ntcopy_moved,
) -> c_int {
    answer(|| {
        // SAFETY: the caller guarantees that it is NULL or a live stream that no thread changes.
        let stream = unsafe { stream.as_ref() }.ok_or(Errno::INVALID)?;
        let so_far = stream.stream.as_ref().map_or(stream.finished, Stream::moved);
        // SAFETY: the caller guarantees that `moved` is NULL or can be written.
        unsafe { write_out(moved, so_far.into()) };
        Ok(0)
    })
}

/// Ends a stream: fences what is unfenced, and says what went by.
///
/// # Safety
///
/// `stream` is NULL or a live stream that no other thread uses; `moved` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ntcopy_stream_finish(
    stream: *mut ntcopy_stream,
    moved: *mut ntcopy_moved,
) -> c_int {
    answer(|| {
        // SAFETY: the caller guarantees that it is NULL or a live stream without another user.
        let stream = unsafe { stream.as_mut() }.ok_or(Errno::INVALID)?;
        stream.fence();
        if let Some(running) = stream.stream.take() {
            stream.finished = running.finish();
        }
        // SAFETY: the caller guarantees that `moved` is NULL or can be written.
        unsafe { write_out(moved, stream.finished.into()) };
        Ok(0)
    })
}

/// Fences what is unfenced, and frees the stream. NULL is nothing to free.
///
/// # Safety
///
/// `stream` is NULL or a live stream, and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ntcopy_stream_destroy(stream: *mut ntcopy_stream) {
    answer::<c_int>(|| {
        if !stream.is_null() {
            // SAFETY: `create` allocated it as a Box does, and the caller guarantees that it has
            // not been freed.
            unsafe { Box::from_raw(stream) }.fence();
        }
        Ok(0)
    });
}
