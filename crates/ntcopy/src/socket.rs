//! Who takes `MSG_NTCOPY`, sends that carry it, and what was done with them.
//!
//! A socket opts in once, by [`enable`]; on all others the flag is ignored. What `enable` answers
//! says who takes the socket's hints, and goes with the socket from then on: a send asks nothing.
//!
//! A kernel with the series takes every socket. Another one of 6.12 to 7.3 can be given the
//! module, which takes unix streams. What a listener accepts has opted in where the listener
//! has. The library asks the kernel first, then the module.
//!
//! The module's device, `/dev/ntcopy`, is opened once, when the first question gets that far, and
//! stays open (close-on-exec): until the process ends the module cannot be unloaded. A process that
//! found no device doesn't look again.

mod hinted;
mod module;
#[cfg(test)]
mod sandbox_tests;
mod send;
mod stat;

use std::ffi::c_int;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::{fs, io, mem};

pub use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType};

pub use self::hinted::Hinted;
use self::module::Answer;
pub use self::module::OtherSeries;
pub use self::send::{SendAncillaryBuffer, SendFlags, send, sendmsg};
pub use self::stat::{Counters, CountersError};
use crate::uapi;

/// Which sends of a socket are hinted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Setting {
    /// None, whatever flag they carry: a socket that did not opt in.
    None,
    /// Those of this many bytes and more, and those that carry `MSG_NTCOPY`. What is left of a
    /// hinted send that was cut short stays hinted. The kernel takes no number below
    /// [`uapi::MIN_BYTES`]; [`recommended`](crate::recommended) has one for each kind of socket.
    From(u32),
    /// Those that carry `MSG_NTCOPY`.
    Flagged,
}

impl Setting {
    /// The option's value.
    pub fn value(self) -> c_int {
        match self {
            Setting::None => 0,
            Setting::From(bytes) => c_int::try_from(bytes).unwrap_or(uapi::FLAGGED),
            Setting::Flagged => uapi::FLAGGED,
        }
    }

    /// The setting of the option's value; `None` for a value that the interface doesn't have.
    pub fn from_value(value: c_int) -> Option<Setting> {
        match value {
            0 => Some(Setting::None),
            uapi::FLAGGED => Some(Setting::Flagged),
            uapi::MIN_BYTES.. => Some(Setting::From(value.cast_unsigned())),
            _ => None,
        }
    }
}

/// Who takes a socket's hints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Support {
    /// The kernel's own socket layer.
    Kernel,
    /// A loaded module.
    Module,
    /// Neither: sends that carry the flag are ordinary sends.
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

/// Opts a socket in: says which of its sends are hinted, and answers who took that: the kernel
/// (`SO_NTCOPY`), or the module, which attaches the socket. Called again it changes the setting.
/// It needs no privilege, but for what the module's device asks.
///
/// The answer is for the socket's sends: [`send`] takes it. Keep it with the socket. The module
/// rounds a number up to a power of two, from 256 KiB on; [`mode`] says what it took.
///
/// [`Support::None`]: the kernel doesn't have the option, and there is no module, or one of another
/// series ([`other_series`]), or this process may not open its device, or the module cannot help
/// this socket: it takes unix streams. (TCP has `tx-nocache-copy`, a feature of the device.)
///
/// # Errors
///
/// `ENOTSOCK`, `EBADF` for a descriptor opened with `O_PATH`, `ENOMEM`; `EINVAL` from a kernel that
/// has the option, but not this value; `EMFILE` and `ENFILE` when the module's device cannot be
/// opened for lack of a descriptor.
pub fn enable(socket: impl AsFd, setting: Setting) -> Result<Support, Errno> {
    let socket = socket.as_fd();
    taken(set_option(socket, setting), || module::attach(socket, setting))
}

/// Takes back what [`enable`] did, by the way that it went, and says which that was: no send of the
/// socket is hinted any more, and the module lets go of it.
///
/// # Errors
///
/// Those of [`enable`].
pub fn disable(socket: impl AsFd) -> Result<Support, Errno> {
    let socket = socket.as_fd();
    taken(set_option(socket, Setting::None), || module::detach(socket))
}

/// Who took a setting: the kernel by its option, or else the module.
fn taken(
    by_option: Result<(), Errno>,
    by_module: impl FnOnce() -> Result<Answer<()>, Errno>,
) -> Result<Support, Errno> {
    match by_option {
        Ok(()) => Ok(Support::Kernel),
        Err(Errno::NOPROTOOPT) => Ok(match by_module()? {
            Answer::Done(()) => Support::Module,
            Answer::Declined | Answer::Absent => Support::None,
        }),
        Err(errno) => Err(errno),
    }
}

/// Who would take a socket's hints, and which of its sends are hinted. [`Support::None`] for a
/// socket that isn't attached to the module.
///
/// # Errors
///
/// Those of [`enable`]; `EIO` for a setting that this library doesn't know.
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

/// Sets `SO_NTCOPY`, and reads it back; `ENOPROTOOPT` where the kernel doesn't have it. A sandbox
/// (gVisor) answers that it has set options that it doesn't know.
fn set_option(socket: BorrowedFd<'_>, setting: Setting) -> Result<(), Errno> {
    set_unread(socket, setting)?;
    let is_set = option(socket).is_ok_and(|read| read.value() == setting.value());
    if is_set { Ok(()) } else { Err(Errno::NOPROTOOPT) }
}

fn set_unread(socket: BorrowedFd<'_>, setting: Setting) -> Result<(), Errno> {
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
/// The errno of `socketpair` or `getsockopt`, or of opening the device, when the question could
/// not be put. `EPROTO`: a module is loaded that speaks another series of its interface, which
/// [`other_series`] tells in words.
pub fn probe() -> Result<Support, Errno> {
    let (socket, _peer) = rustix::net::socketpair(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )?;
    match option(socket.as_fd()) {
        Ok(_) => Ok(Support::Kernel),
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

/// The loaded module, if it speaks another series of its interface than this library: then it takes
/// no hints from here.
pub fn other_series() -> Option<OtherSeries> {
    module::other_series()
}

/// [`probe`], where a question that could not be put counts as no support.
pub fn kernel_support() -> Support {
    probe().unwrap_or(Support::None)
}

/// What was counted so far in this network namespace; `None` where neither the kernel nor a module
/// counts.
///
/// # Errors
///
/// A file is there but cannot be read, or not understood.
pub fn counters() -> Result<Option<Counters>, CountersError> {
    Counters::in_folder(Path::new("/proc/net"))
}

/// [`counters`] of the network namespace that a process is in.
///
/// # Errors
///
/// Those of [`counters`].
pub fn counters_of(pid: u32) -> Result<Option<Counters>, CountersError> {
    Counters::in_folder(&PathBuf::from(format!("/proc/{pid}/net")))
}

/// [`counters`] from a copy that was kept, of `/proc/net/netstat` or of the module's file.
///
/// # Errors
///
/// Those of [`counters`].
pub fn counters_in(path: &Path) -> Result<Option<Counters>, CountersError> {
    Counters::read(path)
}

/// `net.core.ntcopy`, one of `uapi::SYSCTL_*`; `None` where this kernel does not have it, and in
/// every network namespace but the first one, such as a container's: it holds there, and is not
/// shown.
pub fn sysctl() -> Option<u8> {
    fs::read_to_string("/proc/sys/net/core/ntcopy").ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: [Setting; 4] =
        [Setting::None, Setting::From(256 << 10), Setting::From(4096), Setting::Flagged];

    #[test]
    fn the_probe_and_the_counters_file_agree() {
        let support = probe().expect("a socket pair can be had");
        assert_eq!(support, kernel_support());
        let counted = counters().expect("a counters file, if there, can be read");
        assert_eq!(support != Support::None, counted.is_some());
        assert!(support != Support::None || sysctl().is_none());
    }

    #[test]
    fn all_settings_get_the_same_answer_on_a_socket_and_are_read_back() {
        let (socket, peer) = std::os::unix::net::UnixStream::pair().unwrap();
        let support = kernel_support();
        assert_eq!(mode(&peer).map(|(_, setting)| setting), Ok(Setting::None), "the default");
        for setting in SETTINGS {
            assert_eq!(enable(&socket, setting), Ok(support), "{setting:?}");
            let expected = if support == Support::None { Setting::None } else { setting };
            assert_eq!(mode(&socket), Ok((support, expected)));
        }
        assert_eq!(enable(&socket, Setting::From(256 << 10)), Ok(support));
        assert_eq!(disable(&socket), Ok(support));
        // The kernel would take any socket, the module has those that are attached.
        let without = if support == Support::Kernel { support } else { Support::None };
        for socket in [&socket, &peer] {
            assert_eq!(mode(socket), Ok((without, Setting::None)));
        }
    }

    #[test]
    fn the_kernel_s_answer_decides_and_the_module_is_asked_only_where_it_lacks_the_option() {
        let module = |answer| move || Ok::<_, Errno>(answer);
        let not_asked = || panic!("the module was asked");
        assert_eq!(taken(Ok(()), not_asked), Ok(Support::Kernel));
        // A kernel of an earlier interface has the option without the value.
        for errno in [Errno::INVAL, Errno::NOTSOCK, Errno::NOMEM] {
            assert_eq!(taken(Err(errno), not_asked), Err(errno));
        }
        for (answer, support) in [
            (Answer::Done(()), Support::Module),
            (Answer::Declined, Support::None),
            (Answer::Absent, Support::None),
        ] {
            assert_eq!(taken(Err(Errno::NOPROTOOPT), module(answer)), Ok(support));
        }
        let failed = taken(Err(Errno::NOPROTOOPT), || Err(Errno::MFILE));
        assert_eq!(failed, Err(Errno::MFILE));
    }

    #[test]
    fn settings_are_read_back_from_their_values() {
        for setting in SETTINGS {
            assert_eq!(Setting::from_value(setting.value()), Some(setting));
        }
        for value in [c_int::MIN, -1, 1, 2, 3, uapi::MIN_BYTES - 1] {
            assert_eq!(Setting::from_value(value), None, "{value}");
        }
        assert_eq!(Setting::From(u32::MAX).value(), uapi::FLAGGED, "no send is as long");
    }

    #[test]
    fn a_number_that_the_kernel_refuses_is_an_error() {
        let (socket, _peer) = std::os::unix::net::UnixStream::pair().unwrap();
        let refused = enable(&socket, Setting::From(4095));
        let without = kernel_support() == Support::None;
        assert_eq!(refused, if without { Ok(Support::None) } else { Err(Errno::INVAL) });
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
