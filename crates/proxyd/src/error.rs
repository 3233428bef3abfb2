//! What went wrong with an exchange: on whose side, and why.

/// On whose side an exchange failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Side {
    #[error("client")]
    Client,
    #[error("backend")]
    Backend,
    /// The proxy itself, or its machine.
    #[error("proxy")]
    Proxy,
}

/// Why an exchange ended before its time.
#[derive(Debug, thiserror::Error)]
#[error("{side}: {why}")]
pub(crate) struct Error {
    pub(crate) side: Side,
    /// What the client is answered with, if it can still be answered.
    pub(crate) status: u16,
    why: String,
}

/// The status in the log where the client was gone before it could be answered.
pub(crate) const CLIENT_GONE: u16 = 499;

impl Error {
    pub(crate) fn new(side: Side, status: u16, why: impl Into<String>) -> Error {
        Error { side, status, why: why.into() }
    }

    pub(crate) fn gone() -> Error {
        Error::new(Side::Client, CLIENT_GONE, "gone before it had its answer")
    }
}
