//! Who takes the hint, and how a socket opts in.

use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, AtomicU8, Ordering::Relaxed};

use ntcopy::uapi;

use crate::setters::{self, Setter};
use crate::sys::{self, Errno};
use crate::{active, settings::Mode};

const UNKNOWN: u8 = 0;
const KERNEL: u8 = 1;
const MODULE: u8 = 2;
const ASSUMED: u8 = 3;

/// Who takes the hint, once a socket has been asked.
static TAKER: AtomicU8 = AtomicU8::new(UNKNOWN);
/// Whether the hint is to be obeyed, which only a socket's setting can say, no flag of a send.
static OBEYED: AtomicBool = AtomicBool::new(false);

/// Sockets opt in for this mode from now on.
pub fn choose(mode: Mode) {
    OBEYED.store(mode == Mode::Nt, Relaxed);
}

/// Takes it as known that the kernel hints what carries the flag, and asks no socket about it.
pub fn assume_kernel() {
    TAKER.store(ASSUMED, Relaxed);
}

/// Opts a socket in, and says whether its sends are to carry the flag.
///
/// They are not where neither kernel nor module takes it, where the program has set the socket's
/// option itself, which is its own business, and where the setting hints every send. On a kernel
/// that knows no hint at all, this library has nothing to do any more.
pub fn enable(fd: c_int) -> bool {
    match TAKER.load(Relaxed) {
        ASSUMED => true,
        MODULE => attach(fd),
        _ => match sys::getsockopt(fd, uapi::SO_NTCOPY) {
            Ok(found) => {
                TAKER.store(KERNEL, Relaxed);
                by_option(fd, found)
            }
            Err(Errno(libc::ENOPROTOOPT)) => attach(fd),
            Err(_) => false,
        },
    }
}

/// What a socket is set to that opts in here.
fn wanted() -> c_int {
    if OBEYED.load(Relaxed) { uapi::SOCK_OBEY } else { uapi::SOCK_FLAGGED }
}

/// A setting that was found is the program's, or that of a listener, or of a process before this
/// one, and stays.
fn by_option(fd: c_int, found: c_int) -> bool {
    if setters::setter(fd) == Some(Setter::Program) {
        return false;
    }
    if found != uapi::SOCK_NONE {
        return found == uapi::SOCK_FLAGGED;
    }
    let wanted = wanted();
    // Before it is set: another thread may read it at once.
    setters::note(fd, Setter::Library);
    // An older kernel may refuse the value: the sends stay as they are.
    sys::setsockopt(fd, uapi::SO_NTCOPY, wanted).is_ok() && wanted == uapi::SOCK_FLAGGED
}

/// By the module. The device is opened for each socket and closed again: a descriptor that stayed
/// would be one that the program doesn't know of, and might close.
fn attach(fd: c_int) -> bool {
    let is_known = TAKER.load(Relaxed) == MODULE;
    let device = match sys::open_device(uapi::MODULE_PATH) {
        Ok(device) => device,
        Err(Errno(libc::ENOENT | libc::ENXIO | libc::ENODEV)) => {
            if !is_known {
                active::deactivate();
            }
            return false;
        }
        // No more descriptors, or no right to it here.
        Err(_) => return false,
    };
    let is_hinted = if is_known || speaks_our_series(device) {
        attach_by(device, fd)
    } else {
        active::deactivate();
        false
    };
    sys::close(device);
    is_hinted
}

/// The numbers of another series may mean something else.
fn speaks_our_series(device: c_int) -> bool {
    let mut info = uapi::ModuleInfo { version: 0, series: 0, attached: 0, lingering: 0 };
    // SAFETY: it is the structure of this request.
    let answered = unsafe { sys::ioctl(device, uapi::IOC_INFO, &mut info) };
    answered.is_ok() && info.series == uapi::MODULE_SERIES
}

/// An attached socket is the program's own business, or was attached here before.
fn attach_by(device: c_int, fd: c_int) -> bool {
    let mut socket = uapi::Socket { fd, mode: 0, flags: 0, reserved: 0 };
    // SAFETY: it is the structure of this request.
    if unsafe { sys::ioctl(device, uapi::IOC_QUERY, &mut socket) }.is_err() {
        return false;
    }
    TAKER.store(MODULE, Relaxed);
    if socket.flags & uapi::SOCKET_ATTACHED != 0 {
        return socket.mode == uapi::SOCK_FLAGGED as u32;
    }
    let wanted = wanted();
    let mut socket = uapi::Socket { fd, mode: wanted as u32, flags: 0, reserved: 0 };
    // SAFETY: it is the structure of this request.
    let attached = unsafe { sys::ioctl(device, uapi::IOC_ATTACH, &mut socket) };
    attached.is_ok() && wanted == uapi::SOCK_FLAGGED
}
