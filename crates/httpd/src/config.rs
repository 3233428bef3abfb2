//! What the values of settings look like.

use std::str::FromStr;
use std::time::Duration;

/// A number of bytes: `4096`, `64KiB`, `16MiB`, `4GiB`.
pub fn size(text: &str) -> Result<u64, String> {
    let bad = || format!("{text:?} is no size: expected a number, or one with KiB, MiB or GiB");
    let units = [("KiB", 10), ("MiB", 20), ("GiB", 30)];
    let unit = units.iter().find_map(|(unit, shift)| Some((text.strip_suffix(unit)?, *shift)));
    let (digits, shift) = unit.unwrap_or((text, 0));
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(bad());
    }
    let number: u64 = digits.parse().map_err(|_| bad())?;
    number.checked_mul(1 << shift).ok_or_else(bad)
}

/// A time in seconds, more than 0: `30`, `2.5`.
pub fn seconds(text: &str) -> Result<Duration, String> {
    let bad = || format!("{text:?} is no time in seconds, more than 0");
    let seconds: f64 = text.parse().map_err(|_| bad())?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(time) if !time.is_zero() && seconds <= 1e6 => Ok(time),
        _ => Err(bad()),
    }
}

/// The bits of a file's mode, in octal: a string, so that it is as octal as it looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(try_from = "String")]
pub struct ModeBits(pub u32);

impl TryFrom<String> for ModeBits {
    type Error = String;

    fn try_from(text: String) -> Result<ModeBits, String> {
        text.parse()
    }
}

impl FromStr for ModeBits {
    type Err = String;

    fn from_str(text: &str) -> Result<ModeBits, String> {
        let bits = u32::from_str_radix(text, 8).ok().filter(|bits| *bits <= 0o777);
        bits.map(ModeBits).ok_or_else(|| format!("{text:?} is not 0 to 777 in octal"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_and_what_they_mean() {
        for (text, expected) in [
            ("0", Some(0)),
            ("64KiB", Some(65_536)),
            ("3GiB", Some(3 << 30)),
            ("", None),
            ("KiB", None),
            ("+1", None),
            ("1.5MiB", None),
            ("99999999999GiB", None),
        ] {
            assert_eq!(size(text).ok(), expected, "{text:?}");
        }
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        assert!(["0", "-1", "NaN", "1e9", "x"].iter().all(|text| seconds(text).is_err()));
        assert_eq!("660".parse(), Ok(ModeBits(0o660)));
        assert!(["999", "1777", "", "rw"].iter().all(|text| text.parse::<ModeBits>().is_err()));
    }
}
