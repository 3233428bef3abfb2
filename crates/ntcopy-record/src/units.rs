//! Quantities with their unit in the type.

use std::fmt;
use std::str::FromStr;

/// A number of bytes. Reads `1MiB`, `1M` and `1m`, all powers of two; a bare number is bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

/// The units that are understood, largest first.
const UNITS: [(&str, u64); 3] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];

/// Why a size could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SizeError {
    /// A unit that some read as a power of ten and some as a power of two.
    #[error("`{0}` is ambiguous: write {1} for powers of 1024, or the bare number of bytes")]
    Ambiguous(String, String),
    /// Not a number with a unit.
    #[error("`{0}` is not a size: write 65536, 64k or 64KiB; also M and G, MiB and GiB")]
    NotASize(String),
    /// Too many bytes to count in 64 bits.
    #[error("`{0}` is more bytes than 64 bits can count")]
    TooLarge(String),
}

impl FromStr for Bytes {
    type Err = SizeError;

    fn from_str(text: &str) -> Result<Self, SizeError> {
        let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, unit) = text.split_at(digits);
        if number.is_empty() {
            return Err(SizeError::NotASize(text.to_owned()));
        }
        let factor = factor(number, unit.trim(), text)?;
        number
            .parse::<u64>()
            .ok()
            .and_then(|number| number.checked_mul(factor))
            .map(Bytes)
            .ok_or_else(|| SizeError::TooLarge(text.to_owned()))
    }
}

fn factor(number: &str, unit: &str, text: &str) -> Result<u64, SizeError> {
    if unit.is_empty() || unit == "B" {
        return Ok(1);
    }
    let is_unit =
        |name: &str| name.eq_ignore_ascii_case(unit) || name[..1].eq_ignore_ascii_case(unit);
    if let Some((_, factor)) = UNITS.iter().find(|(name, _)| is_unit(name)) {
        return Ok(*factor);
    }
    let letter = unit.trim_end_matches(['b', 'B']);
    let meant = UNITS.iter().find(|(name, _)| name[..1].eq_ignore_ascii_case(letter));
    Err(match meant {
        Some((name, _)) => SizeError::Ambiguous(text.to_owned(), format!("{number}{name}")),
        None => SizeError::NotASize(text.to_owned()),
    })
}

impl Bytes {
    /// Its form as an argument: `64KiB`, bare bytes where no unit divides it.
    pub fn argument(self) -> String {
        let text = self.to_string();
        text.strip_suffix(" bytes").or(text.strip_suffix(" byte")).unwrap_or(&text).replace(' ', "")
    }
}

impl fmt::Display for Bytes {
    /// The largest unit that divides the number, `1 MiB`, or bare bytes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole =
            UNITS.iter().find(|(_, factor)| self.0 >= *factor && self.0.is_multiple_of(*factor));
        match whole {
            Some((name, factor)) => write!(f, "{} {name}", self.0 / factor),
            None if self.0 == 1 => write!(f, "1 byte"),
            None => write!(f, "{} bytes", self.0),
        }
    }
}

/// `31.3 GiB`: rounded, for amounts that were not chosen.
#[must_use]
pub fn about_size(bytes: u64) -> String {
    match UNITS.iter().find(|(_, factor)| bytes >= *factor) {
        Some((unit, factor)) if !bytes.is_multiple_of(*factor) => {
            format!("{:.1} {unit}", bytes as f64 / *factor as f64)
        }
        _ => Bytes(bytes).to_string(),
    }
}

/// `1 cell`, `7 cells`.
#[must_use]
pub fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// With a capital and a full stop.
#[must_use]
pub fn sentence(words: &str) -> String {
    let mut chars = words.chars();
    let first: String = chars.next().into_iter().flat_map(char::to_uppercase).collect();
    format!("{first}{}.", chars.as_str().trim_end_matches('.'))
}

/// `87 %`, from a part of 1; no `-0 %`.
#[must_use]
pub fn percent(part: f64) -> String {
    format!("{:.0} %", part * 100.0).replace("-0 %", "0 %")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn reads_units_and_bare_bytes() {
        for (text, bytes) in [
            ("0", 0),
            ("1048576", 1 << 20),
            ("1MiB", 1 << 20),
            ("64 KiB", 64 << 10),
            ("2gib", 2 << 30),
            ("7B", 7),
            ("64k", 64 << 10),
            ("64K", 64 << 10),
            ("1m", 1 << 20),
            ("1M", 1 << 20),
            ("1G", 1 << 30),
        ] {
            assert_eq!(text.parse(), Ok(Bytes(bytes)), "{text}");
        }
    }

    #[test]
    fn refuses_ambiguous_units_and_says_what_to_write() {
        for text in ["1MB", "1mb"] {
            let error = text.parse::<Bytes>().unwrap_err();
            assert_eq!(error, SizeError::Ambiguous(text.to_owned(), "1MiB".to_owned()));
        }
        assert!("4kB".parse::<Bytes>().unwrap_err().to_string().contains("4KiB"));
    }

    #[test]
    fn a_part_is_percent_and_a_small_loss_is_none() {
        assert_eq!([0.625, -0.003, -0.4].map(percent), ["62 %", "0 %", "-40 %"]);
    }

    #[test]
    fn refuses_what_is_not_a_size() {
        for text in ["", "MiB", "-1", "1.5MiB", "1TiB", "1 2", "0x10"] {
            assert!(matches!(text.parse::<Bytes>(), Err(SizeError::NotASize(_))), "{text}");
        }
        for text in ["99999999999999999999", "17179869184GiB"] {
            assert!(matches!(text.parse::<Bytes>(), Err(SizeError::TooLarge(_))), "{text}");
        }
    }

    #[test]
    fn prints_the_largest_unit_that_divides() {
        let text: Vec<String> =
            [0, 1, 1023, 1024, 1536, 1 << 20, 3 << 30].map(|n| Bytes(n).to_string()).into();
        assert_eq!(
            text,
            ["0 bytes", "1 byte", "1023 bytes", "1 KiB", "1536 bytes", "1 MiB", "3 GiB"]
        );
    }

    proptest! {
        #[test]
        fn what_is_printed_reads_back(bytes in prop_oneof![any::<u64>(), (0u64..4096).prop_map(|n| n << 20)]) {
            let text = Bytes(bytes).to_string().replace(" bytes", "").replace(" byte", "");
            prop_assert_eq!(text.parse(), Ok(Bytes(bytes)));
        }

        #[test]
        fn no_text_makes_it_panic(text in "\\PC{0,12}") {
            let _ = text.parse::<Bytes>();
        }
    }
}
