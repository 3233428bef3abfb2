//! How a client asks, and for how long.

use std::time::Duration;

/// How the client asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadForm {
    /// Each connection asks anew as soon as it is answered.
    Closed,
    /// Requests come on a schedule, whether or not others have been answered.
    Open,
}

impl LoadForm {
    /// As the record has it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            LoadForm::Closed => "closed",
            LoadForm::Open => "open",
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
