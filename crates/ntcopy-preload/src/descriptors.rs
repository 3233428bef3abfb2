//! The calls that give descriptors a meaning, or take it away.
//!
//! Both ends are watched: what closes, so that nothing is left of the last meaning, and what makes
//! sockets, for those numbers that were closed where this library could not see it.

use core::ffi::{c_int, c_uint};

use libc::{sockaddr, socklen_t};

use crate::{memory, original, sockets};

/// A new meaning, if there is one.
#[inline(always)]
fn new(fd: c_int) -> c_int {
    if fd >= 0 {
        sockets::forget(fd);
    }
    fd
}

/// Stands in for socket(2).
///
/// # Safety
///
/// - See socket(2).
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int {
    // SAFETY: the caller's promise.
    new(unsafe { original::socket(domain, kind, protocol) })
}

/// Stands in for socketpair(2).
///
/// # Safety
///
/// - See socketpair(2).
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn socketpair(
    domain: c_int,
    kind: c_int,
    protocol: c_int,
    pair: *mut c_int,
) -> c_int {
    // SAFETY: the caller's promise.
    let result = unsafe { original::socketpair(domain, kind, protocol, pair) };
    if result == 0 {
        // SAFETY: any bytes are integers.
        match unsafe { memory::read(pair.cast::<[c_int; 2]>(), || true) } {
            Some(pair) => pair.into_iter().for_each(sockets::forget),
            // Another thread has taken them away.
            None => sockets::forget_all(0, c_uint::MAX),
        }
    }
    result
}

/// Stands in for accept(2).
///
/// # Safety
///
/// - See accept(2).
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn accept(
    fd: c_int,
    from: *mut sockaddr,
    from_bytes: *mut socklen_t,
) -> c_int {
    // SAFETY: the caller's promise.
    new(unsafe { original::accept(fd, from, from_bytes) })
}

/// Stands in for accept4(2).
///
/// # Safety
///
/// - See accept4(2).
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn accept4(
    fd: c_int,
    from: *mut sockaddr,
    from_bytes: *mut socklen_t,
    flags: c_int,
) -> c_int {
    // SAFETY: the caller's promise.
    new(unsafe { original::accept4(fd, from, from_bytes, flags) })
}

/// Stands in for close(2).
///
/// # Safety
///
/// - See close(2).
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn close(fd: c_int) -> c_int {
    // SAFETY: the caller's promise.
    let result = unsafe { original::close(fd) };
    // After it: another thread may still ask about the old one until then. The number is free
    // also where it fails, but for EBADF.
    sockets::forget(fd);
    result
}

/// The other name that the C library has for it.
///
/// # Safety
///
/// - See close(2).
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn __close(fd: c_int) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { close(fd) }
}

/// Stands in for dup2(2).
///
/// # Safety
///
/// - See dup2(2).
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn dup2(from: c_int, to: c_int) -> c_int {
    // SAFETY: the caller's promise.
    new(unsafe { original::dup2(from, to) })
}

/// The other name that the C library has for it.
///
/// # Safety
///
/// - See dup2(2).
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn __dup2(from: c_int, to: c_int) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { dup2(from, to) }
}

/// Stands in for dup3(2).
///
/// # Safety
///
/// - See dup3(2).
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn dup3(from: c_int, to: c_int, flags: c_int) -> c_int {
    // SAFETY: the caller's promise.
    new(unsafe { original::dup3(from, to, flags) })
}

/// Stands in for close_range(2).
///
/// # Safety
///
/// - See close_range(2).
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int {
    // SAFETY: the caller's promise.
    let result = unsafe { original::close_range(first, last, flags) };
    sockets::forget_all(first, last);
    result
}

/// Stands in for closefrom(3).
///
/// # Safety
///
/// - See closefrom(3).
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn closefrom(first: c_int) {
    // SAFETY: the caller's promise.
    unsafe { original::closefrom(first) };
    sockets::forget_all(first.max(0) as c_uint, c_uint::MAX);
}
