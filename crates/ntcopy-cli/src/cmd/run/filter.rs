//! Filters of system calls (seccomp) that are in force here, and so in the program: whether they
//! allow what the library does.
//!
//! A filter can't be asked, so each call is made once, in a process of its own, with a descriptor
//! that does not exist: the kernel answers a call that passes the filter with `EBADF`, and nothing
//! is done. The library gets the number of these filters, and does nothing under more of them.

use std::{fs, io};

use libc::{c_int, c_long};
use ntcopy::{socket, uapi};
use rustix::process::{Resource, Rlimit, setrlimit};

const NO_DESCRIPTOR: c_long = -1;

/// A system call that touches no memory: there is no such descriptor, or there are no slices.
struct Call {
    name: &'static str,
    number: c_long,
    arguments: [c_long; 6],
    answer: Answer,
}

/// How the kernel itself answers.
enum Answer {
    /// `EBADF`.
    NoDescriptor,
    /// It is done; or `ENOSYS`, and pairs of sockets are not hinted.
    Done,
    /// The device need not be there, nor be open to every user: it is enough to live through it.
    Any,
}

fn call(name: &'static str, number: c_long, answer: Answer, first: &[c_long]) -> Call {
    let mut arguments = [0; 6];
    arguments[..first.len()].copy_from_slice(first);
    Call { name, number, arguments, answer }
}

/// What the library does.
fn of_library() -> [Call; 5] {
    let (level, option) = (c_long::from(libc::SOL_SOCKET), c_long::from(uapi::SO_NTCOPY));
    let (folder, access) = (c_long::from(libc::AT_FDCWD), c_long::from(libc::O_RDWR));
    let (none, int_bytes) = (NO_DESCRIPTOR, size_of::<c_int>() as c_long);
    let option = [none, level, option, 0, int_bytes];
    let device = [folder, uapi::MODULE_PATH.as_ptr() as c_long, access];
    [
        call("setsockopt", libc::SYS_setsockopt, Answer::NoDescriptor, &option),
        call("openat", libc::SYS_openat, Answer::Any, &device),
        call("ioctl", libc::SYS_ioctl, Answer::NoDescriptor, &[none, uapi::IOC_QUERY.into()]),
        call("process_vm_readv", libc::SYS_process_vm_readv, Answer::Done, &[]),
        call("gettid", libc::SYS_gettid, Answer::Done, &[]),
    ]
}

/// What following a program from outside does that not every program does.
fn of_following() -> [Call; 2] {
    let none = NO_DESCRIPTOR;
    [
        call("pidfd_getfd", libc::SYS_pidfd_getfd, Answer::NoDescriptor, &[none, 0, 0]),
        call("pidfd_open", libc::SYS_pidfd_open, Answer::Any, &[0, 0]),
    ]
}

impl Call {
    /// Whether it is answered as by the kernel itself.
    fn is_answered(&self) -> bool {
        let [a, b, c, d, e, f] = self.arguments;
        // SAFETY: the only pointer is that of a path, which ends with a zero; see [`Call`].
        let result = unsafe { libc::syscall(self.number, a, b, c, d, e, f) };
        let errno = io::Error::last_os_error().raw_os_error();
        match self.answer {
            Answer::NoDescriptor => result == -1 && errno == Some(libc::EBADF),
            Answer::Done => result >= 0 || errno == Some(libc::ENOSYS),
            Answer::Any => true,
        }
    }
}

/// How many are in force, all of which allow what the library does.
pub fn allowing() -> Result<u32, String> {
    let count = in_force()?;
    let refused = if count == 0 { Vec::new() } else { refused(&of_library()) };
    if refused.is_empty() {
        return Ok(count);
    }
    Err(format!(
        "a filter of system calls (seccomp) that is in force here does not allow {}, by which \
         sockets opt in",
        refused.join(", ")
    ))
}

/// Why no program can be followed from outside here, if a filter forbids that.
pub fn forbids_following() -> Option<String> {
    let is_filtered = in_force() != Ok(0);
    let refused = if is_filtered { refused(&of_following()) } else { Vec::new() };
    (!refused.is_empty()).then(|| {
        format!(
            "a filter of system calls (seccomp) that is in force here does not allow {}, by which \
             a program is followed from outside",
            refused.join(", ")
        )
    })
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

fn refused(calls: &[Call]) -> Vec<&'static str> {
    // Whoever started this program may ignore it, and then no child could be waited for.
    // SAFETY: the default action is one that every process may choose.
    let before = unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
    let is_refused = |call: &Call| !is_allowed(|| call.is_answered());
    let mut refused: Vec<_> =
        calls.iter().filter(|call| is_refused(call)).map(|call| call.name).collect();
    // This program's own question takes a pair of sockets; it is enough to live through it.
    let is_asked = || {
        socket::kernel_support();
        true
    };
    if refused.is_empty() && !is_allowed(is_asked) {
        refused.push("socketpair");
    }
    // SAFETY: it is what was there.
    unsafe { libc::signal(libc::SIGCHLD, before) };
    refused
}

/// Whether a process lives through this, and says that it was answered.
fn is_allowed(call: impl Fn() -> bool) -> bool {
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
        for call in of_library().into_iter().chain(of_following()) {
            assert!(call.is_answered(), "{}", call.name);
        }
    }
}
