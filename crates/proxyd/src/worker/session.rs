//! A client's connection: one exchange after the other, so that pipelined requests are answered
//! in order. While one is under way the next is not read: that is the client's back-pressure.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::Key;
use super::context::Context;
use super::exchange::{Exchange, Waits};
use crate::backend::Backend;
use crate::buffer::Buffer;
use crate::config::Timeouts;
use crate::conn::Conn;
use crate::error::{Error, Kind, Source};
use crate::http::{
    Facts, Reader, Refusal, Scanner, Scheme, parse_request, write_reply, write_request,
};
use crate::metrics::add;
use crate::net::Io;

/// Bytes that a session may move before it is another's turn.
const BUDGET_BYTES: u64 = 4 << 20;
/// Steps that it may take: pipelined requests with tiny answers use no bytes to speak of.
const BUDGET_STEPS: u32 = 64;

/// What comes next on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// TLS.
    Handshake,
    /// Nothing of the next request is there.
    Idle,
    /// Some of its head is.
    Head,
    /// A connection to the backend is being made.
    Connect,
    /// Request and response are passed on.
    Exchange,
    /// The proxy's own answer is being sent.
    Reply,
    /// All was sent; that nothing follows is still to be said.
    Goodbye,
    /// Nothing is sent any more; what still comes is thrown away.
    Linger,
}

/// What a step led to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// To another step, at once.
    Again,
    /// To an event or a deadline that has to come first.
    Wait,
    /// To the end.
    Close,
}

/// What the worker does with the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// An event will come.
    Wait,
    /// No event may come: call again after the others.
    Later,
    /// Close it.
    Close,
}

/// A client's connection.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) key: Key,
    pub(super) conn: Conn,
    pub(super) input: Buffer,
    pub(super) peer: Option<IpAddr>,
    /// The client that its connection is counted for.
    pub(super) origin: Option<IpAddr>,
    pub(super) scheme: Scheme,
    /// The door by which it came.
    door: usize,
    pub(super) phase: Phase,
    /// When the phase began.
    pub(super) since: Instant,
    scanner: Scanner,
    /// Whether a stop waits for its first request: its handshake was under way when the stop came.
    awaited: bool,
    pub(super) exchange: Option<Box<Exchange>>,
    /// The proxy's own answer.
    pub(super) reply: Buffer,
    pub(super) lingered: usize,
    /// Bytes that the goodbye waits for, the fewest so far, and when to look again.
    pub(super) held_up: (u64, Option<Instant>),
    /// When the worker's timer for this session is due.
    pub(super) timer: Option<Instant>,
    /// Whether it waits to be called again.
    pub(super) queued: bool,
}

impl Session {
    pub(super) fn new(
        key: Key,
        conn: Conn,
        (peer, scheme, door): (Option<IpAddr>, Scheme, usize),
        origin: Option<IpAddr>,
        now: Instant,
    ) -> Session {
        Session {
            key,
            conn,
            input: Buffer::default(),
            peer,
            origin,
            scheme,
            door,
            phase: Phase::Handshake,
            since: now,
            scanner: Scanner::default(),
            awaited: false,
            exchange: None,
            reply: Buffer::default(),
            lingered: 0,
            held_up: (u64::MAX, None),
            timer: None,
            queued: false,
        }
    }

    /// Does what can be done without waiting.
    pub(super) fn drive(&mut self, context: &mut Context) -> Next {
        let mut budget = BUDGET_BYTES;
        for _ in 0..BUDGET_STEPS {
            let step = match self.phase {
                Phase::Handshake => self.handshake(context),
                Phase::Idle | Phase::Head => self.head(context),
                Phase::Connect => self.connect(context),
                Phase::Exchange => self.pass_on(context, &mut budget),
                Phase::Reply => self.send_reply(context),
                Phase::Goodbye => self.goodbye(context.now),
                Phase::Linger => self.linger(),
            };
            match step {
                Step::Again if budget == 0 => return Next::Later,
                Step::Again => {}
                Step::Wait => return Next::Wait,
                Step::Close => return Next::Close,
            }
        }
        Next::Later
    }

    pub(super) fn enter(&mut self, phase: Phase, now: Instant) {
        self.phase = phase;
        self.since = now;
    }

    fn handshake(&mut self, context: &mut Context) -> Step {
        match self.conn.handshake() {
            Ok(true) => {
                self.awaited = context.draining && self.conn.is_encrypted();
                self.enter(Phase::Idle, context.now);
                Step::Again
            }
            Ok(false) if !self.conn.is_hung_up() && !self.conn.is_half_closed() => Step::Wait,
            Ok(false) | Err(_) => {
                add(&context.counters.handshakes_failed, 1);
                Step::Close
            }
        }
    }

    fn head(&mut self, context: &mut Context) -> Step {
        // RFC 9112, 2.2: empty lines before a request are skipped. They don't end the idle phase,
        // so its deadline stands however many come.
        while self.phase == Phase::Idle && self.input.bytes().starts_with(b"\r\n") {
            self.input.consume(2);
        }
        if self.phase == Phase::Idle && !matches!(self.input.bytes(), b"" | b"\r") {
            self.enter(Phase::Head, context.now);
        }
        if self.phase == Phase::Head {
            match self.scanner.find_end(self.input.bytes(), &context.shared.settings.http) {
                Ok(Some(end)) => return self.begin(end, context),
                Ok(None) => {}
                Err(error) => return self.refuse(error.into(), context),
            }
        }
        let room = self.input.room(context.shared.settings.http.head_bytes);
        if room.is_empty() {
            // Exactly as long as may be, and not at its end.
            return self.refuse(crate::http::HeadError::TooLarge.into(), context);
        }
        match self.conn.recv(room) {
            Ok(Io::Done(bytes)) => {
                self.input.filled(bytes);
                Step::Again
            }
            // Asked of the kernel, since the event of a request may not have come yet.
            Ok(Io::Blocked) if self.is_unwanted(context) && self.conn.is_silent() => {
                self.leave(context.now)
            }
            Ok(Io::Blocked) => {
                self.input.release();
                Step::Wait
            }
            // Its end is not ours: it may still be reading.
            Ok(Io::End) => self.leave(context.now),
            Err(_) => Step::Close,
        }
    }

    /// Whether a stop ends it unless a request is already there.
    fn is_unwanted(&self, context: &Context) -> bool {
        self.phase == Phase::Idle && context.draining && !self.awaited
    }

    /// A head of `end` bytes is complete.
    fn begin(&mut self, end: usize, context: &mut Context) -> Step {
        self.scanner = Scanner::default();
        self.awaited = false;
        add(&context.counters.requests, 1);
        let head = &self.input.bytes()[..end];
        let request = match parse_request(head, &context.shared.settings.http) {
            Ok(request) => request,
            Err(refusal) => return self.refuse(refusal, context),
        };
        let policy = &context.policies[self.door];
        if let Err(refusal) = policy.admit(request.method, request.target.path) {
            let name = context.log.is_on().then(|| request.name());
            return self.refuse_by(refusal, name.as_deref(), context);
        }
        if request.forwards == Some(0) {
            let name = context.log.is_on().then(|| request.name());
            return self.answer_options(name.as_deref(), context);
        }
        let splice = context.shared.splice && self.conn.can_splice_to();
        let facts = Facts {
            client: self.peer,
            scheme: self.scheme,
            // What is spliced to the kernel's TLS is read by it at once.
            reader: if splice && !self.conn.is_encrypted() { Reader::Splice } else { Reader::Cpu },
        };
        let mut passed_on = Vec::with_capacity(end + 256);
        write_request(&request, &facts, &mut passed_on);
        let mut exchange = Exchange::new(&request, passed_on, self.since, context.now);
        if context.log.is_on() {
            exchange.name = request.name();
        }
        self.exchange = Some(Box::new(exchange));
        self.input.consume(end);
        self.enter(Phase::Connect, context.now);
        Step::Again
    }

    /// Answers what can't be passed on; the connection ends with it, since where the next request
    /// would begin is anybody's guess.
    fn refuse(&mut self, refusal: Refusal, context: &mut Context) -> Step {
        self.refuse_by(refusal, None, context)
    }

    /// The same for a request that was understood, by its name.
    fn refuse_by(&mut self, refusal: Refusal, name: Option<&str>, context: &mut Context) -> Step {
        add(&context.counters.requests_refused, 1);
        let kind = match refusal.status {
            408 => Kind::Timeout,
            413 | 414 | 431 => Kind::TooLarge,
            403 | 405 => Kind::NotPublic,
            _ => Kind::Malformed,
        };
        let error = Error::new(Source::Downstream, kind, refusal.reason);
        self.note(refusal.status, name, Some(&error), context);
        self.answer(refusal.status, refusal.reason, true, context)
    }

    /// Answers an OPTIONS that asks for its last proxy.
    fn answer_options(&mut self, name: Option<&str>, context: &mut Context) -> Step {
        self.note(200, name, None, context);
        self.answer(200, "not passed on, for Max-Forwards is 0", true, context)
    }

    /// Logs and counts an answer of the proxy itself.
    fn note(
        &mut self,
        status: u16,
        name: Option<&str>,
        error: Option<&Error>,
        context: &mut Context,
    ) {
        let took = context.now.saturating_duration_since(self.since);
        context.log.write(&crate::access::Line {
            client: self.peer,
            request: name.unwrap_or("-"),
            status,
            body_bytes: 0,
            took,
            backend: "",
            spliced: false,
            error,
        });
        context.counters.answered(status, took);
    }

    /// Begins the proxy's own answer.
    pub(super) fn answer(
        &mut self,
        status: u16,
        text: &str,
        with_body: bool,
        context: &mut Context,
    ) -> Step {
        self.reply.clear();
        let allow = if matches!(status, 200 | 405) {
            context.policies[self.door].allow()
        } else {
            String::new()
        };
        self.reply.push_with(|out| write_reply(status, text, &allow, with_body, out));
        self.enter(Phase::Reply, context.now);
        Step::Again
    }

    fn send_reply(&mut self, context: &mut Context) -> Step {
        while !self.reply.is_empty() {
            match self.conn.send(self.reply.bytes(), false) {
                Ok(Io::Done(bytes)) => self.reply.consume(bytes),
                Ok(Io::Blocked | Io::End) => return Step::Wait,
                Err(_) => return Step::Close,
            }
        }
        match self.conn.flush() {
            Ok(true) => self.finish(context.now),
            Ok(false) => Step::Wait,
            Err(_) => Step::Close,
        }
    }

    /// The exchange is over and the connection stays.
    pub(super) fn next_request(&mut self, now: Instant) -> Step {
        self.scanner = Scanner::default();
        self.enter(Phase::Idle, now);
        Step::Again
    }

    /// When the present phase has taken too long.
    pub(super) fn deadline(&self, timeouts: &Timeouts) -> Instant {
        let millis = match self.phase {
            Phase::Handshake => timeouts.handshake_ms,
            Phase::Idle if self.awaited => timeouts.header_ms,
            Phase::Idle => timeouts.keep_alive_ms,
            Phase::Head => timeouts.header_ms,
            Phase::Reply => timeouts.body_idle_ms,
            Phase::Linger => timeouts.linger_ms,
            Phase::Goodbye => {
                let end = self.since + Duration::from_millis(timeouts.body_idle_ms);
                return self.held_up.1.map_or(end, |look| look.min(end));
            }
            Phase::Connect | Phase::Exchange => {
                if let Some(exchange) = &self.exchange {
                    let connecting = (self.phase == Phase::Connect).then_some(self.since);
                    return exchange.deadline(connecting, timeouts);
                }
                timeouts.connect_ms
            }
        };
        self.since + Duration::from_millis(millis)
    }

    /// It is its turn for a connection to that backend; false if it has no use for one any more.
    pub(super) fn called(&mut self, backend: &Arc<Backend>) -> bool {
        let waits = |exchange: &&mut Box<Exchange>| {
            exchange.waits == Waits::Yes
                && exchange.tried.as_ref().is_some_and(|tried| Arc::ptr_eq(tried, backend))
        };
        match self.exchange.as_mut().filter(waits) {
            Some(exchange) if self.phase == Phase::Connect => {
                exchange.waits = Waits::Called;
                true
            }
            _ => false,
        }
    }

    /// Whether a client of whom no event came takes enough of a response all the same.
    fn is_dripping(&mut self, now: Instant) -> bool {
        let (taken, left) = (self.taken(), self.conn.unacknowledged());
        let Some(exchange) = self.exchange.as_mut() else { return false };
        exchange.status.is_some()
            && !exchange.response.is_drained()
            && exchange.drips(taken, left, now)
    }

    /// The timer came. It may be early: the deadline moves while bytes do.
    pub(super) fn on_timer(&mut self, context: &mut Context) -> Next {
        if self.deadline(&context.shared.settings.timeouts) > context.now {
            return Next::Wait;
        }
        if self.is_dripping(context.now) {
            self.conn.try_writing();
            return self.drive(context);
        }
        let body_idle = Duration::from_millis(context.shared.settings.timeouts.body_idle_ms);
        if self.phase == Phase::Goodbye && self.since + body_idle > context.now {
            return self.drive(context);
        }
        if self.phase != Phase::Linger && self.phase != Phase::Idle {
            add(&context.counters.timeouts, 1);
        }
        let step = match self.phase {
            Phase::Idle => self.leave(context.now),
            Phase::Handshake | Phase::Reply | Phase::Goodbye | Phase::Linger => Step::Close,
            Phase::Head => {
                let reason = "the head took longer than allowed";
                self.refuse(Refusal { status: 408, reason }, context)
            }
            Phase::Connect | Phase::Exchange => self.timed_out(context),
        };
        if step == Step::Close { Next::Close } else { self.drive(context) }
    }

    /// Gives back what is lent, and takes note of an exchange that is cut short.
    pub(super) fn dispose(mut self, context: &mut Context) {
        self.abandon(context);
        let open: &AtomicU64 = &context.counters.connections_open;
        open.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether it has nothing to do, and nothing of a request has come, as far as is known.
    pub(super) fn is_between(&self) -> bool {
        self.phase == Phase::Idle && !self.conn.is_readable()
    }

    /// Ends a connection that is idle, for another's sake; one on which a request has come since
    /// is answered.
    pub(super) fn evict(&mut self, now: Instant) -> Next {
        if !self.conn.is_silent() {
            return Next::Later;
        }
        match self.leave(now) {
            Step::Close => Next::Close,
            _ => Next::Later,
        }
    }

    /// Whether nothing of a request is there.
    pub(super) fn is_idle(&self) -> bool {
        matches!(self.phase, Phase::Idle | Phase::Handshake)
    }
}
