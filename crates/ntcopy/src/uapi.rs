//! The numbers of the kernel interface, copied from `uapi/ntcopy/uapi.h`.
//!
//! Tests of this module hold them against that header.

use core::ffi::{CStr, c_int};

/// Send flag: these bytes will not be looked at again. A socket that did not opt in by
/// [`SO_NTCOPY`] ignores it.
pub const MSG_NTCOPY: u32 = 0x100_0000;
/// Socket option at level `SOL_SOCKET`, an int: from how many bytes on a send is hinted. 0: none.
pub const SO_NTCOPY: c_int = 0x4e54;
/// [`SO_NTCOPY`]: the least number but for 0.
pub const MIN_BYTES: c_int = 4096;
/// [`SO_NTCOPY`]: only the sends that carry [`MSG_NTCOPY`] are hinted.
pub const FLAGGED: c_int = c_int::MAX;

/// `net.core.ntcopy`: hints are ignored.
pub const SYSCTL_OFF: u8 = 0;
/// `net.core.ntcopy`: hints are obeyed.
pub const SYSCTL_OBEY: u8 = 1;
/// `net.core.ntcopy`: every send is hinted; only in kernels with the test patches.
pub const SYSCTL_ALL: u8 = 2;

/// Where the kernel counts, in the group `TcpExt`.
pub const STAT_PATH: &str = "/proc/net/netstat";
/// Bytes sent on sockets that opted in.
pub const STAT_BYTES: &str = "NtcopyBytes";
/// Bytes of hinted sends.
pub const STAT_HINTED: &str = "NtcopyHintedBytes";
/// Bytes of sends of which at least one piece went past the caches.
pub const STAT_BYPASSED: &str = "NtcopyBypassedBytes";
/// Where the module counts, a line for each name.
pub const MODULE_STAT_PATH: &str = "/proc/net/ntcopy";

/// The module's least number but for 0, to which it rounds up; it hints no send of fewer bytes.
pub const MODULE_MIN_BYTES: c_int = 0x40000;
/// Where the module answers, on kernels without the flag.
pub const MODULE_PATH: &CStr = c"/dev/ntcopy";

/// A socket, as [`IOC_ATTACH`], [`IOC_DETACH`] and [`IOC_QUERY`] of `/dev/ntcopy` take it.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Socket {
    /// A socket of the caller.
    pub fd: i32,
    /// As [`SO_NTCOPY`] has it; of a query: the answer.
    pub min_bytes: i32,
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
/// Attaches a socket, or sets the number of one that is.
pub const IOC_ATTACH: u32 = ioctl(WRITE, 0xc0, size_of::<Socket>());
/// Detaches a socket.
pub const IOC_DETACH: u32 = ioctl(WRITE, 0xc1, size_of::<Socket>());
/// Asks about a socket.
pub const IOC_QUERY: u32 = ioctl(READ | WRITE, 0xc2, size_of::<Socket>());
/// Asks about the module.
pub const IOC_INFO: u32 = ioctl(READ, 0xc3, size_of::<ModuleInfo>());

/// The series of the interface of `/dev/ntcopy` that this library speaks, [`ModuleInfo::series`].
pub const MODULE_SERIES: u32 = 3;

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
