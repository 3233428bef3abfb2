//! A ratio with its interval, and its verdict.

use std::fmt;

use serde::{Deserialize, Serialize};

/// By how much of 1 a median has to be away from it for somebody to act on it.
pub const BAR: f64 = 0.03;
/// By how much of 1 an interval may be away from it where nothing differs.
const EQUAL_WITHIN: f64 = 0.05;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The whole interval lies above 1, and the median at least [`BAR`].
    Win,
    /// The whole interval lies below 1, and the median at least [`BAR`].
    Loss,
    /// The median lies within [`BAR`] of 1, and the interval within 5 %.
    Equal,
    /// Anything else: nothing is known yet.
    Unresolved,
}

impl Verdict {
    /// `win`, `loss`, `equal`, `unresolved`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Verdict::Win => "win",
            Verdict::Loss => "loss",
            Verdict::Equal => "equal",
            Verdict::Unresolved => "unresolved",
        }
    }
}

/// A ratio with its interval: low, high.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Ratio {
    pub ratio: f64,
    pub ci: (f64, f64),
}

impl Ratio {
    /// Whether it is a win or a loss: of sends that are alike, that the machine is not fit to tell.
    #[must_use]
    pub fn differs(&self) -> bool {
        matches!(self.verdict(), Verdict::Win | Verdict::Loss)
    }

    #[must_use]
    pub fn verdict(&self) -> Verdict {
        let Ratio { ratio, ci: (low, high) } = *self;
        // A hair, so that 1.03 is 3 % away from 1 in floating point too.
        let is_away = (ratio - 1.0).abs() >= BAR - 1e-9;
        let is_near = low >= 1.0 - EQUAL_WITHIN && high <= 1.0 + EQUAL_WITHIN;
        if is_away && low > 1.0 {
            Verdict::Win
        } else if is_away && high < 1.0 {
            Verdict::Loss
        } else if !is_away && is_near {
            Verdict::Equal
        } else {
            Verdict::Unresolved
        }
    }

    /// `1.31` and `1.28-1.35`: all with as many digits, so that the ratio lies within. They are so
    /// many that they show on which side of 1 the ends lie, and their difference: two, or three
    /// where two would show an end as 1 that is not, or little of it.
    #[must_use]
    pub fn parts(&self) -> (String, String) {
        let (low, high) = self.ci;
        let hides = |end: f64| end != 1.0 && format!("{end:.2}") == "1.00";
        let digits = if hides(low) || hides(high) || low < 0.1 { 3 } else { 2 };
        (format!("{:.digits$}", self.ratio), format!("{low:.digits$}-{high:.digits$}"))
    }
}

impl fmt::Display for Ratio {
    /// `1.31x (1.28-1.35)`
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (ratio, interval) = self.parts();
        write!(out, "{ratio}x ({interval})")
    }
}
