//! The module's device: `/dev/ntcopy`, and what it is asked.

use std::error::Error;
use std::ffi::c_int;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, IntoRawFd, OwnedFd};
use std::sync::atomic::{AtomicI32, Ordering};
use std::{fmt, io};

use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;

use super::Setting;
use crate::uapi;

/// What the module did with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer<T> {
    /// It took it.
    Done(T),
    /// It cannot help this socket: its kind (`EOPNOTSUPP`), or another module has its operations
    /// (`EBUSY`).
    Declined,
    /// There is no module, or one of another series.
    Absent,
}

/// Attaches a socket, or changes the number of one that is.
pub(super) fn attach(socket: BorrowedFd<'_>, setting: Setting) -> Result<Answer<()>, Errno> {
    let mut argument = uapi::Socket { min_bytes: setting.value(), ..named(socket) };
    Ok(ask(uapi::IOC_ATTACH, &mut argument)?.map(drop))
}

/// Detaches a socket. One that isn't attached is none the worse for it.
pub(super) fn detach(socket: BorrowedFd<'_>) -> Result<Answer<()>, Errno> {
    Ok(ask(uapi::IOC_DETACH, &mut named(socket))?.map(drop))
}

/// The setting of a socket; [`Answer::Declined`] if it isn't attached.
pub(super) fn query(socket: BorrowedFd<'_>) -> Result<Answer<Setting>, Errno> {
    let answer = ask(uapi::IOC_QUERY, &mut named(socket))?;
    Ok(match answer {
        Answer::Done(socket) if socket.flags & uapi::SOCKET_ATTACHED == 0 => Answer::Declined,
        Answer::Done(socket) => {
            Answer::Done(Setting::from_value(socket.min_bytes).ok_or(Errno::IO)?)
        }
        Answer::Declined => Answer::Declined,
        Answer::Absent => Answer::Absent,
    })
}

/// What the module says of itself, through a descriptor of its own that doesn't stay open: looking
/// must not keep the module from being unloaded. `None` where there is none.
pub(super) fn info() -> Result<Option<uapi::ModuleInfo>, Errno> {
    let device = match open(uapi::MODULE_PATH, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()) {
        Ok(device) => device,
        Err(Errno::NOENT | Errno::NXIO | Errno::NODEV) => return Ok(None),
        Err(errno) => return Err(errno),
    };
    let mut info = uapi::ModuleInfo::default();
    ioctl(device.as_fd(), uapi::IOC_INFO, &mut info)?;
    Ok(Some(info))
}

/// Whether the module is there; `EPROTO` where it speaks another series of this interface.
pub(super) fn is_there() -> Result<bool, Errno> {
    match device()? {
        Some(_) => Ok(true),
        None if other_series().is_some() => Err(Errno::PROTO),
        None => Ok(false),
    }
}

/// A loaded module that speaks another series of the interface of `/dev/ntcopy` than this library.
/// The numbers of one series may mean something else in another, so neither uses the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OtherSeries(
    /// The module's.
    pub u32,
);

impl fmt::Display for OtherSeries {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (module, ours) = (self.0, uapi::MODULE_SERIES);
        let older = if module < ours { "the module" } else { "this program" };
        write!(
            out,
            "the module that is loaded speaks series {module} of its interface, and this program \
             series {ours}: {older} is the older one, and has to be that of the other's version"
        )
    }
}

impl Error for OtherSeries {}

/// Asks the module that is loaded, if one is.
pub(super) fn other_series() -> Option<OtherSeries> {
    info().ok().flatten().and_then(|info| OtherSeries::of(&info))
}

impl OtherSeries {
    /// The module's series, if it is not the one of this library.
    pub fn of(info: &uapi::ModuleInfo) -> Option<OtherSeries> {
        (info.series != uapi::MODULE_SERIES).then_some(OtherSeries(info.series))
    }
}

impl<T> Answer<T> {
    fn map<U>(self, change: impl FnOnce(T) -> U) -> Answer<U> {
        match self {
            Answer::Done(value) => Answer::Done(change(value)),
            Answer::Declined => Answer::Declined,
            Answer::Absent => Answer::Absent,
        }
    }
}

fn named(socket: BorrowedFd<'_>) -> uapi::Socket {
    uapi::Socket { fd: socket.as_raw_fd(), ..uapi::Socket::default() }
}

/// Puts a request to the module.
fn ask(request: u32, argument: &mut uapi::Socket) -> Result<Answer<uapi::Socket>, Errno> {
    let Some(device) = device()? else { return Ok(Answer::Absent) };
    match ioctl(device, request, argument) {
        Ok(()) => Ok(Answer::Done(*argument)),
        Err(Errno::OPNOTSUPP | Errno::BUSY) => Ok(Answer::Declined),
        Err(Errno::NOTTY) => Ok(Answer::Absent),
        Err(errno) => Err(errno),
    }
}

/// The device's descriptor, or one of the two below. No lock and no memory: a child of a fork and a
/// signal handler may ask.
static DEVICE: AtomicI32 = AtomicI32::new(NOT_ASKED);
const NOT_ASKED: c_int = -1;
const NONE: c_int = -2;

/// The device, opened at the first question and kept: the process holds the module in the kernel
/// from then on. A process that found none doesn't look again.
fn device() -> Result<Option<BorrowedFd<'static>>, Errno> {
    let known = DEVICE.load(Ordering::Acquire);
    let device = if known == NOT_ASKED { keep(open_device()?) } else { known };
    // SAFETY: a descriptor that `keep` has kept stays open until the process ends.
    Ok((device >= 0).then(|| unsafe { BorrowedFd::borrow_raw(device) }))
}

fn open_device() -> Result<Option<OwnedFd>, Errno> {
    match open(uapi::MODULE_PATH, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()) {
        Ok(device) => Ok(Some(device).filter(|device| speaks_our_interface(device.as_fd()))),
        // Not there, or not for us.
        Err(
            Errno::NOENT | Errno::NXIO | Errno::NODEV | Errno::NOTDIR | Errno::ACCESS | Errno::PERM,
        ) => Ok(None),
        // No answer to the question: too many open files, no memory.
        Err(errno) => Err(errno),
    }
}

/// Keeps what was opened, unless another thread was first; gives what is kept.
fn keep(opened: Option<OwnedFd>) -> c_int {
    let ours = opened.as_ref().map_or(NONE, AsRawFd::as_raw_fd);
    match DEVICE.compare_exchange(NOT_ASKED, ours, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => opened.map_or(NONE, IntoRawFd::into_raw_fd),
        Err(theirs) => theirs,
    }
}

fn speaks_our_interface(device: BorrowedFd<'_>) -> bool {
    let mut info = uapi::ModuleInfo::default();
    ioctl(device, uapi::IOC_INFO, &mut info).is_ok() && OtherSeries::of(&info).is_none()
}

/// What an ioctl of the module takes and fills in.
trait Argument {}

impl Argument for uapi::Socket {}
impl Argument for uapi::ModuleInfo {}

fn ioctl<T: Argument>(device: BorrowedFd<'_>, request: u32, argument: &mut T) -> Result<(), Errno> {
    // SAFETY: the numbers of this interface say the size of their argument, which is the
    // structure's, and a device that isn't the module's doesn't know the numbers; the borrow keeps
    // the structure alive and for itself.
    let result: c_int = unsafe {
        libc::ioctl(device.as_raw_fd(), request as libc::Ioctl, std::ptr::from_mut(argument))
    };
    match result {
        0.. => Ok(()),
        _ => Err(Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_of_another_series_is_named_with_both_numbers() {
        let info = |series| uapi::ModuleInfo { series, ..uapi::ModuleInfo::default() };
        assert_eq!(OtherSeries::of(&info(uapi::MODULE_SERIES)), None);
        for (series, older) in [(2, "the module is the older"), (4, "this program is the older")] {
            let text = OtherSeries::of(&info(series)).expect("another one").to_string();
            let both = format!("series {series} of its interface, and this program series 3: ");
            assert!(text.contains(&both) && text.contains(older), "{text}");
        }
    }
}
