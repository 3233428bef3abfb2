//! The numbers of the kernel interface, copied from `uapi/ntcopy.h`.
//!
//! A test in this file holds them against that header.

use core::ffi::c_int;

/// Send flag: these bytes will not be looked at again.
pub const MSG_NTCOPY: u32 = 0x100_0000;
/// Socket option at level `SOL_SOCKET`, an int: [`SOCK_NONE`], [`SOCK_HINT`] or [`SOCK_OBEY`].
pub const SO_NTCOPY: c_int = 0x4e54;

/// [`SO_NTCOPY`]: only sends that carry [`MSG_NTCOPY`] are hinted.
pub const SOCK_NONE: c_int = 0;
/// [`SO_NTCOPY`]: every send of the socket is hinted.
pub const SOCK_HINT: c_int = 1;
/// [`SO_NTCOPY`]: every send of the socket is hinted, and the hint is obeyed.
pub const SOCK_OBEY: c_int = 2;

/// `net.core.ntcopy`: hints are ignored.
pub const SYSCTL_OFF: u8 = 0;
/// `net.core.ntcopy`: the kernel decides per fragment.
pub const SYSCTL_ADAPTIVE: u8 = 1;
/// `net.core.ntcopy`: every hint is obeyed.
pub const SYSCTL_OBEY: u8 = 2;
/// `net.core.ntcopy`: every send counts as hinted, and is obeyed.
pub const SYSCTL_ALL: u8 = 3;

/// Where the kernel counts what became of the hints.
pub const STAT_PATH: &str = "/proc/net/ntcopy_stat";
/// Bytes copied non-temporally.
pub const STAT_NONTEMPORAL: &str = "nontemporal_bytes";
/// Copied normally: the bytes in flight fit the cache.
pub const STAT_FITS_CACHE: &str = "fits_cache_bytes";
/// Copied normally: the send was below `net.core.ntcopy_min_bytes`.
pub const STAT_TOO_SMALL: &str = "too_small_bytes";
/// Copied normally: checksummed while copied.
pub const STAT_CHECKSUMMED: &str = "checksummed_bytes";
/// Copied normally: the CPU encrypts the bytes right away.
pub const STAT_SOFTWARE_TLS: &str = "software_tls_bytes";
/// Copied normally: no non-temporal copy on this path or CPU.
pub const STAT_NOT_SUPPORTED: &str = "not_supported_bytes";
