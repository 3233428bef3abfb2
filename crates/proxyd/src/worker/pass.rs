//! What is passed on while an exchange runs, both ways.

use super::context::Context;
use super::flow::{FlowError, Pump, Tools};
use super::session::{Session, Step};
use crate::error::{Error, Kind, Source};
use crate::http::{Scanner, parse_response};
use crate::net::Io;

/// The first read of a response where its body can be spliced: most heads fit, and what comes
/// with them has to be copied.
const HEAD_READ_BYTES: usize = 1 << 10;

impl Session {
    /// Passes on what can be passed on, both ways.
    pub(super) fn pass_on(&mut self, context: &mut Context, budget: &mut u64) -> Step {
        if self.conn.is_hung_up() {
            return self.client_gone(context);
        }
        let before = self.moved();
        let request = self.pass_request(context, budget);
        let response = match request {
            Ok(_) => self.pass_response(context, budget),
            Err(step) => return step,
        };
        let progress = self.moved() != before;
        let taken = self.taken();
        if let Some(exchange) = self.exchange.as_mut().filter(|_| progress) {
            exchange.progressed(taken, context.now);
        }
        match (request, response) {
            (_, Err(step)) => step,
            // Also before the request is done: the backend has said all that it will.
            (_, Ok(Pump::Done)) => self.complete(context),
            (Ok(Pump::Again), _) | (_, Ok(Pump::Again)) => Step::Again,
            _ => Step::Wait,
        }
    }

    /// Rises with every byte that goes anywhere; also with ciphertext that leaves after the last
    /// byte of the body was taken.
    fn moved(&self) -> u64 {
        self.conn.written() + self.exchange.as_ref().map_or(0, |exchange| exchange.moved())
    }

    /// Bytes of the response that its socket took.
    pub(super) fn taken(&self) -> u64 {
        let spliced = self.conn.can_splice_to();
        let sent = self.exchange.as_ref().map_or(0, |exchange| exchange.response.sent);
        if spliced { sent } else { self.conn.written() }
    }

    /// Client to backend. `Err` is the step that a failure led to.
    fn pass_request(&mut self, context: &mut Context, budget: &mut u64) -> Result<Pump, Step> {
        let Some(exchange) = self.exchange.as_mut() else { return Err(Step::Close) };
        if exchange.sent_at.is_some() {
            return Ok(Pump::Done);
        }
        let Some(upstream) = exchange.up.as_mut() else { return Err(Step::Close) };
        if exchange.reused && exchange.request.sent == 0 {
            // If the backend has closed the connection, this tells, while all of the body is
            // still there for another.
            if exchange.request.flush(&mut upstream.conn).is_err() {
                exchange.broken = true;
                exchange.sent_at = Some(context.now);
                return Ok(Pump::Blocked);
            }
        }
        let splice_min = context.shared.settings.limits.splice_min_bytes;
        let mut tools = Tools { pipes: &mut context.pipes, splice_min, budget };
        match exchange.request.pump(&mut self.conn, &mut self.input, &mut upstream.conn, &mut tools)
        {
            Ok(Pump::Done) => {
                exchange.request.release(&mut context.pipes);
                exchange.sent_at = Some(context.now);
                Ok(Pump::Done)
            }
            Ok(pump) => Ok(pump),
            // A backend may close its ears once it knows its answer: the answer counts.
            Err(FlowError::Sink(_)) => {
                exchange.broken = true;
                exchange.sent_at = Some(context.now);
                Ok(Pump::Blocked)
            }
            Err(FlowError::Source(_)) => Err(self.client_gone(context)),
            Err(error) => {
                let (kind, why) = match error {
                    FlowError::TooLarge => {
                        (Kind::TooLarge, "the body is larger than allowed".into())
                    }
                    FlowError::Chunk(error) => (Kind::Malformed, error.to_string()),
                    _ => (Kind::Closed, "the client ended before its request did".to_owned()),
                };
                Err(self.fail(Error::new(Source::Downstream, kind, why), context))
            }
        }
    }

    /// Backend to client: heads, then the body.
    fn pass_response(&mut self, context: &mut Context, budget: &mut u64) -> Result<Pump, Step> {
        loop {
            let Some(exchange) = self.exchange.as_mut() else { return Err(Step::Close) };
            if exchange.status.is_some() {
                return self.pass_body(context, budget);
            }
            let Some(upstream) = exchange.up.as_mut() else { return Err(Step::Close) };
            match exchange.scanner.find_end(upstream.input.bytes(), &context.shared.settings.http) {
                Ok(Some(end)) => self.response_head(end, context)?,
                Ok(None) => {
                    if !self.read_head(context)? {
                        return Ok(Pump::Blocked);
                    }
                }
                Err(error) => return Err(self.bad_answer(&error.to_string(), context)),
            }
        }
    }

    /// Reads some of the response's head; false if nothing is there.
    fn read_head(&mut self, context: &mut Context) -> Result<bool, Step> {
        let splice = context.shared.splice && self.conn.can_splice_to();
        let Some(exchange) = self.exchange.as_mut() else { return Err(Step::Close) };
        if exchange.interim {
            if exchange.response.flush(&mut self.conn).is_err() {
                return Err(self.client_gone(context));
            }
            // The client takes no more: nor is more taken from the backend.
            if !exchange.response.out.is_empty() {
                return Ok(false);
            }
        }
        let Some(exchange) = self.exchange.as_mut() else { return Err(Step::Close) };
        let Some(upstream) = exchange.up.as_mut() else { return Err(Step::Close) };
        let limit = match upstream.input.len() {
            0 if splice => HEAD_READ_BYTES,
            _ => context.shared.settings.http.head_bytes,
        };
        match upstream.conn.recv(upstream.input.room(limit.max(upstream.input.len() + 1))) {
            Ok(Io::Done(bytes)) => {
                upstream.input.filled(bytes);
                exchange.last = context.now;
                Ok(true)
            }
            Ok(Io::Blocked) => Ok(false),
            Ok(Io::End) => Err(self.no_answer(None, context)),
            Err(errno) => Err(self.no_answer(Some(errno), context)),
        }
    }

    /// A response's head of `end` bytes is complete.
    fn response_head(&mut self, end: usize, context: &mut Context) -> Result<(), Step> {
        let splice = context.shared.splice && self.conn.can_splice_to();
        let Some(exchange) = self.exchange.as_mut() else { return Err(Step::Close) };
        let Some(mut upstream) = exchange.up.take() else { return Err(Step::Close) };
        let head = &upstream.input.bytes()[..end];
        let accepted = match parse_response(head, exchange.method, &context.shared.settings.http) {
            Ok(response) if response.is_interim() => exchange.pass_interim(&response),
            Ok(response) => {
                exchange.keep_client &= !context.draining;
                exchange.accept(&response, splice);
                if upstream.backend.answered() {
                    tracing::info!(backend = %upstream.backend.place, "answers again");
                }
                Ok(())
            }
            Err(error) => Err(error.0),
        };
        exchange.scanner = Scanner::default();
        upstream.input.consume(end);
        exchange.up = Some(upstream);
        accepted.map_err(|why| self.bad_answer(why, context))
    }

    fn pass_body(&mut self, context: &mut Context, budget: &mut u64) -> Result<Pump, Step> {
        let Some(exchange) = self.exchange.as_mut() else { return Err(Step::Close) };
        let Some(upstream) = exchange.up.as_mut() else { return Err(Step::Close) };
        let splice_min = context.shared.settings.limits.splice_min_bytes;
        let mut tools = Tools { pipes: &mut context.pipes, splice_min, budget };
        let (source, input) = (&mut upstream.conn, &mut upstream.input);
        match exchange.response.pump(source, input, &mut self.conn, &mut tools) {
            Ok(pump) => Ok(pump),
            Err(FlowError::Sink(_)) => Err(self.client_gone(context)),
            Err(error) => {
                let (kind, why, cause) = match error {
                    FlowError::Source(errno) => {
                        (Kind::System, "reading the body".into(), Some(errno))
                    }
                    FlowError::Chunk(error) => (Kind::Malformed, error.to_string(), None),
                    _ => (Kind::Closed, "in the middle of the body".to_owned(), None),
                };
                let error = Error::new(Source::Upstream, kind, why);
                let error = cause.map_or(error.clone(), |errno| error.because(errno));
                Err(self.fail(error, context))
            }
        }
    }
}
