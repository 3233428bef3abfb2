//! How a client asks, and for how long.

use std::time::Duration;

use crate::experiment::Rate;

/// How the client asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadForm {
    /// Each connection asks anew as soon as it is answered.
    Closed,
    /// Requests come on a schedule, whether or not others have been answered.
    Open,
}

impl LoadForm {
    /// The word that the record has.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            LoadForm::Closed => "closed",
            LoadForm::Open => "open",
        }
    }

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

/// How long a form's samples take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// While the clock runs.
    pub sample: Duration,
    /// Before that.
    pub warm_up: Duration,
}
