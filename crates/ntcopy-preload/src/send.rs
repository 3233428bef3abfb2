//! The calls that send.
//!
//! Each asks first how large the send is, since that costs nothing: the hint is for large ones,
//! and most are not. Then what the descriptor is. One that gathers is as large as its largest piece,
//! which is dear to know where the pieces are not on the stack: there the descriptor comes first.
//! Only then is the call changed: `MSG_NTCOPY` is added to its flags, and `write` and `writev`,
//! which have none, become the `send` and `sendmsg` that are the same on a socket.

use core::ffi::{c_int, c_uint, c_void};
use core::mem;

use libc::{iovec, mmsghdr, msghdr, sockaddr, socklen_t, ssize_t};
use ntcopy::uapi;

use crate::table::Kind;
use crate::{active, message, original, sockets, sys};

/// The kernel's `MAX_RW_COUNT`: what it takes of one call at most. What is larger is left to the
/// original, since `write` and `send` shorten and refuse it in different order.
const MOST_BYTES: usize = c_int::MAX as usize & !4095;

const HINT: c_int = uapi::MSG_NTCOPY as c_int;
/// Sends that are not copied, or not of what the buffer says: the hint has no meaning there.
const OUT_OF_LINE: c_int = libc::MSG_ZEROCOPY | libc::MSG_OOB;

/// Whether a large send on this descriptor gets the hint.
#[inline]
fn is_hinted(fd: c_int, flags: c_int) -> bool {
    flags & (OUT_OF_LINE | HINT) == 0 && sockets::kind(fd) != Kind::Other
}

/// The flags of a send that stands for a `write` on this descriptor; `None` if it gets no hint.
#[inline]
fn flags_of_write(fd: c_int) -> Option<c_int> {
    match sockets::kind(fd) {
        Kind::Other => None,
        Kind::Hinted => Some(HINT),
        Kind::HintedRecords => Some(HINT | libc::MSG_EOR),
    }
}

/// The call with the hint, and without it where it failed for the hint's sake alone.
#[inline(always)]
fn with_hint<R: Copy + PartialOrd + From<i8>>(
    fd: c_int,
    hinted: impl FnOnce() -> R,
    plain: impl FnOnce() -> R,
) -> R {
    let errno_before = sys::errno();
    let result = hinted();
    if result >= R::from(0) || !was_mistaken(fd) {
        return result;
    }
    sys::set_errno(errno_before);
    plain()
}

/// A call with flags: with the hint, if its descriptor gets one.
#[inline(always)]
fn hinted<R: Copy + PartialOrd + From<i8>>(
    fd: c_int,
    flags: c_int,
    call: impl Fn(c_int) -> R + Copy,
) -> R {
    if !is_hinted(fd, flags) {
        return call(flags);
    }
    with_hint(fd, move || call(flags | HINT), move || call(flags))
}

/// Whether a send failed because the descriptor has become something else than a socket without
/// this library having seen it, or one that refuses the flag: TLS in the kernel does, on a socket
/// that another process has opted out again. Nothing was sent then.
#[cold]
fn was_mistaken(fd: c_int) -> bool {
    match sys::errno() {
        libc::ENOTSOCK => sockets::forget(fd),
        libc::EOPNOTSUPP => sockets::leave(fd),
        _ => return false,
    }
    true
}

/// Stands in for write(2).
///
/// # Safety
///
/// - See write(2).
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn write(fd: c_int, bytes: *const c_void, size: usize) -> ssize_t {
    if size < active::min_bytes() {
        // SAFETY: the caller's promise.
        return unsafe { original::write(fd, bytes, size) };
    }
    // SAFETY: the caller's promise.
    unsafe { large_write(fd, bytes, size) }
}

/// The other name that the C library has for it, and old programs use.
///
/// # Safety
///
/// - See write(2).
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn __write(fd: c_int, bytes: *const c_void, size: usize) -> ssize_t {
    // SAFETY: the caller's promise.
    unsafe { write(fd, bytes, size) }
}

#[inline(never)]
unsafe fn large_write(fd: c_int, bytes: *const c_void, size: usize) -> ssize_t {
    // SAFETY: the caller's promise.
    let plain = move || unsafe { original::write(fd, bytes, size) };
    match flags_of_write(fd) {
        Some(flags) if size <= MOST_BYTES => {
            // SAFETY: the caller's promise: it reads what the write would have read.
            with_hint(fd, move || unsafe { original::send(fd, bytes, size, flags) }, plain)
        }
        _ => plain(),
    }
}

/// Stands in for writev(2).
///
/// # Safety
///
/// - See writev(2).
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn writev(fd: c_int, vector: *const iovec, count: c_int) -> ssize_t {
    // SAFETY: the caller's promise.
    let plain = move || unsafe { original::writev(fd, vector, count) };
    let (min_bytes, matters) = (active::min_bytes(), || sockets::may_be_hinted(fd));
    let is_large =
        active::is_active() && message::writev_reaches(vector, count, min_bytes, matters);
    let Some(flags) = is_large.then(|| flags_of_write(fd)).flatten() else { return plain() };
    // SAFETY: zeros are null pointers and sizes of nothing.
    let mut message: msghdr = unsafe { mem::zeroed() };
    message.msg_iov = vector.cast_mut();
    message.msg_iovlen = count as usize;
    // SAFETY: the caller's promise: it reads what the writev would have read.
    with_hint(fd, || unsafe { original::sendmsg(fd, &raw const message, flags) }, plain)
}

/// Stands in for send(2).
///
/// # Safety
///
/// - See send(2).
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn send(
    fd: c_int,
    bytes: *const c_void,
    size: usize,
    flags: c_int,
) -> ssize_t {
    if size < active::min_bytes() {
        // SAFETY: the caller's promise.
        return unsafe { original::send(fd, bytes, size, flags) };
    }
    // SAFETY: the caller's promise.
    unsafe { large_send(fd, bytes, size, flags) }
}

#[inline(never)]
unsafe fn large_send(fd: c_int, bytes: *const c_void, size: usize, flags: c_int) -> ssize_t {
    // SAFETY: the caller's promise.
    hinted(fd, flags, move |flags| unsafe { original::send(fd, bytes, size, flags) })
}

/// The other name that the C library has for it.
///
/// # Safety
///
/// - See send(2).
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn __send(
    fd: c_int,
    bytes: *const c_void,
    size: usize,
    flags: c_int,
) -> ssize_t {
    // SAFETY: the caller's promise.
    unsafe { send(fd, bytes, size, flags) }
}

/// Stands in for sendto(2).
///
/// # Safety
///
/// - See sendto(2).
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn sendto(
    fd: c_int,
    bytes: *const c_void,
    size: usize,
    flags: c_int,
    to: *const sockaddr,
    to_bytes: socklen_t,
) -> ssize_t {
    // SAFETY: the caller's promise.
    let call = move |flags| unsafe { original::sendto(fd, bytes, size, flags, to, to_bytes) };
    if size < active::min_bytes() { call(flags) } else { hinted(fd, flags, call) }
}

/// Stands in for sendmsg(2).
///
/// # Safety
///
/// - See sendmsg(2).
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn sendmsg(
    fd: c_int,
    message: *const msghdr,
    flags: c_int,
) -> ssize_t {
    // SAFETY: the caller's promise.
    let call = move |flags| unsafe { original::sendmsg(fd, message, flags) };
    let (min_bytes, matters) = (active::min_bytes(), || sockets::may_be_hinted(fd));
    if active::is_active() && message::message_reaches(message, min_bytes, matters) {
        hinted(fd, flags, call)
    } else {
        call(flags)
    }
}

/// Stands in for sendmmsg(2). The flags are those of all messages: one with a large piece
/// gets all of them the hint, and the kernel copies the small ones normally.
///
/// # Safety
///
/// - See sendmmsg(2).
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn sendmmsg(
    fd: c_int,
    messages: *mut mmsghdr,
    count: c_uint,
    flags: c_int,
) -> c_int {
    // SAFETY: the caller's promise.
    let call = move |flags| unsafe { original::sendmmsg(fd, messages, count, flags) };
    let (min_bytes, matters) = (active::min_bytes(), || sockets::may_be_hinted(fd));
    if active::is_active() && message::any_message_reaches(messages, count, min_bytes, matters) {
        hinted(fd, flags, call)
    } else {
        call(flags)
    }
}
