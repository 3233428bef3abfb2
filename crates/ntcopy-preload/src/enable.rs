//! Who takes the hint, and what a socket needs before it is taken.

use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, AtomicU8, Ordering::Relaxed};

use ntcopy::uapi;

use crate::sys::{self, Errno};
use crate::{active, settings::Mode};

const UNKNOWN: u8 = 0;
const KERNEL: u8 = 1;
const MODULE: u8 = 2;

/// Who takes the hint, once a socket has been asked.
static TAKER: AtomicU8 = AtomicU8::new(UNKNOWN);
/// Whether the hint is to be obeyed, which only a socket's setting can say, no flag of a send.
static OBEYED: AtomicBool = AtomicBool::new(false);

/// From now on, sockets are readied for this mode.
pub fn choose(mode: Mode) {
    OBEYED.store(mode == Mode::Nt, Relaxed);
}

/// Takes it as known that the kernel knows the flag, and asks no socket about it.
pub fn assume_kernel() {
    TAKER.store(KERNEL, Relaxed);
}

/// Readies a socket for the hint, and says whether its sends are to carry the flag.
///
/// They are not where nobody takes it, and where the socket's own setting hints every send: that
/// which `--mode nt` gives it here, or one that the program has made itself, which is its own
/// business. Where the kernel knows no hint at all, this library has nothing to do any more.
pub fn enable(fd: c_int) -> bool {
    match TAKER.load(Relaxed) {
        KERNEL if !OBEYED.load(Relaxed) => true,
        MODULE => attach(fd),
        _ => match sys::getsockopt(fd, uapi::SO_NTCOPY) {
            Ok(setting) => {
                TAKER.store(KERNEL, Relaxed);
                by_option(fd, setting)
            }
            Err(Errno(libc::ENOPROTOOPT)) => attach(fd),
            Err(_) => false,
        },
    }
}

/// Whether the flag may be refused: the module takes it out on its way to the kernel's own code, but
/// what comes between them later, such as TLS in the kernel, gets to see it.
pub fn may_be_refused() -> bool {
    TAKER.load(Relaxed) == MODULE
}

fn by_option(fd: c_int, setting: c_int) -> bool {
    if !OBEYED.load(Relaxed) {
        return true;
    }
    if setting == uapi::SOCK_NONE {
        // Where it fails, the sends stay as they are.
        let _ = sys::setsockopt(fd, uapi::SO_NTCOPY, uapi::SOCK_OBEY);
    }
    false
}

/// By the module. The device is opened for each socket and closed again: a descriptor that stayed
/// would be one that the program doesn't know of, and might close.
fn attach(fd: c_int) -> bool {
    let device = match sys::open_device(uapi::MODULE_PATH) {
        Ok(device) => device,
        Err(Errno(libc::ENOENT | libc::ENXIO | libc::ENODEV)) => {
            if TAKER.load(Relaxed) == UNKNOWN {
                active::deactivate();
            }
            return false;
        }
        // No more descriptors, or no right to it here.
        Err(_) => return false,
    };
    let is_hinted = attach_by(device, fd);
    sys::close(device);
    is_hinted
}

fn attach_by(device: c_int, fd: c_int) -> bool {
    let mut socket = uapi::Socket { fd, mode: 0, flags: 0, reserved: 0 };
    // SAFETY: it is the structure of this request.
    if unsafe { sys::ioctl(device, uapi::IOC_QUERY, &mut socket) }.is_err() {
        return false;
    }
    TAKER.store(MODULE, Relaxed);
    let is_attached = socket.flags & uapi::SOCKET_ATTACHED != 0;
    if is_attached && socket.mode != uapi::SOCK_NONE as u32 {
        return false;
    }
    let is_obeyed = OBEYED.load(Relaxed);
    if is_attached && !is_obeyed {
        return true;
    }
    let mode = if is_obeyed { uapi::SOCK_OBEY } else { uapi::SOCK_NONE };
    let mut socket = uapi::Socket { fd, mode: mode as u32, flags: 0, reserved: 0 };
    // SAFETY: it is the structure of this request.
    let attached = unsafe { sys::ioctl(device, uapi::IOC_ATTACH, &mut socket) };
    attached.is_ok() && !is_obeyed
}
