//! Why a request is refused.

/// Why a request is not obeyed: the status, and the reason in words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{status}: {reason}")]
pub struct Refusal {
    pub status: u16,
    pub reason: &'static str,
}

pub(crate) const fn refuse(status: u16, reason: &'static str) -> Refusal {
    Refusal { status, reason }
}
