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

#[cfg(test)]
mod tests {
    use super::*;

    /// What a `#define` of the header must be.
    #[derive(Debug, PartialEq)]
    enum Value {
        Number(i64),
        Text(&'static str),
    }

    const fn number(value: c_int) -> Value {
        Value::Number(value as i64)
    }

    /// The header's names and this file's constants.
    fn rust() -> Vec<(&'static str, Value)> {
        vec![
            ("MSG_NTCOPY", Value::Number(MSG_NTCOPY.into())),
            ("SO_NTCOPY", number(SO_NTCOPY)),
            ("NTCOPY_SOCK_NONE", number(SOCK_NONE)),
            ("NTCOPY_SOCK_HINT", number(SOCK_HINT)),
            ("NTCOPY_SOCK_OBEY", number(SOCK_OBEY)),
            ("NTCOPY_SYSCTL_OFF", number(SYSCTL_OFF.into())),
            ("NTCOPY_SYSCTL_ADAPTIVE", number(SYSCTL_ADAPTIVE.into())),
            ("NTCOPY_SYSCTL_OBEY", number(SYSCTL_OBEY.into())),
            ("NTCOPY_SYSCTL_ALL", number(SYSCTL_ALL.into())),
            ("NTCOPY_STAT_PATH", Value::Text(STAT_PATH)),
            ("NTCOPY_STAT_NONTEMPORAL", Value::Text(STAT_NONTEMPORAL)),
            ("NTCOPY_STAT_FITS_CACHE", Value::Text(STAT_FITS_CACHE)),
            ("NTCOPY_STAT_TOO_SMALL", Value::Text(STAT_TOO_SMALL)),
            ("NTCOPY_STAT_CHECKSUMMED", Value::Text(STAT_CHECKSUMMED)),
            ("NTCOPY_STAT_SOFTWARE_TLS", Value::Text(STAT_SOFTWARE_TLS)),
            ("NTCOPY_STAT_NOT_SUPPORTED", Value::Text(STAT_NOT_SUPPORTED)),
        ]
    }

    /// Every `#define NAME value` of the header, the include guard left out.
    fn header() -> Vec<(&'static str, Value)> {
        let text: &'static str =
            include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../uapi/ntcopy.h"));
        text.lines()
            .filter_map(|line| line.strip_prefix("#define"))
            .map(|rest| rest.split_once("/*").map_or(rest, |(value, _)| value).trim())
            .filter(|rest| *rest != "NTCOPY_H")
            .map(|rest| {
                let (name, value) = rest.split_once(char::is_whitespace).expect("a value");
                (name, parse(value.trim()))
            })
            .collect()
    }

    fn parse(value: &'static str) -> Value {
        if let Some(text) = value.strip_prefix('"') {
            return Value::Text(text.strip_suffix('"').expect("a closing quote"));
        }
        let number = match value.strip_prefix("0x") {
            Some(digits) => i64::from_str_radix(digits, 16),
            None => value.parse(),
        };
        Value::Number(number.unwrap_or_else(|error| panic!("{value}: {error}")))
    }

    #[test]
    fn the_header_and_this_file_say_the_same() {
        let (mut header, mut rust) = (header(), rust());
        header.sort_by_key(|(name, _)| *name);
        rust.sort_by_key(|(name, _)| *name);
        assert_eq!(header, rust, "left: uapi/ntcopy.h, right: uapi.rs");
    }

    #[test]
    fn every_constant_of_this_file_is_held_against_the_header() {
        // A constant that is added here but not to rust() above would be held against nothing.
        let constants =
            include_str!("uapi.rs").lines().filter(|line| line.starts_with("pub const ")).count();
        assert_eq!(constants, rust().len());
    }
}
