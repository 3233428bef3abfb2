//! How exchanges end: completed, tried again, answered by the proxy, or cut short.

use rustix::io::Errno;

use super::context::Context;
use super::exchange::Waits;
use super::flow::Flow;
use super::session::{Phase, Session, Step};
use crate::access::Line;
use crate::error::{Error, Kind, Source};
use crate::metrics::add;

/// The status in the log where the client was gone before it could be answered.
const CLIENT_GONE: u16 = 499;

impl Session {
    /// The response is with the kernel, to its last byte.
    pub(super) fn complete(&mut self, context: &mut Context) -> Step {
        let Some(mut exchange) = self.exchange.take() else { return Step::Close };
        let sent = exchange.sent_at.is_some() && !exchange.broken;
        if let Some(upstream) = exchange.up.take() {
            let clean = upstream.input.is_empty() && !upstream.conn.is_half_closed();
            if exchange.keep_backend && sent && clean && !context.draining {
                let limit = context.shared.settings.limits.backend_idle;
                context.upstreams.keep(upstream, limit, context.now);
            } else {
                context.upstreams.close(upstream);
            }
        }
        let keep = exchange.keeps_client() && sent;
        let status = exchange.status.unwrap_or(CLIENT_GONE);
        self.exchange = Some(exchange);
        self.record(status, None, context);
        if keep { self.next_request(context.now) } else { self.finish(context.now) }
    }

    /// Counts and logs the exchange, and gives its pipes back.
    fn record(&mut self, status: u16, error: Option<&Error>, context: &mut Context) {
        let Some(mut exchange) = self.exchange.take() else { return };
        if let Some(upstream) = exchange.up.take() {
            context.upstreams.close(upstream);
        }
        if let (Waits::Yes, Some(backend)) = (exchange.waits, &exchange.tried) {
            context.upstreams.gates.leave(backend, self.key);
        }
        exchange.request.release(&mut context.pipes);
        exchange.response.release(&mut context.pipes);
        let counters = &context.counters;
        let took = context.now.saturating_duration_since(exchange.started);
        let (request, response) = (&exchange.request, &exchange.response);
        add(&counters.request_body_bytes, request.body_bytes());
        add(&counters.response_body_bytes, response.body_bytes());
        add(&counters.spliced_bytes, request.spliced + response.spliced);
        add(&counters.copied_bytes, request.copied + response.copied);
        if status == CLIENT_GONE {
            add(&counters.clients_gone, 1);
        } else {
            counters.answered(status, took);
        }
        if context.log.is_on() {
            let backend = exchange.tried.as_ref().filter(|_| exchange.status.is_some());
            context.log.write(&Line {
                client: self.peer,
                request: &exchange.name,
                status,
                body_bytes: response.body_bytes(),
                took,
                backend: &backend
                    .map(|b| b.place.addresses()[exchange.address].to_string())
                    .unwrap_or_default(),
                spliced: response.spliced > 0,
                error,
            });
        }
    }

    /// The exchange failed: it is tried again, answered, or cut short.
    pub(super) fn fail(&mut self, error: Error, context: &mut Context) -> Step {
        tracing::debug!(%error, "exchange failed");
        self.blame(&error, context);
        let Some(exchange) = self.exchange.as_mut() else { return Step::Close };
        // A connection that had served and is found closed says nothing about its backend, so it
        // takes no try away; there is at most one such in an exchange.
        let left = exchange.tries < context.shared.settings.limits.tries
            || (exchange.reused && exchange.tries == 1);
        if error.retryable && left && exchange.attempt().may_repeat() {
            if let Some(upstream) = exchange.up.take() {
                context.upstreams.close(upstream);
            }
            exchange.request.release(&mut context.pipes);
            exchange.request = Flow::new();
            exchange.waits = Waits::No;
            add(&context.counters.backend_retries, 1);
            self.enter(Phase::Connect, context.now);
            return Step::Again;
        }
        let (with_body, interim) = (exchange.method != crate::http::Method::Head, exchange.interim);
        if exchange.response.sent == 0
            || (interim && exchange.status.is_none() && exchange.response.out.is_empty())
        {
            let status = error.status();
            if error.source == Source::Downstream {
                add(&context.counters.requests_refused, 1);
            }
            exchange.response.spliced = 0;
            exchange.response.copied = 0;
            self.record(status, Some(&error), context);
            return self.answer(status, &error.to_string(), with_body, context);
        }
        // A length or a last chunk marks the end of the body, and the client sees that it didn't
        // come. Where only the close marks it, a reset has to show that.
        if exchange.until_close {
            self.conn.reset_on_close();
        }
        let status = exchange.status.unwrap_or(502);
        add(&context.counters.exchanges_aborted, 1);
        self.record(status, Some(&error), context);
        Step::Close
    }

    /// Passive health: what a backend did wrong counts against it.
    fn blame(&mut self, error: &Error, context: &mut Context) {
        let Some(exchange) = self.exchange.as_ref() else { return };
        let stale = exchange.reused && error.kind == Kind::Closed;
        if error.source != Source::Upstream || stale {
            return;
        }
        add(&context.counters.backend_failures, 1);
        let Some(backend) = exchange.tried.as_ref() else { return };
        if backend.failed(context.now, &context.shared.settings.health) {
            tracing::warn!(backend = %backend.place, %error, "passed over from now on");
        }
    }

    /// The backend closed before it answered.
    pub(super) fn no_answer(&mut self, cause: Option<Errno>, context: &mut Context) -> Step {
        let Some(exchange) = self.exchange.as_ref() else { return Step::Close };
        let heard = exchange.attempt().heard;
        let context_text = if heard { "in the middle of its answer" } else { "before it answered" };
        let error = Error::new(Source::Upstream, Kind::Closed, context_text).retryable(true);
        let error = match cause {
            Some(errno) => error.because(errno),
            None => error,
        };
        self.fail(error, context)
    }

    /// The backend's head is refused.
    pub(super) fn bad_answer(&mut self, why: &str, context: &mut Context) -> Step {
        let error = Error::new(Source::Upstream, Kind::Malformed, format!("its answer: {why}"));
        self.fail(error, context)
    }

    /// A deadline of the exchange has passed.
    pub(super) fn timed_out(&mut self, context: &mut Context) -> Step {
        let Some(exchange) = self.exchange.as_ref() else { return Step::Close };
        let timeout = |source, what: &'static str| Error::new(source, Kind::Timeout, what);
        let error = if exchange.waits != Waits::No {
            // Its health is not in doubt: it has enough to do.
            let why = "every connection to a backend is taken, and none became free in time";
            Error::new(Source::Internal, Kind::Busy, why)
        } else if self.phase == Phase::Connect {
            if self.try_next_address(context) {
                return Step::Again;
            }
            timeout(Source::Upstream, "connecting").retryable(true)
        } else if exchange.sent_at.is_none() {
            let taking = exchange.up.as_ref().is_some_and(|up| up.conn.is_writable());
            let source = if taking { Source::Downstream } else { Source::Upstream };
            timeout(source, "the request's body makes no progress")
        } else if exchange.status.is_none() {
            // Interim answers that the client doesn't take hold up the final one.
            let taking = exchange.response.out.is_empty() || self.conn.is_writable();
            let source = if taking { Source::Upstream } else { Source::Downstream };
            timeout(source, "no answer")
        } else {
            let taking = self.conn.is_writable();
            let source = if taking { Source::Upstream } else { Source::Downstream };
            timeout(source, "the response's body makes no progress")
        };
        self.fail(error, context)
    }

    /// The client is gone, and gets no answer.
    pub(super) fn client_gone(&mut self, context: &mut Context) -> Step {
        let error = Error::new(Source::Downstream, Kind::Closed, "it is gone");
        self.record(CLIENT_GONE, Some(&error), context);
        Step::Close
    }

    /// The session ends, whatever it was doing.
    pub(super) fn abandon(&mut self, context: &mut Context) {
        if let Some(exchange) = &self.exchange {
            // This end is not the body's, as where a backend breaks off.
            if exchange.until_close && exchange.status.is_some() {
                self.conn.reset_on_close();
            }
            let error = Error::new(Source::Internal, Kind::Closed, "the proxy stops");
            self.record(CLIENT_GONE, Some(&error), context);
        }
    }
}
