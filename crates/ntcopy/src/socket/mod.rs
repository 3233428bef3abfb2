//! Whether the kernel knows `MSG_NTCOPY`, sends that carry it, and what the kernel did with them.

mod send;
mod stat;

use std::ffi::c_int;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::{fs, io, mem};

pub use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType};

pub use self::send::{SendAncillaryBuffer, SendFlags, Sent, send, sendmsg, with_hint};
pub use self::stat::{Counters, CountersError};
use crate::uapi;

/// What a socket's sends are taken for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Setting {
    /// Only sends that carry `MSG_NTCOPY` are hinted.
    None,
    /// Every send is hinted.
    Hint,
    /// Every send is hinted, and the hint is obeyed without a second thought.
    Obey,
}

impl Setting {
    /// The option's value.
    pub fn value(self) -> c_int {
        match self {
            Setting::None => uapi::SOCK_NONE,
            Setting::Hint => uapi::SOCK_HINT,
            Setting::Obey => uapi::SOCK_OBEY,
        }
    }
}

/// Who honours the hint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Support {
    /// The kernel's own socket layer.
    Kernel,
    /// A loaded module.
    Module,
    /// Nobody: sends that carry the flag are ordinary sends.
    None,
}

impl Support {
    /// `kernel`, `module` or `none`.
    pub fn name(self) -> &'static str {
        match self {
            Support::Kernel => "kernel",
            Support::Module => "module",
            Support::None => "none",
        }
    }
}

/// Sets `SO_NTCOPY` on a socket and says who took it.
///
/// [`Support::None`] means that this kernel does not have the option. The flag would then be
/// ignored without a word, so a caller that wants to know must not merely try to send.
///
/// # Errors
///
/// The errno of `setsockopt`, `ENOPROTOOPT` excepted: `ENOTSOCK`, `EINVAL`, …
pub fn enable(socket: impl AsFd, setting: Setting) -> Result<Support, Errno> {
    let value: c_int = setting.value();
    // SAFETY: the pointer and the length describe `value`, which outlives the call; the
    // descriptor is borrowed and stays open for it.
    let result = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            uapi::SO_NTCOPY,
            (&raw const value).cast(),
            mem::size_of::<c_int>() as libc::socklen_t,
        )
    };
    if result == 0 {
        return Ok(Support::Kernel);
    }
    match Errno::from_io_error(&io::Error::last_os_error()) {
        Some(Errno::NOPROTOOPT) => Ok(Support::None),
        Some(errno) => Err(errno),
        None => Err(Errno::IO),
    }
}

/// Asks the kernel with a throw-away unix socket.
///
/// # Errors
///
/// The errno of `socketpair` or `setsockopt`, when the question could not be put.
pub fn probe() -> Result<Support, Errno> {
    let (socket, _peer) = rustix::net::socketpair(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )?;
    enable(&socket, Setting::None)
}

/// [`probe`], where a question that could not be put counts as no support.
pub fn kernel_support() -> Support {
    probe().unwrap_or(Support::None)
}

/// What the kernel counted so far in this network namespace; `None` where it does not count.
///
/// # Errors
///
/// The file is there but cannot be read, or not understood.
pub fn counters() -> Result<Option<Counters>, CountersError> {
    Counters::read(Path::new(uapi::STAT_PATH))
}

/// [`counters`] from another file: another process's `/proc/PID/net/ntcopy_stat`, which counts in
/// its network namespace, or a copy that was kept.
///
/// # Errors
///
/// The file is there but cannot be read, or not understood.
pub fn counters_in(path: &Path) -> Result<Option<Counters>, CountersError> {
    Counters::read(path)
}

/// The system's settings; `None` for those that this kernel does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sysctls {
    /// `net.core.ntcopy`, one of `uapi::SYSCTL_*`.
    pub ntcopy: Option<u8>,
    /// `net.core.ntcopy_min_bytes`: sends below it stay normal.
    pub min_bytes: Option<u64>,
}

/// Reads the settings of this network namespace.
pub fn sysctl() -> Sysctls {
    fn read<T: std::str::FromStr>(name: &str) -> Option<T> {
        fs::read_to_string(Path::new("/proc/sys/net/core").join(name)).ok()?.trim().parse().ok()
    }
    Sysctls { ntcopy: read("ntcopy"), min_bytes: read("ntcopy_min_bytes") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_probe_and_the_counters_file_agree() {
        let support = probe().expect("a socket pair can be had");
        assert_eq!(support, kernel_support());
        let counted = counters().expect("a counters file, if there, can be read");
        assert_eq!(support == Support::Kernel, counted.is_some());
        assert_eq!(support == Support::Kernel, sysctl().ntcopy.is_some());
    }

    #[test]
    fn all_settings_get_the_same_answer_on_a_socket() {
        let (socket, _peer) = std::os::unix::net::UnixStream::pair().unwrap();
        let support = kernel_support();
        for setting in [Setting::Hint, Setting::Obey, Setting::None] {
            assert_eq!(enable(&socket, setting), Ok(support), "{setting:?}");
        }
    }

    #[test]
    fn a_file_is_an_error_not_an_absence() {
        let file = fs::File::open("/dev/null").unwrap();
        assert_eq!(enable(&file, Setting::Hint), Err(Errno::NOTSOCK));
    }
}
