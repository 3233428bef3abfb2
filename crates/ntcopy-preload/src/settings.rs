//! What `ntcopy run` tells this library, through the environment.

use core::ffi::{CStr, c_char};

/// The smallest send that is hinted, in bytes.
pub const MIN_BYTES: &CStr = c"NTCOPY_PRELOAD_MIN_BYTES";
/// The families whose sockets are hinted: of `unix`, `tcp`, `udp`, with commas.
pub const FAMILIES: &CStr = c"NTCOPY_PRELOAD_FAMILIES";
/// `adaptive` or `nt`.
pub const MODE: &CStr = c"NTCOPY_PRELOAD_MODE";
/// The number of filters of system calls under which what this library does was tried.
pub const FILTERS: &CStr = c"NTCOPY_PRELOAD_FILTERS";
/// `kernel`: the kernel is taken to hint what carries the flag, and not asked. For tests.
pub const ASSUME: &CStr = c"NTCOPY_PRELOAD_ASSUME";

/// Families of sockets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Families(u8);

impl Families {
    pub const UNIX: Families = Families(1);
    /// TCP and MPTCP, over IPv4 and IPv6.
    pub const TCP: Families = Families(2);
    /// UDP and UDP-Lite, over IPv4 and IPv6.
    pub const UDP: Families = Families(4);

    pub const fn bits(self) -> u8 {
        self.0
    }

    pub const fn from_bits(bits: u8) -> Self {
        Families(bits)
    }

    pub const fn contains(self, other: Families) -> bool {
        self.0 & other.0 == other.0
    }
}

/// Whether the kernel may have a second thought.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// It may: the socket takes flagged sends, and each large one carries `MSG_NTCOPY`.
    Adaptive,
    /// It may not: the socket's setting has every send hinted and obeyed.
    Nt,
}

/// All settings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    pub min_bytes: usize,
    pub families: Families,
    pub mode: Mode,
    /// The number of filters of system calls that allow what this library does.
    pub allowing_filters: usize,
    pub assume_kernel: bool,
}

impl Settings {
    /// What holds where nothing is said.
    pub const DEFAULT: Settings = Settings {
        // A page: the kernel copies smaller pieces normally.
        min_bytes: 4096,
        families: Families(Families::UNIX.0 | Families::TCP.0),
        mode: Mode::Adaptive,
        allowing_filters: 0,
        assume_kernel: false,
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
        let wanted = "a number of bytes";
        settings.min_bytes = number(value).ok_or(Bad { variable: MIN_BYTES, value, wanted })?;
    }
    if let Some(value) = value(FAMILIES) {
        let wanted = "unix, tcp, udp or several of them with commas";
        settings.families = families(value).ok_or(Bad { variable: FAMILIES, value, wanted })?;
    }
    if let Some(value) = value(MODE) {
        settings.mode = match value {
            b"adaptive" => Mode::Adaptive,
            b"nt" => Mode::Nt,
            _ => return Err(Bad { variable: MODE, value, wanted: "adaptive or nt" }),
        };
    }
    if let Some(value) = value(FILTERS) {
        let wanted = "a number of filters";
        settings.allowing_filters =
            number(value).ok_or(Bad { variable: FILTERS, value, wanted })?;
    }
    if let Some(value) = value(ASSUME) {
        if value != b"kernel" {
            return Err(Bad { variable: ASSUME, value, wanted: "kernel" });
        }
        settings.assume_kernel = true;
    }
    Ok(settings)
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
            b"unix" => Families::UNIX,
            b"tcp" => Families::TCP,
            b"udp" => Families::UDP,
            _ => return None,
        };
        Some(Families(all.0 | family.0))
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
        assert!(families.contains(Families::UNIX) && families.contains(Families::TCP));
        assert!(!families.contains(Families::UDP));
    }

    #[test]
    fn each_is_understood_or_named() {
        assert_eq!(one(MIN_BYTES, "0").unwrap().min_bytes, 0);
        assert_eq!(one(MIN_BYTES, "18446744073709551615").unwrap().min_bytes, usize::MAX);
        assert_eq!(one(FAMILIES, "udp").unwrap().families, Families::UDP);
        assert_eq!(one(FAMILIES, "unix,tcp,udp").unwrap().families.bits(), 7);
        assert_eq!(one(MODE, "nt").unwrap().mode, Mode::Nt);
        assert_eq!(one(MODE, "adaptive").unwrap().mode, Mode::Adaptive);
        assert_eq!(one(FILTERS, "3").unwrap().allowing_filters, 3);
        assert!(one(ASSUME, "kernel").unwrap().assume_kernel);
        for (name, texts) in [
            (MIN_BYTES, &["", "-1", "4k", " 1", "18446744073709551616", "0x10"][..]),
            (FAMILIES, &["", "unix,", "tcp udp", "inet", "TCP"]),
            (MODE, &["", "obey", "NT"]),
            (FILTERS, &["", "-1", "all"]),
            (ASSUME, &["", "module", "1"]),
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
            c"NTCOPY_PRELOAD_MODES=x",
            c"A=NTCOPY_PRELOAD_MODE=y",
            c"",
            c"=",
            c"NTCOPY_PRELOAD_MODE",
            c"NTCOPY_PRELOAD_MODE=nt",
            c"NTCOPY_PRELOAD_MODE=later",
        ];
        let mut list: Vec<_> = entries.iter().map(|entry| entry.as_ptr()).collect();
        list.push(ptr::null());
        // SAFETY: a list of strings that ends with null.
        unsafe {
            assert_eq!(variable(list.as_ptr(), MODE), Some(&b"nt"[..]));
            assert_eq!(variable(list.as_ptr(), FAMILIES), None);
            assert_eq!(variable(ptr::null(), MODE), None);
        }
    }
}
