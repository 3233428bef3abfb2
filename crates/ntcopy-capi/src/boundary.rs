//! What crosses from Rust to C: an int, and never a panic.

use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// An errno, positive. Functions answer with its negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Errno(pub c_int);

impl Errno {
    /// An argument that can't be meant.
    pub const INVALID: Errno = Errno(libc::EINVAL);
    /// A length that no memory has.
    pub const OVERFLOW: Errno = Errno(libc::EOVERFLOW);
    /// No memory for the call's own needs.
    pub const NO_MEMORY: Errno = Errno(libc::ENOMEM);
    /// A descriptor that can't be one.
    pub const BAD_DESCRIPTOR: Errno = Errno(libc::EBADF);
    /// A mistake in this library, of which the panic's message on the standard error tells.
    pub const PANICKED: Errno = Errno(libc::ENOTRECOVERABLE);
}

/// The integers that functions answer with.
pub trait Answer: From<i8> {
    /// The answer for an error.
    fn from_errno(errno: Errno) -> Self;
}

impl Answer for c_int {
    fn from_errno(errno: Errno) -> c_int {
        -errno.0
    }
}

impl Answer for isize {
    fn from_errno(errno: Errno) -> isize {
        -(errno.0 as isize)
    }
}

/// Runs the body of a function, and turns its error, or its panic, into the answer.
///
/// A panic would otherwise end the process at the `extern "C"` frame. The bodies own nothing that
/// a panic could leave half-done and a later call would look at: settings are in a cell that is
/// set or not, and a stream counts after it has copied.
#[inline]
pub fn answer<T: Answer>(body: impl FnOnce() -> Result<T, Errno>) -> T {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(value)) => value,
        Ok(Err(errno)) => T::from_errno(errno),
        Err(_) => T::from_errno(Errno::PANICKED),
    }
}

/// Writes a result for a caller who wants it.
///
/// # Safety
///
/// `out` is NULL, or valid for a write of `T` and aligned for it.
#[inline]
pub unsafe fn write_out<T>(out: *mut T, value: T) {
    if !out.is_null() {
        // SAFETY: the caller guarantees that what isn't NULL can be written.
        unsafe { out.write(value) }
    }
}

/// Whether a range can be memory: not NULL unless it is empty, no longer than an object can be
/// (`PTRDIFF_MAX`), and not past the end of the address space. A length that was computed from a
/// negative number fails here.
#[inline]
pub(crate) fn check(start: *const u8, len_bytes: usize) -> Result<(), Errno> {
    if len_bytes == 0 {
        return Ok(());
    }
    if start.is_null() {
        return Err(Errno::INVALID);
    }
    if len_bytes > isize::MAX as usize || start.addr().checked_add(len_bytes).is_none() {
        return Err(Errno::OVERFLOW);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::ptr;

    use super::*;

    #[test]
    fn a_value_passes_and_an_error_becomes_negative() {
        assert_eq!(answer::<c_int>(|| Ok(7)), 7);
        assert_eq!(answer::<c_int>(|| Err(Errno::INVALID)), -libc::EINVAL);
        assert_eq!(answer::<isize>(|| Err(Errno::OVERFLOW)), -(libc::EOVERFLOW as isize));
    }

    #[test]
    fn a_panic_becomes_an_error() {
        assert_eq!(answer::<c_int>(|| panic!("on purpose")), -libc::ENOTRECOVERABLE);
        assert_eq!(answer::<isize>(|| panic!("on purpose")), -(libc::ENOTRECOVERABLE as isize));
    }

    #[test]
    fn what_cannot_be_memory_is_an_error() {
        let somewhere = ptr::without_provenance(0x1000);
        let near_the_end = ptr::without_provenance(usize::MAX - 0xfff);
        for (start, len_bytes, expected) in [
            (ptr::null(), 0, Ok(())),
            (ptr::null(), 1, Err(Errno::INVALID)),
            (somewhere, 1, Ok(())),
            (somewhere, isize::MAX as usize, Ok(())),
            (somewhere, isize::MAX as usize + 1, Err(Errno::OVERFLOW)),
            (somewhere, -1_isize as usize, Err(Errno::OVERFLOW)),
            (near_the_end, 0xfff, Ok(())),
            (near_the_end, 0x1001, Err(Errno::OVERFLOW)),
        ] {
            assert_eq!(check(start, len_bytes), expected, "{start:?}, {len_bytes:#x}");
        }
    }
}
