//! How exchanges end: completed, tried again, answered by the proxy, or cut short.

use rustix::io::Errno;

use super::{Exchange, Fault, Next};
use crate::access::Line;
use crate::backend::Attempt;
use crate::conn::Conn;
use crate::error::{Error, Kind, Source};
use crate::flow::FlowError;
use crate::upstreams::Upstream;

/// The status in the log where the client was gone before it could be answered.
const CLIENT_GONE: u16 = 499;

impl Exchange<'_> {
    /// The answer is with the kernel, to its last byte.
    pub(super) fn complete(&self, upstream: Upstream) -> Next {
        let sent = self.sent_at.get().is_some() && !self.broken.get();
        let clean = upstream.input.is_empty() && !upstream.conn.socket().is_half_closed();
        if self.keep_backend.get() && sent && clean && !self.ticket.is_draining() {
            self.worker.upstreams.keep(upstream);
        }
        self.record(self.status.get().unwrap_or(CLIENT_GONE), None);
        if self.keep_client.get() && sent { Next::Keep } else { Next::Goodbye }
    }

    pub(super) fn client_is_gone(&self) -> Next {
        let error = Error::new(Source::Downstream, Kind::Closed, "it is gone");
        self.record(CLIENT_GONE, Some(&error));
        Next::Close
    }

    /// Whether the request may be given to another connection.
    pub(super) fn may_repeat(&self, error: &Error, tries: u32) -> bool {
        // A connection that had served and is found closed says nothing about its backend, so it
        // takes no try away; there is at most one such in an exchange.
        let left = tries < self.worker.shared.limits.tries || (self.reused.get() && tries == 1);
        let request = self.request.borrow();
        let attempt = Attempt {
            consumed: request.consumed,
            sent: request.sent > 0,
            heard: self.heard.get(),
            reused: self.reused.get(),
            safe: self.asked.method.is_safe(),
        };
        error.retryable && left && attempt.may_repeat()
    }

    /// Passive health: what a backend did wrong counts against it.
    pub(super) fn blame(&self, error: &Error) {
        tracing::debug!(%error, "exchange failed");
        let stale = self.reused.get() && error.kind == Kind::Closed;
        if error.source != Source::Upstream || stale {
            return;
        }
        self.worker.counters.backend_failures.up();
        if let Some((backend, _)) = &*self.backend.borrow()
            && backend.failed(std::time::Instant::now(), &self.worker.shared.health)
        {
            tracing::warn!(backend = %backend.place, %error, "passed over from now on");
        }
    }

    /// The exchange failed for good: it is answered, or cut short.
    pub(super) fn fail(&self, error: Error) -> Next {
        let mut response = self.response.borrow_mut();
        let between = self.interim.get() && self.status.get().is_none() && response.out.is_empty();
        if response.sent == 0 || between {
            if error.source == Source::Downstream {
                self.worker.counters.requests_refused.up();
            }
            response.spliced = 0;
            response.copied = 0;
            drop(response);
            self.record(error.status(), Some(&error));
            return Next::Answer(error);
        }
        drop(response);
        self.worker.counters.exchanges_aborted.up();
        self.reset_if_only_the_close_tells();
        self.record(self.status.get().unwrap_or(502), Some(&error));
        Next::Close
    }

    /// A length or a last chunk marks the end of the body, and the client sees that it didn't
    /// come. Where only the close marks it, a reset has to show that.
    fn reset_if_only_the_close_tells(&self) {
        if self.until_close.get() && self.status.get().is_some() {
            self.client.borrow().reset_on_close();
        }
    }

    /// Counts and logs the exchange, and gives its pipes back.
    fn record(&self, status: u16, error: Option<&Error>) {
        self.recorded.set(true);
        let (mut request, mut response) = (self.request.borrow_mut(), self.response.borrow_mut());
        let mut pipes = self.worker.pipes.borrow_mut();
        request.release(&mut pipes);
        response.release(&mut pipes);
        let (counters, took) = (&self.worker.counters, self.asked.started.elapsed());
        counters.pipes_open.set(pipes.open() as u64);
        counters.request_body_bytes.add(request.body_bytes());
        counters.response_body_bytes.add(response.body_bytes());
        counters.spliced_bytes.add(request.spliced + response.spliced);
        counters.copied_bytes.add(request.copied + response.copied);
        if status == CLIENT_GONE {
            counters.clients_gone.up();
        } else {
            counters.answers.answered(status, took);
        }
        let backend = self.backend.borrow();
        let backend = backend.as_ref().filter(|_| self.status.get().is_some());
        self.worker.log(&Line {
            client: self.peer,
            request: &self.asked.name,
            status,
            body_bytes: response.body_bytes(),
            took,
            backend: backend.map(|(backend, at)| &backend.place.addresses()[*at]),
            spliced: response.spliced > 0,
            error,
        });
    }

    /// The backend closed before it answered.
    pub(super) fn no_answer(&self, cause: Option<Errno>) -> Fault {
        let when =
            if self.heard.get() { "in the middle of its answer" } else { "before it answered" };
        let error = Error::new(Source::Upstream, Kind::Closed, when).retryable(true);
        Fault::Failed(match cause {
            Some(errno) => error.because(errno),
            None => error,
        })
    }

    /// The backend's head is refused.
    pub(super) fn bad_answer(&self, why: &str) -> Fault {
        let why = format!("its answer: {why}");
        Fault::Failed(Error::new(Source::Upstream, Kind::Malformed, why))
    }

    pub(super) fn bad_body(&self, error: FlowError) -> Fault {
        let upstream = |kind, why: String| Error::new(Source::Upstream, kind, why);
        Fault::Failed(match error {
            FlowError::Source(errno) => {
                upstream(Kind::System, "reading the body".into()).because(errno)
            }
            FlowError::Chunk(error) => upstream(Kind::Malformed, error.to_string()),
            _ => upstream(Kind::Closed, "in the middle of the body".into()),
        })
    }

    /// The deadline has passed.
    pub(super) fn timeout(&self, up: &Conn) -> Error {
        let by = |taking: bool, taker, other| if taking { other } else { taker };
        let client_takes = self.client.borrow().socket().is_writable();
        let (source, what) = if self.sent_at.get().is_none() {
            let source = by(up.socket().is_writable(), Source::Upstream, Source::Downstream);
            (source, "the request's body makes no progress")
        } else if self.status.get().is_none() {
            // Interim answers that the client doesn't take hold up the final one.
            let takes = self.response.borrow().out.is_empty() || client_takes;
            (by(takes, Source::Downstream, Source::Upstream), "no answer")
        } else {
            let source = by(client_takes, Source::Downstream, Source::Upstream);
            (source, "the response's body makes no progress")
        };
        Error::new(source, Kind::Timeout, what)
    }
}

impl Drop for Exchange<'_> {
    /// The proxy stops, whatever the exchange was doing.
    fn drop(&mut self) {
        if !self.recorded.get() {
            // This end is not the body's, as where a backend breaks off.
            self.reset_if_only_the_close_tells();
            let error = Error::new(Source::Internal, Kind::Closed, "the proxy stops");
            self.record(CLIENT_GONE, Some(&error));
        }
    }
}
