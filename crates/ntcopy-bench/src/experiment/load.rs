//! How a client asks, without a pause or at a rate that is offered, and for how long.

use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Deserializer};

/// How many requests per second a latency is measured at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rate {
    /// This number in 10,000 of what the baseline was answered when asked without a pause.
    OfBaseline(u32),
    PerSecond(u32),
    Off,
}

impl FromStr for Rate {
    type Err = String;

    /// `0.7` is a part of what the baseline does, from 0.05 to 0.95; `1200` are requests per second.
    fn from_str(text: &str) -> Result<Rate, String> {
        let bad = || {
            format!(
                "`{text}`: a part of what the baseline does, 0.05 to 0.95, or a whole number of \
                 requests per second, or off"
            )
        };
        if text == "off" {
            return Ok(Rate::Off);
        }
        if let Ok(per_second) = text.parse::<u32>() {
            return if per_second == 0 { Err(bad()) } else { Ok(Rate::PerSecond(per_second)) };
        }
        match text.parse::<f64>() {
            // At more than that a queue grows without end as soon as a mode is a little slower.
            Ok(part) if (0.05..=0.95).contains(&part) => {
                Ok(Rate::OfBaseline((part * 10_000.0).round() as u32))
            }
            _ => Err(bad()),
        }
    }
}

read_as_written!(Rate);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadForm {
    /// Each connection asks anew as soon as it is answered.
    Closed,
    /// Requests come on a schedule, whether or not others have been answered.
    Open,
}

words!(LoadForm, Closed = "closed", Open = "open");

impl LoadForm {
    /// What is offered, in requests per 1000 s, where the baseline was answered `baseline` of them
    /// without a pause; nothing in the closed form.
    pub(crate) fn offered(self, rate: Rate, baseline: Option<u64>) -> Result<Option<u64>, String> {
        match (self, rate) {
            (LoadForm::Closed, _) | (LoadForm::Open, Rate::Off) => Ok(None),
            (LoadForm::Open, Rate::PerSecond(rate)) => Ok(Some(u64::from(rate) * 1000)),
            (LoadForm::Open, Rate::OfBaseline(part)) => match baseline {
                Some(rate) => Ok(Some((rate * u64::from(part) / 10_000).max(1))),
                None => Err("the baseline was not answered without a pause, so there is no rate \
                             to offer"
                    .to_owned()),
            },
        }
    }
}

/// How long a sample lasts, and what goes before it without being counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Times {
    #[serde(rename = "sample_ms", deserialize_with = "milliseconds")]
    pub sample: Duration,
    #[serde(rename = "warm_up_ms", deserialize_with = "milliseconds")]
    pub warm_up: Duration,
}

/// A time as files of defaults have it.
pub(crate) fn milliseconds<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    u64::deserialize(from).map(Duration::from_millis)
}

impl Times {
    pub(crate) fn whole(self) -> Duration {
        self.sample + self.warm_up
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lengths {
    pub closed: Times,
    pub open: Times,
}

impl Lengths {
    pub fn of(self, form: LoadForm) -> Times {
        match form {
            LoadForm::Closed => self.closed,
            LoadForm::Open => self.open,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_a_part_or_a_number() {
        assert_eq!("0.7".parse(), Ok(Rate::OfBaseline(7000)));
        assert_eq!("1200".parse(), Ok(Rate::PerSecond(1200)));
        assert_eq!("off".parse(), Ok(Rate::Off));
        for text in ["0", "1.0", "0.96", "0.01", "-1", "NaN", "70%", ""] {
            assert!(text.parse::<Rate>().unwrap_err().contains("requests per second"), "{text}");
        }
    }
}
