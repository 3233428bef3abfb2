//! When a request may be given to another connection, in HTTP/1 and HTTP/3 alike.

/// How far a request got on one connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attempt {
    /// Bytes behind the head that were consumed of the client's stream, framing included. What
    /// was only looked at, and is still there for another try, is not counted.
    pub(crate) consumed: u64,
    /// Whether the backend may have some of the request.
    pub(crate) sent: bool,
    /// Whether the backend has said anything.
    pub(crate) heard: bool,
    /// Whether the connection had served before, so that it may have been closed for its age.
    pub(crate) reused: bool,
    /// Whether the method changes nothing.
    pub(crate) safe: bool,
}

impl Attempt {
    /// Whether another connection can be given the same request. A body of which a byte is
    /// consumed can't be begun again: the client's stream stands in the middle of it, and what
    /// comes next would be read as something else.
    pub(crate) fn may_repeat(self) -> bool {
        self.consumed == 0 && !self.heard && (!self.sent || (self.reused && self.safe))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_repeated_of_which_a_byte_is_gone() {
        let whole = Attempt { consumed: 0, sent: false, heard: false, reused: false, safe: false };
        assert!(whole.may_repeat());
        assert!(!Attempt { consumed: 1, ..whole }.may_repeat());
        assert!(!Attempt { heard: true, ..whole }.may_repeat());
        let sent = Attempt { sent: true, ..whole };
        assert!(!sent.may_repeat());
        assert!(!Attempt { safe: true, ..sent }.may_repeat(), "the backend may be at work on it");
        assert!(!Attempt { reused: true, ..sent }.may_repeat(), "it may have been done");
        let stale = Attempt { reused: true, safe: true, ..sent };
        assert!(stale.may_repeat());
        assert!(!Attempt { consumed: 1, ..stale }.may_repeat());
        assert!(!Attempt { heard: true, ..stale }.may_repeat());
    }
}
