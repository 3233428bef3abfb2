//! What went wrong with an exchange: the kind, on whose side, whether another try may help, and
//! why.

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

impl Source {
    /// On whose side connecting to a backend failed: it is not to blame for what lacks here.
    pub fn of_connecting(errno: Errno) -> Source {
        match errno {
            Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::NOBUFS => Source::Internal,
            _ => Source::Upstream,
        }
    }
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
    /// A listener does not let it in.
    NotPublic,
    /// A system call failed.
    System,
}

impl Kind {
    /// The kind in a word or two.
    fn name(self) -> &'static str {
        match self {
            Kind::Connect => "cannot connect",
            Kind::Timeout => "timeout",
            Kind::Closed => "closed too early",
            Kind::Malformed => "malformed",
            Kind::TooLarge => "too large",
            Kind::Busy => "busy",
            Kind::NotPublic => "not public",
            Kind::System => "system call failed",
        }
    }
}

/// Why an exchange ended before its time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// What failed.
    pub kind: Kind,
    /// On whose side.
    pub source: Source,
    /// Whether another connection could fare better; whether the request may be given to one is
    /// for the exchange to say, which knows how much of it is gone.
    pub retryable: bool,
    /// What the kernel said, where it was asked.
    pub cause: Option<Errno>,
    /// What was being done, and with whom.
    pub context: Cow<'static, str>,
}

impl Error {
    /// An error that another try does not mend.
    pub fn new(source: Source, kind: Kind, context: impl Into<Cow<'static, str>>) -> Error {
        Error { kind, source, retryable: false, cause: None, context: context.into() }
    }

    /// The same with what the kernel said.
    #[must_use]
    pub fn because(mut self, cause: Errno) -> Error {
        self.cause = Some(cause);
        self
    }

    /// The same, marked as one that may be tried again.
    #[must_use]
    pub fn retryable(mut self, retryable: bool) -> Error {
        self.retryable = retryable;
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
        write!(f, "{side}: {}: {}", self.kind.name(), self.context)?;
        match self.cause {
            Some(cause) => write!(f, ": {cause}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backend_is_not_to_blame_for_what_lacks_here() {
        assert_eq!(Source::of_connecting(Errno::CONNREFUSED), Source::Upstream);
        assert_eq!(Source::of_connecting(Errno::MFILE), Source::Internal);
    }
}
