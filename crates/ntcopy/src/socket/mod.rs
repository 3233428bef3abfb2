//! Who takes `MSG_NTCOPY`, sends that carry it, and what was done with them.
//!
//! A kernel with the series takes it on every socket. Any other kernel from 6.5 on can be given
//! the module, which takes it on the unix streams and UDP sockets that [`enable`] attached, and on
//! those that are accepted by such a listener. The library asks the kernel first, then the module.
//!
//! The module's device, `/dev/ntcopy`, is opened once, when the first question gets that far, and
//! stays open (close-on-exec): until the process ends the module cannot be unloaded. A process that
//! found no device doesn't look again.

mod module;
mod send;
mod stat;

use std::ffi::c_int;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::Path;
use std::{fs, io, mem};

pub use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType};

use self::module::Answer;
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

    fn from_value(value: c_int) -> Option<Setting> {
        [Setting::None, Setting::Hint, Setting::Obey].into_iter().find(|it| it.value() == value)
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

/// Says what a socket's sends are to be taken for, and who took it: the kernel (`SO_NTCOPY`), or
/// the module, which attaches the socket. Called again it changes the setting.
///
/// [`Support::None`] is nobody: the kernel doesn't have the option, and either there is no module
/// or it cannot help this socket: it takes unix streams and UDP. (TCP has `tx-nocache-copy`, a
/// feature of the device.) Or this process may not open its device. The flag would then be ignored without a word, so a caller that wants to know
/// must not merely try to send.
///
/// With [`Setting::None`] the sends that carry the flag are hinted, and no others. The kernel takes
/// those anyway; for the module the socket has to be attached.
///
/// # Errors
///
/// `ENOTSOCK`, `EBADF` for a descriptor opened with `O_PATH`, `ENOMEM`; `EMFILE` and `ENFILE` when
/// the module's device cannot be opened for lack of a descriptor.
pub fn enable(socket: impl AsFd, setting: Setting) -> Result<Support, Errno> {
    let socket = socket.as_fd();
    match set_option(socket, setting) {
        Ok(()) => Ok(Support::Kernel),
        Err(Errno::NOPROTOOPT) => Ok(match module::attach(socket, setting)? {
            Answer::Done(()) => Support::Module,
            Answer::Declined | Answer::Absent => Support::None,
        }),
        Err(errno) => Err(errno),
    }
}

/// Takes back what [`enable`] did, by the way that it went, and says which that was. The kernel
/// still takes sends that carry the flag; the module lets go of the socket.
///
/// # Errors
///
/// Those of [`enable`].
pub fn disable(socket: impl AsFd) -> Result<Support, Errno> {
    let socket = socket.as_fd();
    match set_option(socket, Setting::None) {
        Ok(()) => Ok(Support::Kernel),
        Err(Errno::NOPROTOOPT) => Ok(match module::detach(socket)? {
            Answer::Done(()) => Support::Module,
            Answer::Declined | Answer::Absent => Support::None,
        }),
        Err(errno) => Err(errno),
    }
}

/// Who takes the hints of a socket, and what its sends are taken for. [`Support::None`] for a
/// socket that isn't attached to the module: even sends with the flag are ordinary there.
///
/// # Errors
///
/// Those of [`enable`].
pub fn mode(socket: impl AsFd) -> Result<(Support, Setting), Errno> {
    let socket = socket.as_fd();
    match option(socket) {
        Ok(setting) => Ok((Support::Kernel, setting)),
        Err(Errno::NOPROTOOPT) => Ok(match module::query(socket)? {
            Answer::Done(setting) => (Support::Module, setting),
            Answer::Declined | Answer::Absent => (Support::None, Setting::None),
        }),
        Err(errno) => Err(errno),
    }
}

/// Sets `SO_NTCOPY`; `ENOPROTOOPT` where the kernel doesn't have it.
fn set_option(socket: BorrowedFd<'_>, setting: Setting) -> Result<(), Errno> {
    let value: c_int = setting.value();
    // SAFETY: the pointer and the length describe `value`, which outlives the call; the
    // descriptor is borrowed and stays open for it.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            uapi::SO_NTCOPY,
            (&raw const value).cast(),
            mem::size_of::<c_int>() as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(last_errno()) }
}

/// Reads `SO_NTCOPY`.
fn option(socket: BorrowedFd<'_>) -> Result<Setting, Errno> {
    let mut value: c_int = 0;
    let mut length = mem::size_of::<c_int>() as libc::socklen_t;
    // SAFETY: the pointers are to `value` and to its length, which outlive the call; the
    // descriptor is borrowed and stays open for it.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            uapi::SO_NTCOPY,
            (&raw mut value).cast(),
            &raw mut length,
        )
    };
    if result != 0 {
        return Err(last_errno());
    }
    Setting::from_value(value).ok_or(Errno::IO)
}

fn last_errno() -> Errno {
    Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO)
}

/// Who would take hints: the kernel is asked with a throw-away unix socket, then the module.
///
/// # Errors
///
/// The errno of `socketpair` or `setsockopt`, or of opening the device, when the question could
/// not be put.
pub fn probe() -> Result<Support, Errno> {
    let (socket, _peer) = rustix::net::socketpair(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )?;
    match set_option(socket.as_fd(), Setting::None) {
        Ok(()) => Ok(Support::Kernel),
        Err(Errno::NOPROTOOPT) if module::is_there()? => Ok(Support::Module),
        Err(Errno::NOPROTOOPT) => Ok(Support::None),
        Err(errno) => Err(errno),
    }
}

/// What the module says of itself; `None` where none is loaded. Unlike the other questions this one
/// keeps nothing open.
///
/// # Errors
///
/// The errno of `open`, or of the ioctl: `ENOTTY` for a device that isn't the module's.
pub fn module_info() -> Result<Option<uapi::ModuleInfo>, Errno> {
    module::info()
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
    /// `net.core.ntcopy_cache_bytes`: hinted bytes are copied normally where what is copied comes
    /// round within so many; 0: within the CPU's own share of its caches.
    pub cache_bytes: Option<u64>,
}

/// Reads the settings of this network namespace.
pub fn sysctl() -> Sysctls {
    fn read<T: std::str::FromStr>(name: &str) -> Option<T> {
        fs::read_to_string(Path::new("/proc/sys/net/core").join(name)).ok()?.trim().parse().ok()
    }
    Sysctls { ntcopy: read("ntcopy"), cache_bytes: read("ntcopy_cache_bytes") }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: [Setting; 3] = [Setting::Hint, Setting::Obey, Setting::None];

    #[test]
    fn the_probe_and_the_counters_file_agree() {
        let support = probe().expect("a socket pair can be had");
        assert_eq!(support, kernel_support());
        let counted = counters().expect("a counters file, if there, can be read");
        assert_eq!(support != Support::None, counted.is_some());
        assert_eq!(support != Support::None, sysctl().ntcopy.is_some());
    }

    #[test]
    fn all_settings_get_the_same_answer_on_a_socket_and_are_read_back() {
        let (socket, peer) = std::os::unix::net::UnixStream::pair().unwrap();
        let support = kernel_support();
        for setting in SETTINGS {
            assert_eq!(enable(&socket, setting), Ok(support), "{setting:?}");
            let expected = if support == Support::None { Setting::None } else { setting };
            assert_eq!(mode(&socket), Ok((support, expected)));
        }
        assert_eq!(enable(&socket, Setting::Obey), Ok(support));
        assert_eq!(disable(&socket), Ok(support));
        // The kernel takes the flag on every socket, the module on those that are attached.
        let without = if support == Support::Kernel { support } else { Support::None };
        for socket in [&socket, &peer] {
            assert_eq!(mode(socket), Ok((without, Setting::None)));
        }
    }

    #[test]
    fn the_module_is_there_where_it_takes_the_hints_and_only_there() {
        let info = module_info().expect("a device, if there, can be asked");
        assert_eq!(info.is_some(), kernel_support() == Support::Module, "{info:?}");
    }

    #[test]
    fn a_file_is_an_error_not_an_absence() {
        let file = fs::File::open("/dev/null").unwrap();
        for setting in SETTINGS {
            assert_eq!(enable(&file, setting), Err(Errno::NOTSOCK));
        }
        assert_eq!(disable(&file), Err(Errno::NOTSOCK));
        assert_eq!(mode(&file), Err(Errno::NOTSOCK));
    }
}
