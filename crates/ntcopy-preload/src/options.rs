//! The socket option that the program and this library share: `SO_NTCOPY`.
//!
//! What the program sets stays, and what this library sets is not there for the program: it reads
//! what it would read without.

use core::ffi::{c_int, c_void};
use core::mem;

use libc::socklen_t;
use ntcopy::uapi;

use crate::setters::{Setter, note, setter};
use crate::{active, memory, original, sockets, sys};

/// Whether a call is about the shared option. Inactive, this library makes no calls of its own.
fn is_shared(level: c_int, name: c_int) -> bool {
    level == libc::SOL_SOCKET && name == uapi::SO_NTCOPY && active::is_active()
}

/// Stands in for setsockopt(2).
///
/// # Safety
///
/// - See setsockopt(2).
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn setsockopt(
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *const c_void,
    size: socklen_t,
) -> c_int {
    // SAFETY: the caller's promise.
    let result = unsafe { original::setsockopt(fd, level, name, value, size) };
    if result == 0 && is_shared(level, name) {
        note(fd, Setter::Program);
        sockets::forget(fd);
    }
    result
}

/// Stands in for getsockopt(2).
///
/// # Safety
///
/// - See getsockopt(2).
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn getsockopt(
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *mut c_void,
    size: *mut socklen_t,
) -> c_int {
    // SAFETY: the caller's promise.
    let result = unsafe { original::getsockopt(fd, level, name, value, size) };
    if result == 0 && is_shared(level, name) && setter(fd) == Some(Setter::Library) {
        // The default, which is all zeros.
        const { assert!(uapi::SOCK_NONE == 0) };
        const MOST: usize = mem::size_of::<c_int>();
        // SAFETY: any bytes are an integer.
        let size = unsafe { memory::read(size, || true) }.unwrap_or(0) as usize;
        // SAFETY: the kernel has just written there; not if another thread took it away.
        unsafe { sys::write_memory(&[0; MOST][..size.min(MOST)], value as usize) };
    }
    result
}
