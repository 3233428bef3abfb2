//! Rates, as a user writes them.

use std::str::FromStr;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LargeRate {
    Max,
    /// A rate, in parts of 10,000 of what the baseline does when it has nothing else to do.
    OfBaseline(u32),
    BytesPerSecond(u64),
}

impl LargeRate {
    /// The text that asked for it.
    pub fn asked(self) -> String {
        match self {
            LargeRate::Max => "max".to_owned(),
            LargeRate::OfBaseline(part) => format!("{}", f64::from(part) / 1e4),
            LargeRate::BytesPerSecond(rate) => format!("{}MB/s", rate as f64 / 1e6),
        }
    }
}

impl FromStr for LargeRate {
    type Err = String;

    fn from_str(text: &str) -> Result<LargeRate, String> {
        let bad = || {
            format!(
                "`{text}`: max, a part of what the baseline does, 0.05 to 0.95, or a rate as \
                 500MB/s or 1.5GB/s"
            )
        };
        if text == "max" {
            return Ok(LargeRate::Max);
        }
        let number = |text: &str| text.trim().parse::<f64>().ok();
        let in_unit = |unit: &str, bytes: f64| Some(number(text.strip_suffix(unit)?)? * bytes);
        match (in_unit("MB/s", 1e6).or(in_unit("GB/s", 1e9)), number(text)) {
            (Some(rate), _) if (1.0..=1e15).contains(&rate) => {
                Ok(LargeRate::BytesPerSecond(rate.round() as u64))
            }
            (None, Some(part)) if (0.05..=0.95).contains(&part) => {
                Ok(LargeRate::OfBaseline((part * 1e4).round() as u32))
            }
            _ => Err(bad()),
        }
    }
}

crate::experiment::read_as_written!(LargeRate);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_the_most_a_part_or_bytes_a_second() {
        assert_eq!("max".parse(), Ok(LargeRate::Max));
        assert_eq!("0.5".parse(), Ok(LargeRate::OfBaseline(5000)));
        assert_eq!("1.5GB/s".parse(), Ok(LargeRate::BytesPerSecond(1_500_000_000)));
        for text in ["max", "0.5", "250MB/s"] {
            assert_eq!(text.parse::<LargeRate>().unwrap().asked(), text);
        }
        for text in ["", "1", "0", "GB/s", "0GB/s", "-1MB/s", "1GiB/s", "NaN", "fast"] {
            assert!(text.parse::<LargeRate>().is_err(), "{text}");
        }
    }
}
