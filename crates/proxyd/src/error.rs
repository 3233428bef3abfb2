//! What went wrong with an exchange: the kind, on whose side, and why.

use std::fmt;

use rustix::io::Errno;

/// On whose side an exchange failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    Downstream,
    Upstream,
    /// The proxy itself, or its machine.
    Internal,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Kind {
    #[error("cannot connect")]
    Connect,
    #[error("timeout")]
    Timeout,
    #[error("closed too early")]
    Closed,
    /// It gets no answer.
    #[error("gone")]
    Gone,
    #[error("malformed")]
    Malformed,
    #[error("too large")]
    TooLarge,
    #[error("busy")]
    Busy,
    #[error("system call failed")]
    System,
}

/// Why an exchange ended before its time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    pub kind: Kind,
    pub source: Source,
    /// What was being done, with whom, and what the kernel said.
    context: String,
}

impl Error {
    pub fn new(source: Source, kind: Kind, context: impl Into<String>) -> Error {
        Error { kind, source, context: context.into() }
    }

    pub fn gone() -> Error {
        Error::new(Source::Downstream, Kind::Gone, "before it had its answer")
    }

    /// The same with what the kernel said.
    #[must_use]
    pub fn because(mut self, cause: impl Into<Option<Errno>>) -> Error {
        if let Some(cause) = cause.into() {
            self.context += &format!(": {cause}");
        }
        self
    }

    /// The status that the client is answered with, if it can still be answered.
    pub fn status(&self) -> u16 {
        match (self.source, self.kind) {
            (Source::Downstream, Kind::Timeout) => 408,
            (Source::Downstream, Kind::TooLarge) => 413,
            (Source::Downstream, _) => 400,
            (Source::Upstream, Kind::Timeout) => 504,
            (Source::Upstream, Kind::Connect) => 503,
            (Source::Upstream, _) => 502,
            (Source::Internal, Kind::Busy) => 503,
            (Source::Internal, _) => 500,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = match self.source {
            Source::Downstream => "client",
            Source::Upstream => "backend",
            Source::Internal => "proxy",
        };
        write!(f, "{side}: {}: {}", self.kind, self.context)
    }
}
