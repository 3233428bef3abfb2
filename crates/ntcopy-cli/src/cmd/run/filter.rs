//! Filters of system calls (seccomp) that are in force here, and so in the program: whether they
//! allow what the library does.
//!
//! A filter can't be asked, so each call is made once, in a process of its own, with a descriptor
//! that does not exist: the kernel answers a call that passes the filter with `EBADF`, and nothing
//! is done. The library gets the number of these filters, and does nothing under more of them.

use std::{fs, io, mem, ptr};

use libc::{c_int, c_long};
use ntcopy::{socket, uapi};
use rustix::process::{Resource, Rlimit, setrlimit};

const NO_DESCRIPTOR: c_int = -1;

/// A system call's name, and making it: whether it was answered as by the kernel itself.
type Call = (&'static str, fn() -> bool);

const CALLS: [Call; 9] = [
    ("sendto", sendto),
    ("sendmsg", sendmsg),
    ("getsockopt", getsockopt),
    ("setsockopt", setsockopt),
    ("openat", openat),
    ("ioctl", ioctl),
    ("process_vm_readv", process_vm_readv),
    ("process_vm_writev", process_vm_writev),
    ("getpid", getpid),
];

/// How many are in force, all of which allow what the library does.
pub fn allowing() -> Result<u32, String> {
    let count = in_force()?;
    let refused = if count == 0 { Vec::new() } else { refused() };
    if refused.is_empty() {
        return Ok(count);
    }
    Err(format!(
        "a filter of system calls (seccomp) that is in force here does not allow {}, which large \
         sends would become or need",
        refused.join(", ")
    ))
}

/// How many, as the library counts them.
fn in_force() -> Result<u32, String> {
    let status = fs::read_to_string("/proc/self/status").map_err(|error| {
        format!(
            "cannot see whether a filter of system calls is in force: /proc/self/status: {error}"
        )
    })?;
    counted(&status).ok_or_else(|| {
        "a filter of system calls (seccomp) is in force here, and this kernel does not say how \
         many: it is older than 5.9"
            .to_owned()
    })
}

fn counted(status: &str) -> Option<u32> {
    let value = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    match value("Seccomp:") {
        // A kernel that was built without them does not speak of them.
        None | Some("0") => Some(0),
        Some(_) => value("Seccomp_filters:")?.parse().ok(),
    }
}

fn refused() -> Vec<&'static str> {
    // Whoever started this program may ignore it, and then no child could be waited for.
    // SAFETY: the default action is one that every process may choose.
    let before = unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
    let mut refused: Vec<_> =
        CALLS.iter().filter(|(_, call)| !is_allowed(*call)).map(|(name, _)| *name).collect();
    if refused.is_empty() && !is_allowed(kernel_is_asked) {
        refused.push("socketpair");
    }
    // SAFETY: it is what was there.
    unsafe { libc::signal(libc::SIGCHLD, before) };
    refused
}

/// Whether a process lives through this, and says that it was answered.
fn is_allowed(call: fn() -> bool) -> bool {
    // SAFETY: this process has no thread but this one, whose locks and memory the child has whole; it
    // runs nothing that is to run at the end of a process.
    match unsafe { libc::fork() } {
        -1 => false,
        0 => {
            // A core file of this would be of no use. Every program asks for a limit when
            // it begins, so no filter is in the way of that.
            let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
            let code = if call() { 0 } else { 1 };
            // SAFETY: it ends this process, and touches nothing of it.
            unsafe { libc::_exit(code) }
        }
        child => ended_well(child),
    }
}

fn ended_well(child: libc::pid_t) -> bool {
    loop {
        let mut status = 0;
        // SAFETY: the status is written to a variable of its type.
        if unsafe { libc::waitpid(child, &raw mut status, 0) } == child {
            return libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0;
        }
        if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            return false;
        }
    }
}

/// Whether a call failed as it has to.
fn failed_by(errno: c_int, result: c_long) -> bool {
    result == -1 && io::Error::last_os_error().raw_os_error() == Some(errno)
}

fn sendto() -> bool {
    let flags = uapi::MSG_NTCOPY as c_int;
    // SAFETY: nothing is read: there is no such descriptor.
    let result =
        unsafe { libc::sendto(NO_DESCRIPTOR, b"x".as_ptr().cast(), 1, flags, ptr::null(), 0) };
    failed_by(libc::EBADF, result as c_long)
}

fn sendmsg() -> bool {
    // SAFETY: zeros are null pointers and sizes of nothing.
    let message: libc::msghdr = unsafe { mem::zeroed() };
    // SAFETY: the message is one, and there is no such descriptor.
    let result =
        unsafe { libc::sendmsg(NO_DESCRIPTOR, &raw const message, uapi::MSG_NTCOPY as c_int) };
    failed_by(libc::EBADF, result as c_long)
}

fn getsockopt() -> bool {
    let mut value: c_int = 0;
    let mut size_bytes = mem::size_of::<c_int>() as libc::socklen_t;
    // SAFETY: what could be written has room, and there is no such descriptor.
    let result = unsafe {
        libc::getsockopt(
            NO_DESCRIPTOR,
            libc::SOL_SOCKET,
            uapi::SO_NTCOPY,
            (&raw mut value).cast(),
            &raw mut size_bytes,
        )
    };
    failed_by(libc::EBADF, result.into())
}

fn setsockopt() -> bool {
    let value: c_int = uapi::SOCK_OBEY;
    // SAFETY: what could be read is there, and there is no such descriptor.
    let result = unsafe {
        libc::setsockopt(
            NO_DESCRIPTOR,
            libc::SOL_SOCKET,
            uapi::SO_NTCOPY,
            (&raw const value).cast(),
            mem::size_of::<c_int>() as libc::socklen_t,
        )
    };
    failed_by(libc::EBADF, result.into())
}

/// The device need not be there, nor be open to every user: it is enough to live through it.
fn openat() -> bool {
    // SAFETY: the path ends with a zero; the descriptor goes with this process.
    unsafe { libc::open(uapi::MODULE_PATH.as_ptr(), libc::O_RDWR | libc::O_CLOEXEC) };
    true
}

fn ioctl() -> bool {
    let mut socket = uapi::Socket { fd: NO_DESCRIPTOR, mode: 0, flags: 0, reserved: 0 };
    let request = libc::c_ulong::from(uapi::IOC_QUERY);
    // SAFETY: it is the structure of this request, and there is no such descriptor.
    let result = unsafe { libc::ioctl(NO_DESCRIPTOR, request, &raw mut socket) };
    failed_by(libc::EBADF, result.into())
}

/// By which the library reads and writes the program's memory: nothing is copied. A kernel without
/// it (`ENOSYS`) is one on which messages off the stack are not hinted.
fn process_vm_readv() -> bool {
    copies_nothing(libc::SYS_process_vm_readv)
}

fn process_vm_writev() -> bool {
    copies_nothing(libc::SYS_process_vm_writev)
}

fn copies_nothing(number: c_long) -> bool {
    let (none, zero) = (ptr::null::<libc::iovec>(), 0 as c_long);
    // SAFETY: there are no slices.
    let result = unsafe {
        libc::syscall(number, c_long::from(libc::getpid()), none, zero, none, zero, zero)
    };
    result == 0 || failed_by(libc::ENOSYS, result)
}

fn getpid() -> bool {
    rustix::process::getpid().as_raw_nonzero().get() > 0
}

/// This program's own question. Beyond what the library does, it takes a pair of sockets; it is enough
/// to live through it.
fn kernel_is_asked() -> bool {
    socket::kernel_support();
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_counted() {
        for (status, count) in [
            ("Name:\tx\nSeccomp:\t0\nSeccomp_filters:\t0\n", Some(0)),
            ("Name:\tx\nSeccomp:\t2\nSeccomp_filters:\t3\n", Some(3)),
            ("Name:\tx\nSeccomp:\t2\n", None),
            ("Name:\tx\n", Some(0)),
        ] {
            assert_eq!(counted(status), count, "{status:?}");
        }
    }

    #[test]
    fn the_kernel_itself_answers_all_of_them() {
        // Not in processes of their own: this one has threads.
        for (name, call) in CALLS {
            assert!(call(), "{name}");
        }
    }
}
