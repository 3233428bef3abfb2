//! Waiting for sockets, to the nanosecond.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

use rustix::io::Errno;

/// Waits to the nanosecond; `epoll_wait`, and what rustix makes of it, would round up to a
/// thousandth of a second, in which a request that is due goes late.
pub fn wait(
    epoll: BorrowedFd<'_>,
    events: &mut [libc::epoll_event],
    at_most: Duration,
) -> Result<usize, Errno> {
    let timeout = libc::timespec {
        tv_sec: libc::time_t::try_from(at_most.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_nsec: libc::c_long::from(at_most.subsec_nanos() as i32),
    };
    // SAFETY: the kernel writes at most `events.len()` events to where they are, and reads a
    // timespec that lives through the call; there is no signal mask.
    let ready = unsafe {
        libc::syscall(
            libc::SYS_epoll_pwait2,
            epoll.as_raw_fd(),
            events.as_mut_ptr(),
            events.len() as libc::c_int,
            &raw const timeout,
            std::ptr::null::<libc::sigset_t>(),
            0_usize,
        )
    };
    usize::try_from(ready)
        .map_err(|_| Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO))
}
