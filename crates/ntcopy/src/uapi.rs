//! The numbers of the kernel interface, copied from `uapi/ntcopy.h`.
//!
//! Tests of this module hold them against that header.

use core::ffi::{CStr, c_int};

/// Send flag: these bytes will not be looked at again. A socket that did not opt in by
/// [`SO_NTCOPY`] ignores it.
pub const MSG_NTCOPY: u32 = 0x100_0000;
/// Socket option at level `SOL_SOCKET`, an int: one of `SOCK_*`.
pub const SO_NTCOPY: c_int = 0x4e54;

/// [`SO_NTCOPY`]: no send of the socket is hinted, whatever flag it carries.
pub const SOCK_NONE: c_int = 0;
/// [`SO_NTCOPY`]: the sends that carry [`MSG_NTCOPY`] are hinted.
pub const SOCK_FLAGGED: c_int = 1;
/// [`SO_NTCOPY`]: every send of the socket is hinted.
pub const SOCK_EVERY: c_int = 2;
/// [`SO_NTCOPY`]: every send of the socket is hinted, and the rule is not asked.
pub const SOCK_OBEY: c_int = 3;

/// `net.core.ntcopy`: hints are ignored.
pub const SYSCTL_OFF: u8 = 0;
/// `net.core.ntcopy`: the rule decides.
pub const SYSCTL_RULE: u8 = 1;
/// `net.core.ntcopy`: every hint is obeyed.
pub const SYSCTL_OBEY: u8 = 2;
/// `net.core.ntcopy`: every send counts as hinted, and is obeyed; only in kernels with the test
/// patches.
pub const SYSCTL_ALL: u8 = 3;

/// Where the kernel counts what became of the hints.
pub const STAT_PATH: &str = "/proc/net/ntcopy_stat";
/// Bytes copied non-temporally.
pub const STAT_NONTEMPORAL: &str = "nontemporal_bytes";
/// Copied normally: no more is in flight than the rule grants.
pub const STAT_FITS_CACHE: &str = "fits_cache_bytes";
/// Copied normally: in pieces below a page.
pub const STAT_TOO_SMALL: &str = "too_small_bytes";
/// Copied normally: the kernel itself reads the bytes right away, to encrypt or checksum them.
pub const STAT_READ_BY_KERNEL: &str = "read_by_kernel_bytes";
/// Copied normally: no non-temporal copy on this path or CPU.
pub const STAT_NOT_SUPPORTED: &str = "not_supported_bytes";

/// Where the module answers, on kernels without the flag.
pub const MODULE_PATH: &CStr = c"/dev/ntcopy";

/// A socket, as [`IOC_ATTACH`], [`IOC_DETACH`] and [`IOC_QUERY`] of `/dev/ntcopy` take it.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Socket {
    /// A socket of the caller.
    pub fd: i32,
    /// One of `SOCK_*`; of a query: the answer.
    pub mode: u32,
    /// 0; of a query: [`SOCKET_ATTACHED`] or not.
    pub flags: u32,
    /// 0.
    pub reserved: u32,
}

/// What the module says of itself, [`IOC_INFO`].
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ModuleInfo {
    /// The module's version: major << 16 | minor << 8 | patch.
    pub version: u32,
    /// The interface's series: [`MODULE_SERIES`], if it is the one of this library.
    pub series: u32,
    /// Sockets that are attached.
    pub attached: u64,
    /// Sockets that were detached, and are not closed yet.
    pub lingering: u64,
}

/// Answer of a query: the socket is attached.
pub const SOCKET_ATTACHED: u32 = 1;
/// Attaches a socket, or sets the mode of one that is.
pub const IOC_ATTACH: u32 = ioctl(WRITE, 0xc0, size_of::<Socket>());
/// Detaches a socket.
pub const IOC_DETACH: u32 = ioctl(WRITE, 0xc1, size_of::<Socket>());
/// Asks about a socket.
pub const IOC_QUERY: u32 = ioctl(READ | WRITE, 0xc2, size_of::<Socket>());
/// Asks about the module.
pub const IOC_INFO: u32 = ioctl(READ, 0xc3, size_of::<ModuleInfo>());

/// The series of the interface of `/dev/ntcopy` that this library speaks, [`ModuleInfo::series`].
pub const MODULE_SERIES: u32 = 2;

/// What an ioctl's number says of its argument; from `asm-generic/ioctl.h`.
const WRITE: u32 = 1;
const READ: u32 = 2;

/// The number of an ioctl of type `N`, as `asm-generic/ioctl.h` puts it together.
const fn ioctl(direction: u32, number: u32, size_bytes: usize) -> u32 {
    direction << 30 | (size_bytes as u32) << 16 | (b'N' as u32) << 8 | number
}

#[cfg(test)]
#[path = "uapi_tests.rs"]
mod tests;
