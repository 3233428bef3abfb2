//! Bare system calls: no `errno`, no cancellation, and none of the functions that this library
//! itself stands in for.
//!
//! A filter of system calls may be in force that allows the program its own and not these, so
//! `ntcopy run` tries them first: one that is new here is new in its `filter.rs`, too.

use core::arch::asm;
use core::ffi::{CStr, c_int};
use core::mem;

/// An error number, positive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Errno(pub c_int);

/// A system call. The result is that of the kernel: a value, or minus an error number.
///
/// # Safety
///
/// - What the kernel does to this process's memory on this call is sound.
#[inline(always)]
pub unsafe fn syscall(number: libc::c_long, arguments: [usize; 6]) -> isize {
    let [a, b, c, d, e, f] = arguments;
    let result: isize;
    // SAFETY: the kernel's convention on x86-64: number and result in rax, arguments in these
    // registers, rcx and r11 lost. What the call does is the caller's promise.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number as isize => result,
            in("rdi") a,
            in("rsi") b,
            in("rdx") c,
            in("r10") d,
            in("r8") e,
            in("r9") f,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    result
}

fn checked(result: isize) -> Result<usize, Errno> {
    // The kernel's error numbers end at 4095.
    if (-4095..0).contains(&result) { Err(Errno(-result as c_int)) } else { Ok(result as usize) }
}

/// Sets a socket option that is an int.
pub fn setsockopt(fd: c_int, name: c_int, value: c_int) -> Result<(), Errno> {
    let arguments = [
        fd as usize,
        libc::SOL_SOCKET as usize,
        name as usize,
        &raw const value as usize,
        mem::size_of::<c_int>(),
        0,
    ];
    // SAFETY: the kernel reads `value`.
    checked(unsafe { syscall(libc::SYS_setsockopt, arguments) }).map(|_| ())
}

/// Opens a device for reading and writing; the descriptor goes away on exec.
pub fn open_device(path: &CStr) -> Result<c_int, Errno> {
    open(path, libc::O_RDWR)
}

/// Opens a file for reading; the descriptor goes away on exec.
pub fn open_to_read(path: &CStr) -> Result<c_int, Errno> {
    open(path, libc::O_RDONLY)
}

fn open(path: &CStr, access: c_int) -> Result<c_int, Errno> {
    let flags = access | libc::O_CLOEXEC;
    let arguments =
        [libc::AT_FDCWD as isize as usize, path.as_ptr() as usize, flags as usize, 0, 0, 0];
    // SAFETY: the kernel reads the path, which ends with a zero.
    checked(unsafe { syscall(libc::SYS_openat, arguments) }).map(|fd| fd as c_int)
}

/// Reads what is next in a file; of nothing at its end.
pub fn read(fd: c_int, into: &mut [u8]) -> Result<usize, Errno> {
    let arguments = [fd as usize, into.as_mut_ptr() as usize, into.len(), 0, 0, 0];
    // SAFETY: the kernel writes at most that number of bytes, to memory that is exclusively ours.
    checked(unsafe { syscall(libc::SYS_read, arguments) })
}

/// Closes a descriptor that [`open_device`] or [`open_to_read`] gave.
pub fn close(fd: c_int) {
    // SAFETY: nothing of this process's memory is touched.
    unsafe { syscall(libc::SYS_close, [fd as usize, 0, 0, 0, 0, 0]) };
}

/// An ioctl that takes a structure.
///
/// # Safety
///
/// - `T` is what the device reads, and may write, on this request.
pub unsafe fn ioctl<T>(fd: c_int, request: u32, argument: &mut T) -> Result<(), Errno> {
    let arguments = [fd as usize, request as usize, argument as *mut T as usize, 0, 0, 0];
    // SAFETY: the argument is exclusively ours, and of the type that the request wants.
    checked(unsafe { syscall(libc::SYS_ioctl, arguments) }).map(|_| ())
}

/// Copies memory of this process by way of the kernel; false where it is not all there.
#[inline(never)]
pub fn read_memory(from: usize, to: *mut u8, bytes: usize) -> bool {
    let slice = |address| libc::iovec {
        iov_base: core::ptr::without_provenance_mut(address),
        iov_len: bytes,
    };
    let (here, there) = (slice(to as usize), slice(from));
    // This thread's number, not the process's: its first thread may have ended.
    // SAFETY: nothing of this process's memory is touched.
    let thread = unsafe { syscall(libc::SYS_gettid, [0; 6]) } as usize;
    let arguments = [thread, &raw const here as usize, 1, &raw const there as usize, 1, 0];
    // SAFETY: the kernel writes to what the caller owns.
    checked(unsafe { syscall(libc::SYS_process_vm_readv, arguments) }) == Ok(bytes)
}

/// Writes to standard error, as far as that is possible.
pub fn complain(pieces: &[&[u8]]) {
    const MOST: usize = 8;
    let mut vector = [libc::iovec { iov_base: core::ptr::null_mut(), iov_len: 0 }; MOST];
    let count = pieces.len().min(MOST);
    for (slot, piece) in vector.iter_mut().zip(pieces) {
        slot.iov_base = piece.as_ptr().cast_mut().cast();
        slot.iov_len = piece.len();
    }
    let arguments = [libc::STDERR_FILENO as usize, vector.as_ptr() as usize, count, 0, 0, 0];
    // SAFETY: the kernel reads the pieces, which outlive the call. One call, so that the line is
    // not torn.
    unsafe { syscall(libc::SYS_writev, arguments) };
}

/// Sets this thread's `errno`.
pub fn set_errno(value: c_int) {
    // SAFETY: the C library's location is valid for the thread that asks, and for it alone.
    unsafe { *libc::__errno_location() = value }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_numbers() {
        assert_eq!(setsockopt(-1, libc::SO_TYPE, 0), Err(Errno(libc::EBADF)));
        assert_eq!(open_device(c"/nonexistent"), Err(Errno(libc::ENOENT)));
    }
}
