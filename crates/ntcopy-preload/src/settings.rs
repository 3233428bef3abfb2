//! What `ntcopy run` tells this library, through the environment.

use core::ffi::{CStr, c_char, c_int};

use ntcopy::recommended::Family;
use ntcopy::uapi;

/// From how many bytes on sends are hinted, whatever the socket.
pub const MIN_BYTES: &CStr = c"NTCOPY_PRELOAD_MIN_BYTES";
/// The families whose sockets are hinted: of `unix`, `tcp`, `udp`, with commas.
pub const FAMILIES: &CStr = c"NTCOPY_PRELOAD_FAMILIES";
/// The number of filters of system calls under which what this library does was tried.
pub const FILTERS: &CStr = c"NTCOPY_PRELOAD_FILTERS";

/// Families of sockets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Families(u8);

impl Families {
    pub const fn of(family: Family) -> Self {
        Families(1 << family as u8)
    }

    pub const fn bits(self) -> u8 {
        self.0
    }

    pub const fn from_bits(bits: u8) -> Self {
        Families(bits)
    }

    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub const fn contains(self, family: Family) -> bool {
        self.0 & Families::of(family).0 != 0
    }

    const fn and(self, family: Family) -> Self {
        Families(self.0 | Families::of(family).0)
    }
}

/// All settings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// None: as it is recommended for each kind of socket.
    pub min_bytes: Option<c_int>,
    pub families: Families,
    /// The number of filters of system calls that allow what this library does.
    pub allowing_filters: usize,
}

impl Settings {
    /// What holds where nothing is said.
    pub const DEFAULT: Settings = Settings {
        min_bytes: None,
        families: Families::of(Family::Unix).and(Family::Tcp),
        allowing_filters: 0,
    };
}

/// A setting that is not understood.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bad<'a> {
    pub variable: &'static CStr,
    pub value: &'a [u8],
    /// What it may be.
    pub wanted: &'static str,
}

/// Settings from values of variables; what is not set is as by default.
pub fn parse<'a>(value: impl Fn(&CStr) -> Option<&'a [u8]>) -> Result<Settings, Bad<'a>> {
    let mut settings = Settings::DEFAULT;
    if let Some(value) = value(MIN_BYTES) {
        let wanted = "a number of bytes from 4096 to 2147483647";
        let bytes = min_bytes(value).ok_or(Bad { variable: MIN_BYTES, value, wanted })?;
        settings.min_bytes = Some(bytes);
    }
    if let Some(value) = value(FAMILIES) {
        let wanted = "unix, tcp, udp or several of them with commas";
        settings.families = families(value).ok_or(Bad { variable: FAMILIES, value, wanted })?;
    }
    if let Some(value) = value(FILTERS) {
        let wanted = "a number of filters";
        settings.allowing_filters =
            number(value).ok_or(Bad { variable: FILTERS, value, wanted })?;
    }
    Ok(settings)
}

fn min_bytes(text: &[u8]) -> Option<c_int> {
    let bytes = c_int::try_from(number(text)?).ok()?;
    (bytes >= uapi::MIN_BYTES).then_some(bytes)
}

/// A number in decimal digits, and nothing else.
pub fn number(text: &[u8]) -> Option<usize> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0_usize, |number, byte| {
        let digit = byte.checked_sub(b'0').filter(|digit| *digit < 10)?;
        number.checked_mul(10)?.checked_add(digit.into())
    })
}

fn families(text: &[u8]) -> Option<Families> {
    text.split(|byte| *byte == b',').try_fold(Families(0), |all, name| {
        let family = match name {
            b"unix" => Family::Unix,
            b"tcp" => Family::Tcp,
            b"udp" => Family::Udp,
            _ => return None,
        };
        Some(all.and(family))
    })
}

/// The value of a variable in an environment as a program gets it.
///
/// # Safety
///
/// - `environment` is null or a list of strings that ends with a null pointer, and stays unchanged
///   for `'a`.
pub unsafe fn variable<'a>(environment: *const *const c_char, name: &CStr) -> Option<&'a [u8]> {
    if environment.is_null() {
        return None;
    }
    let mut entry = environment;
    loop {
        // SAFETY: the list has not ended yet.
        let text = unsafe { *entry };
        if text.is_null() {
            return None;
        }
        // SAFETY: an entry of the list is a string.
        let text = unsafe { CStr::from_ptr(text) }.to_bytes();
        let value = text.strip_prefix(name.to_bytes()).and_then(|rest| rest.strip_prefix(b"="));
        if value.is_some() {
            return value;
        }
        entry = entry.wrapping_add(1);
    }
}

#[cfg(test)]
mod tests {
    use std::ptr;

    use super::*;

    fn one(name: &'static CStr, text: &'static str) -> Result<Settings, Bad<'static>> {
        parse(|variable| (variable == name).then_some(text.as_bytes()))
    }

    #[test]
    fn nothing_said_is_the_default() {
        assert_eq!(parse(|_| None), Ok(Settings::DEFAULT));
        let families = Settings::DEFAULT.families;
        assert!(families.contains(Family::Unix) && families.contains(Family::Tcp));
        assert!(!families.contains(Family::Udp));
    }

    #[test]
    fn each_is_understood_or_named() {
        assert_eq!(one(MIN_BYTES, "4096").unwrap().min_bytes, Some(4096));
        assert_eq!(one(MIN_BYTES, "2147483647").unwrap().min_bytes, Some(c_int::MAX));
        assert_eq!(one(FAMILIES, "udp").unwrap().families, Families::of(Family::Udp));
        assert_eq!(one(FAMILIES, "unix,tcp,udp").unwrap().families.bits(), 7);
        assert_eq!(one(FILTERS, "3").unwrap().allowing_filters, 3);
        for (name, texts) in [
            (MIN_BYTES, &["", "-1", "4k", " 1", "0", "4095", "2147483648", "0x10"][..]),
            (FAMILIES, &["", "unix,", "tcp udp", "inet", "TCP"]),
            (FILTERS, &["", "-1", "all", "18446744073709551616"]),
        ] {
            for text in texts {
                let bad = one(name, text).unwrap_err();
                assert_eq!((bad.variable, bad.value), (name, text.as_bytes()));
            }
        }
    }

    #[test]
    fn the_environment_is_searched_by_whole_names() {
        let entries = [
            c"NTCOPY_PRELOAD_FILTERSET=x",
            c"A=NTCOPY_PRELOAD_FILTERS=y",
            c"",
            c"=",
            c"NTCOPY_PRELOAD_FILTERS",
            c"NTCOPY_PRELOAD_FILTERS=7",
            c"NTCOPY_PRELOAD_FILTERS=8",
        ];
        let mut list: Vec<_> = entries.iter().map(|entry| entry.as_ptr()).collect();
        list.push(ptr::null());
        // SAFETY: a list of strings that ends with null.
        unsafe {
            assert_eq!(variable(list.as_ptr(), FILTERS), Some(&b"7"[..]));
            assert_eq!(variable(list.as_ptr(), FAMILIES), None);
            assert_eq!(variable(ptr::null(), FILTERS), None);
        }
    }
}
