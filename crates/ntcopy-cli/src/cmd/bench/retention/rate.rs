//! A rate on the command line.

use std::str::FromStr;

/// Bytes per second: `10GB/s`, `2.5GB/s`, `800MB/s`, or bare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BytesPerSecond(pub u64);

impl FromStr for BytesPerSecond {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refused =
            || format!("`{text}` is not a rate: write 10GB/s, 2.5GB/s, 800MB/s or bytes a second");
        let bare = text.trim().trim_end_matches("/s");
        let units = [("GB", 1_000_000_000_u64), ("MB", 1_000_000), ("", 1)];
        let found = units.into_iter().find_map(|(unit, factor)| {
            bare.strip_suffix(unit).map(|number| (number.trim(), factor))
        });
        let (number, factor) = found.ok_or_else(refused)?;
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let is_number = |digits: &str| digits.chars().all(|digit| digit.is_ascii_digit());
        if whole.is_empty() || !is_number(whole) || !is_number(fraction) || number.ends_with('.') {
            return Err(refused());
        }
        let mut rate = whole.parse::<u64>().ok().and_then(|number| number.checked_mul(factor));
        let mut place = factor;
        for digit in fraction.bytes() {
            place /= 10;
            rate = rate.and_then(|rate| rate.checked_add(place * u64::from(digit - b'0')));
        }
        rate.map(BytesPerSecond).ok_or_else(refused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_in_powers_of_ten() {
        for (text, rate) in [
            ("10GB/s", 10_000_000_000),
            ("2.5GB/s", 2_500_000_000),
            ("800MB", 800_000_000),
            ("0.5 GB/s", 500_000_000),
            ("1000000", 1_000_000),
        ] {
            assert_eq!(text.parse(), Ok(BytesPerSecond(rate)), "{text}");
        }
    }

    #[test]
    fn what_is_no_rate_is_refused_with_an_example() {
        for text in ["", "GB/s", "fast", "10GiB/s", "-1GB/s", "1.GB/s", "99999999999GB/s"] {
            let error = text.parse::<BytesPerSecond>().unwrap_err();
            assert!(error.contains("10GB/s"), "{error}");
        }
    }
}
