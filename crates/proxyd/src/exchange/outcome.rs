//! How exchanges end: completed, tried again, answered by the proxy, or cut short.

use rustix::io::Errno;

use super::{Answer, Awaited, Exchange, Next, Sending};
use crate::upstreams::Upstream;

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

impl Exchange<'_> {
    /// The answer is with the kernel, to its last byte.
    pub(super) fn complete(&mut self, upstream: Upstream) -> Next {
        let Answer::Begun(begun) = self.answer else { return Next::Close };
        let sent = matches!(self.sending, Sending::Sent(_));
        let clean = upstream.input.is_empty() && !upstream.conn.socket().half_closed;
        if begun.keep_backend && sent && clean && !self.client.ticket.is_draining() {
            self.worker.upstreams.keep(upstream);
        }
        self.record(begun.status, None);
        if begun.keep_client && sent { Next::Keep } else { Next::Goodbye }
    }

    /// Whether another connection can be given the same request, where the backend closed one that had
    /// served before: it has said nothing, and does nothing twice. A body of which a byte is consumed
    /// can't be begun again: the client's stream stands in the middle of it, and what comes next would
    /// be read as something else.
    pub(super) fn may_repeat(&self, error: &Error) -> bool {
        let closed = error.status == 502 && !self.is_heard();
        let harmless = self.request.sent == 0 || self.asked.method.is_safe();
        closed && self.request.consumed == 0 && harmless
    }

    /// Whether the backend has said anything.
    pub(super) fn is_heard(&self) -> bool {
        !matches!(self.answer, Answer::Awaited(Awaited { heard: false, .. }))
    }

    /// The exchange failed for good: it is answered, or cut short.
    pub(super) fn fail(&mut self, error: Error) -> Next {
        if error.status == CLIENT_GONE {
            self.record(CLIENT_GONE, Some(&error));
            return Next::Close;
        }
        let counters = &self.worker.counters;
        if error.side == Side::Backend {
            counters.backend_failures.up();
        }
        let between = self.passed_interim() && self.response.out.is_empty();
        let response = &mut self.response;
        if response.sent == 0 || between {
            if error.side == Side::Client {
                counters.requests_refused.up();
            }
            (response.spliced, response.copied) = (0, 0);
            self.record(error.status, Some(&error));
            return Next::Answer(error);
        }
        counters.exchanges_aborted.up();
        self.reset_if_only_the_close_tells();
        let status = if let Answer::Begun(begun) = self.answer { begun.status } else { 502 };
        self.record(status, Some(&error));
        Next::Close
    }

    /// A length or a last chunk marks the end of the body, and the client sees that it didn't
    /// come. Where only the close marks it, a reset has to show that.
    fn reset_if_only_the_close_tells(&self) {
        if matches!(self.answer, Answer::Begun(begun) if begun.until_close) {
            self.client.stream.reset_on_close();
        }
    }

    /// Counts and logs the exchange, and gives its pipes back.
    fn record(&mut self, status: u16, error: Option<&Error>) {
        self.answer = Answer::Over;
        let (request, response) = (&mut self.request, &mut self.response);
        let mut pipes = self.worker.pipes.borrow_mut();
        request.release(&mut pipes);
        response.release(&mut pipes);
        let counters = &self.worker.counters;
        counters.pipes_open.set(pipes.open as u64);
        counters.request_body_bytes.add(request.body_bytes());
        counters.response_body_bytes.add(response.body_bytes());
        counters.spliced_bytes.add(request.spliced + response.spliced);
        counters.copied_bytes.add(request.copied + response.copied);
        if status == CLIENT_GONE {
            counters.clients_gone.up();
        } else {
            self.client.ticket.counts().answered(status);
        }
        tracing::debug!(
            client = ?self.client.peer,
            request = ?self.asked.name,
            status,
            body_bytes = response.body_bytes(),
            us = self.asked.started.elapsed().as_micros() as u64,
            spliced = response.spliced > 0,
            error = error.map(tracing::field::display),
            "answered"
        );
    }

    /// The backend closed before it answered.
    pub(super) fn no_answer(&self, cause: Option<Errno>) -> Error {
        let when =
            if self.is_heard() { "in the middle of its answer" } else { "before it answered" };
        let cause = cause.map_or_else(String::new, |errno| format!(": {errno}"));
        Error::new(Side::Backend, 502, format!("closed {when}{cause}"))
    }

    pub(super) fn bad_answer(&self, why: &str) -> Error {
        Error::new(Side::Backend, 502, format!("its answer: {why}"))
    }
}

impl Drop for Exchange<'_> {
    /// The proxy stops, whatever the exchange was doing.
    fn drop(&mut self) {
        if !matches!(self.answer, Answer::Over) {
            // This end is not the body's, as where a backend breaks off.
            self.reset_if_only_the_close_tells();
            let error = Error::new(Side::Proxy, CLIENT_GONE, "the proxy stops");
            self.record(CLIENT_GONE, Some(&error));
        }
    }
}
