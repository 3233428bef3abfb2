//! What went wrong with an exchange: the kind, on whose side, and why.

use std::borrow::Cow;
use std::fmt;

use rustix::io::Errno;

/// On whose side an exchange failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The client.
    Downstream,
    /// The backend.
    Upstream,
    /// The proxy itself, or its machine.
    Internal,
}

/// What failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// No connection to the backend could be made.
    Connect,
    /// A phase took longer than its limit.
    Timeout,
    /// The peer closed or reset the connection too early.
    Closed,
    /// What the peer sent is not HTTP/1.1, or could be read in two ways.
    Malformed,
    /// What the peer sent is larger than the limits allow.
    TooLarge,
    /// There is no room for it now.
    Busy,
    /// A system call failed.
    System,
}

/// Why an exchange ended before its time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    pub kind: Kind,
    pub source: Source,
    /// What the kernel said, where it was asked.
    pub cause: Option<Errno>,
    /// What was being done, and with whom.
    pub context: Cow<'static, str>,
}

impl Error {
    pub fn new(source: Source, kind: Kind, context: impl Into<Cow<'static, str>>) -> Error {
        Error { kind, source, cause: None, context: context.into() }
    }

    /// The same with what the kernel said.
    #[must_use]
    pub fn because(self, cause: impl Into<Option<Errno>>) -> Error {
        Error { cause: cause.into(), ..self }
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
        let kind = match self.kind {
            Kind::Connect => "cannot connect",
            Kind::Timeout => "timeout",
            Kind::Closed => "closed too early",
            Kind::Malformed => "malformed",
            Kind::TooLarge => "too large",
            Kind::Busy => "busy",
            Kind::System => "system call failed",
        };
        write!(f, "{side}: {kind}: {}", self.context)?;
        match self.cause {
            Some(cause) => write!(f, ": {cause}"),
            None => Ok(()),
        }
    }
}
