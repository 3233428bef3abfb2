//! Settings: a file in TOML, and what its values look like.

use std::fmt;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;

#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("{path}: {cause}")]
    Read { path: PathBuf, cause: std::io::Error },
    /// It names line, column and key.
    #[error("{path}: {what}")]
    Parse { path: PathBuf, what: String },
    /// A value makes no sense, or one is missing.
    #[error("{0}")]
    Value(String),
}

/// Reads a file. `gone` are settings that went, and what to do about each.
pub fn read<T: DeserializeOwned>(path: &Path, gone: &[(&str, &str)]) -> Result<T, ConfigError> {
    let text = std::fs::read_to_string(path)
        .map_err(|cause| ConfigError::Read { path: path.to_owned(), cause })?;
    toml::from_str(&text).map_err(|error| {
        let is_it = |name: &str| error.message().starts_with(&format!("unknown field `{name}`"));
        let gone = gone.iter().find(|(name, _)| is_it(name));
        let advice = gone.map_or(String::new(), |(name, what)| format!("\n{name} went: {what}"));
        let what = format!("{}{advice}", error.to_string().trim_end());
        ConfigError::Parse { path: path.to_owned(), what }
    })
}

/// A value within its bounds.
pub fn within<T: PartialOrd + fmt::Display>(
    name: &str,
    value: T,
    bounds: RangeInclusive<T>,
) -> Result<T, ConfigError> {
    if bounds.contains(&value) {
        return Ok(value);
    }
    let (low, high) = (bounds.start(), bounds.end());
    Err(ConfigError::Value(format!("{name} is {value}; it can be {low} to {high}")))
}

/// A number of bytes: `4096`, `64KiB`, `16MiB`, `4GiB`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "NumberOrText")]
pub struct Size(pub u64);

#[derive(Deserialize)]
#[serde(untagged)]
enum NumberOrText {
    Number(u64),
    Text(String),
}

impl TryFrom<NumberOrText> for Size {
    type Error = String;

    fn try_from(value: NumberOrText) -> Result<Size, String> {
        match value {
            NumberOrText::Number(bytes) => Ok(Size(bytes)),
            NumberOrText::Text(text) => text.parse(),
        }
    }
}

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Size, String> {
        let bad = || format!("{text:?} is no size: expected a number, or one with KiB, MiB or GiB");
        let units = [("KiB", 10), ("MiB", 20), ("GiB", 30)];
        let unit = units.iter().find_map(|(unit, shift)| Some((text.strip_suffix(unit)?, *shift)));
        let (digits, shift) = unit.unwrap_or((text, 0));
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(bad());
        }
        let number: u64 = digits.parse().map_err(|_| bad())?;
        number.checked_mul(1 << shift).map(Size).ok_or_else(bad)
    }
}

/// A time in seconds, more than 0: `30`, `2.5`.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(try_from = "f64")]
pub struct Seconds(pub Duration);

impl TryFrom<f64> for Seconds {
    type Error = String;

    fn try_from(seconds: f64) -> Result<Seconds, String> {
        match Duration::try_from_secs_f64(seconds) {
            Ok(time) if !time.is_zero() && seconds <= 1e6 => Ok(Seconds(time)),
            _ => Err(format!("{seconds} is no time in seconds, more than 0")),
        }
    }
}

impl FromStr for Seconds {
    type Err = String;

    fn from_str(text: &str) -> Result<Seconds, String> {
        let seconds: f64 = text.parse().map_err(|_| format!("{text:?} is no time in seconds"))?;
        seconds.try_into()
    }
}

/// The bits of a file's mode, in octal: a string, so that it is as octal as it looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
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

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields, rename_all = "kebab-case")]
    struct Some {
        most: Option<Size>,
        wait: Option<Seconds>,
        mode: Option<ModeBits>,
    }

    fn file(text: &str) -> Result<Some, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        read(file.path(), &[("old", "leave it out")]).map_err(|error| error.to_string())
    }

    #[test]
    fn a_file_is_read_and_a_mistake_named_with_its_line() {
        let good = file("most = \"16MiB\"\nwait = 0.5\nmode = \"660\"\n").unwrap();
        assert_eq!((good.most, good.mode), (Some(Size(16 << 20)), Some(ModeBits(0o660))));
        assert_eq!(good.wait, Some(Seconds(Duration::from_millis(500))));
        for (text, words) in [
            ("\nmod = \"nt\"\n", ["line 2", "mod"]),
            ("wait = 1\nmost = \"1XB\"\n", ["line 2", "most"]),
            ("wait = 0\n", ["line 1", "wait"]),
            ("mode = \"999\"\n", ["line 1", "999"]),
            ("mode = 660\n", ["line 1", "mode"]),
            ("\nold = 3\n", ["line 2", "old went: leave it out"]),
        ] {
            let error = file(text).unwrap_err();
            assert!(words.iter().all(|word| error.contains(word)), "{text:?}: {error}");
        }
    }

    #[test]
    fn sizes_and_bounds() {
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
            assert_eq!(text.parse::<Size>().ok(), expected.map(Size), "{text:?}");
        }
        assert!(within("n", 3, 1..=3).is_ok());
        assert_eq!(within("n", 4, 1..=3).unwrap_err().to_string(), "n is 4; it can be 1 to 3");
    }
}
