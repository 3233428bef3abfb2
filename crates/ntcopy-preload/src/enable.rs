//! Which sockets opt in, from how many bytes on, and by whom: the kernel or the module.

use core::ffi::c_int;
use core::sync::atomic::{AtomicI32, AtomicU8, Ordering::Relaxed};

use ntcopy::recommended::Kind;
use ntcopy::uapi;

use crate::settings::{Families, Settings};
use crate::sys::{self, Errno};

/// The families that were asked for; none: this library does nothing.
static FAMILIES: AtomicU8 = AtomicU8::new(0);
/// From how many bytes on, where that was said.
static MIN_BYTES: AtomicI32 = AtomicI32::new(UNSAID);
const UNSAID: c_int = 0;

const UNKNOWN: u8 = 0;
const KERNEL: u8 = 1;
const MODULE: u8 = 2;

/// Who takes the option, once a socket has been asked.
static TAKER: AtomicU8 = AtomicU8::new(UNKNOWN);

/// Sockets opt in by these settings from now on.
pub fn activate(settings: &Settings) {
    MIN_BYTES.store(settings.min_bytes.unwrap_or(UNSAID), Relaxed);
    FAMILIES.store(settings.families.bits(), Relaxed);
}

/// Every call is the original's alone from now on.
pub fn deactivate() {
    FAMILIES.store(0, Relaxed);
}

/// The number of a socket that is to opt in.
#[inline]
pub fn wanted(domain: c_int, of_type: c_int, protocol: c_int) -> Option<Wanted> {
    let families = Families::from_bits(FAMILIES.load(Relaxed));
    if families.is_empty() {
        return None;
    }
    let kind = Kind::of(domain, of_type, protocol)?;
    let min_bytes = MIN_BYTES.load(Relaxed);
    let said = |recommended: u32| {
        if min_bytes == UNSAID { recommended as c_int } else { min_bytes }
    };
    let wanted = Wanted { value: said(kind.bytes()), by_module: kind.module_bytes().map(said) };
    families.contains(kind.family).then_some(wanted)
}

/// How a socket is to opt in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wanted {
    /// From how many bytes on its sends are hinted.
    pub value: c_int,
    /// The same by the module; none where it would not take the socket.
    by_module: Option<c_int>,
}

/// Opts in a socket that was just made. Where neither kernel nor module takes it, this library has
/// nothing to do any more.
#[cold]
pub fn enable(fd: c_int, wanted: Wanted) {
    if TAKER.load(Relaxed) != MODULE {
        match sys::setsockopt(fd, uapi::SO_NTCOPY, wanted.value) {
            Ok(()) => return TAKER.store(KERNEL, Relaxed),
            Err(Errno(libc::ENOPROTOOPT)) => {}
            // A kernel of another interface.
            Err(Errno(libc::EINVAL)) => return deactivate(),
            Err(_) => return,
        }
    }
    if let Some(value) = wanted.by_module {
        attach(fd, value);
    }
}

/// By the module. The device is opened for each socket and closed again: a descriptor that stayed
/// would be one that the program doesn't know of, and might close.
fn attach(fd: c_int, value: c_int) {
    let is_known = TAKER.load(Relaxed) == MODULE;
    let device = match sys::open_device(uapi::MODULE_PATH) {
        Ok(device) => device,
        Err(Errno(libc::ENOENT | libc::ENXIO | libc::ENODEV)) if !is_known => return deactivate(),
        // No more descriptors, or no right to it here.
        Err(_) => return,
    };
    if is_known || speaks_our_series(device) {
        TAKER.store(MODULE, Relaxed);
        let mut socket = uapi::Socket { fd, min_bytes: value, flags: 0, reserved: 0 };
        // It stays as it is where the module cannot take it.
        // SAFETY: it is the structure of this request.
        let _ = unsafe { sys::ioctl(device, uapi::IOC_ATTACH, &mut socket) };
    } else {
        deactivate();
    }
    sys::close(device);
}

/// The numbers of another series may mean something else.
fn speaks_our_series(device: c_int) -> bool {
    let mut info = uapi::ModuleInfo { version: 0, series: 0, attached: 0, lingering: 0 };
    // SAFETY: it is the structure of this request.
    let answered = unsafe { sys::ioctl(device, uapi::IOC_INFO, &mut info) };
    answered.is_ok() && info.series == uapi::MODULE_SERIES
}

#[cfg(test)]
mod tests {
    use ntcopy::recommended::Family;

    use super::*;

    #[test]
    fn the_number_follows_from_the_kind_and_from_what_was_said() {
        let of = |domain, of_type| wanted(domain, of_type, 0).map(|wanted| wanted.value);
        let by_module =
            |domain| wanted(domain, libc::SOCK_STREAM, 0).map(|wanted| wanted.by_module);
        assert_eq!(of(libc::AF_UNIX, libc::SOCK_STREAM), None, "inactive");
        activate(&Settings::DEFAULT);
        assert_eq!(of(libc::AF_UNIX, libc::SOCK_STREAM), Some(262_144));
        assert_eq!(of(libc::AF_INET6, libc::SOCK_STREAM | libc::SOCK_CLOEXEC), Some(262_144));
        assert_eq!(of(libc::AF_UNIX, libc::SOCK_SEQPACKET), Some(4096));
        assert_eq!(by_module(libc::AF_UNIX), Some(Some(1 << 20)));
        assert_eq!(by_module(libc::AF_INET), Some(None));
        assert_eq!(of(libc::AF_INET, libc::SOCK_DGRAM), None, "not asked for");
        let (families, min_bytes) = (Families::of(Family::Udp), Some(65_536));
        activate(&Settings { families, min_bytes, ..Settings::DEFAULT });
        assert_eq!(of(libc::AF_INET, libc::SOCK_DGRAM), Some(65_536));
        assert_eq!(of(libc::AF_UNIX, libc::SOCK_STREAM), None);
        deactivate();
        assert_eq!(of(libc::AF_INET, libc::SOCK_DGRAM), None);
    }
}
