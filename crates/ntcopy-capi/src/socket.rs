//! Sends with a hint.
//!
//! These hand the caller's own arguments to the C library's `send` and `sendmsg`: a `msghdr` has a
//! name and control messages that Rust's calls would have to understand to pass on, and a buffer
//! that isn't there is the kernel's to refuse.

use std::ffi::{c_int, c_uint, c_void};
use std::io;
use std::os::fd::BorrowedFd;

use libc::msghdr;
use ntcopy::socket::{self, Setting, Support, disable, enable, mode, probe};

use crate::boundary::{Errno, answer, write_out};
use crate::hints;

/// Neither takes the hint.
pub const NTCOPY_SUPPORT_NONE: c_int = 0;
/// The kernel's own socket layer takes it.
pub const NTCOPY_SUPPORT_KERNEL: c_int = 1;
/// A loaded module takes it.
pub const NTCOPY_SUPPORT_MODULE: c_int = 2;

fn number(support: Support) -> c_int {
    match support {
        Support::None => NTCOPY_SUPPORT_NONE,
        Support::Kernel => NTCOPY_SUPPORT_KERNEL,
        Support::Module => NTCOPY_SUPPORT_MODULE,
    }
}

/// The descriptor for as long as a call takes.
fn borrowed<'a>(fd: c_int) -> Result<BorrowedFd<'a>, Errno> {
    if fd < 0 {
        return Err(Errno::BAD_DESCRIPTOR);
    }
    // SAFETY: not -1. Whether it is open is for the kernel to say; it is only named to it, and
    // not closed.
    Ok(unsafe { BorrowedFd::borrow_raw(fd) })
}

fn refused(errno: socket::Errno) -> Errno {
    Errno(errno.raw_os_error())
}

/// Opts a socket in: says which of its sends are hinted, and who took that.
#[unsafe(no_mangle)]
pub extern "C" fn ntcopy_socket_enable(fd: c_int, setting: c_int) -> c_int {
    answer(|| {
        let setting = Setting::from_value(setting).ok_or(Errno::INVALID)?;
        enable(borrowed(fd)?, setting).map(number).map_err(refused)
    })
}

/// Takes that back.
#[unsafe(no_mangle)]
pub extern "C" fn ntcopy_socket_disable(fd: c_int) -> c_int {
    answer(|| disable(borrowed(fd)?).map(number).map_err(refused))
}

/// Says who takes a socket's hints, and which of its sends are hinted.
///
/// # Safety
///
/// `setting` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ntcopy_socket_mode(fd: c_int, setting: *mut c_int) -> c_int {
    answer(|| {
        let (support, found) = mode(borrowed(fd)?).map_err(refused)?;
        // SAFETY: the caller guarantees that `setting` is NULL or can be written.
        unsafe { write_out(setting, found.value()) };
        Ok(number(support))
    })
}

/// Asks, with a throw-away socket, who would take a hint.
#[unsafe(no_mangle)]
pub extern "C" fn ntcopy_socket_probe() -> c_int {
    answer(|| probe().map(number).map_err(refused))
}

/// `send(2)` with a hint.
///
/// # Safety
///
/// What isn't memory at `buf` is the kernel's to refuse.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ntcopy_send(
    fd: c_int,
    buf: *const c_void,
    len: usize,
    flags: c_int,
    hints: c_uint,
    support: c_int,
) -> isize {
    answer(|| {
        let flags = flags | flag(hints, support)?;
        // SAFETY: the kernel checks what it is given, and only reads the buffer.
        sent(unsafe { libc::send(fd, buf, len, flags) })
    })
}

/// `sendmsg(2)` with a hint.
///
/// # Safety
///
/// What isn't memory at `msg` is the kernel's to refuse.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ntcopy_sendmsg(
    fd: c_int,
    msg: *const msghdr,
    flags: c_int,
    hints: c_uint,
    support: c_int,
) -> isize {
    answer(|| {
        let flags = flags | flag(hints, support)?;
        // SAFETY: the kernel checks what it is given, and only reads the message.
        sent(unsafe { libc::sendmsg(fd, msg, flags) })
    })
}

/// The flag of a send with these hints, on a socket whose hints are taken so.
fn flag(hints: c_uint, support: c_int) -> Result<c_int, Errno> {
    let destination = hints::decode(hints)?.destination;
    let support = [Support::None, Support::Kernel, Support::Module]
        .into_iter()
        .find(|known| number(*known) == support)
        .ok_or(Errno::INVALID)?;
    Ok(support.flags(destination).bits().cast_signed())
}

fn sent(result: isize) -> Result<isize, Errno> {
    match result {
        0.. => Ok(result),
        _ => Err(Errno(io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO))),
    }
}
