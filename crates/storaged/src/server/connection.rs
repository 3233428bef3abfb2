//! One connection: what it is in the middle of, and what moves it on.

use std::net::SocketAddr;
use std::time::Instant;

use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::log::Lines;
use super::metrics::Counters;
use super::respond;
use super::sending::Sending;
use super::shared::Shared;
use super::slab::Id;
use super::upload::{BodyError, Incoming};
use crate::config::Tunables;
use crate::http::{Clock, HEAD_BYTES_MAX, Method, Parsed, Reader, Refusal, parse};
use crate::send::{Sender, Set};

/// Bytes that one connection moves before the others get their turn.
const TURN_BYTES: u64 = 8 << 20;
/// Bytes that must move for a time-out to begin anew: one byte at a time is no progress.
const PROGRESS_BYTES: u64 = 16 << 10;
/// What a worker lends to a connection.
pub struct Context<'a> {
    /// What all workers share.
    pub shared: &'a Shared,
    /// The worker's number.
    pub worker: usize,
    /// The connection's.
    pub id: Id,
    /// The time, as of this turn.
    pub now: Instant,
    /// What can change.
    pub tunables: &'a Tunables,
    /// The worker's counters.
    pub counters: &'a Counters,
    /// Room for what is read.
    pub scratch: &'a mut [u8],
    /// The date.
    pub clock: &'a mut Clock,
    /// Pipes.
    pub sender: &'a mut Sender,
    /// Lines for the access log.
    pub lines: &'a mut Lines,
    /// The daemon is about to end.
    pub draining: bool,
}

/// What becomes of a connection after its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It waits for an event.
    Wait,
    /// It has more to do.
    Again,
    /// It has ended.
    Close,
}

/// What a connection is in the middle of.
pub(super) enum Phase {
    /// Waiting for a request, or reading its head.
    Head,
    /// Waiting for a job.
    Job,
    /// Reading the body of a PUT.
    Upload(Box<Incoming>),
    /// Sending a response.
    Send(Box<Sending>),
    /// Waiting for the client to hang up. Closed at once, a socket with unread bytes in it would
    /// take back what the client has not read yet.
    Linger,
}

/// The request that is being answered.
pub(super) struct InFlight {
    pub(super) method: Option<Method>,
    pub(super) path: String,
    pub(super) reader: Reader,
    pub(super) keep_alive: bool,
    pub(super) expects_continue: bool,
    pub(super) started: Instant,
}

/// One connection.
pub struct Connection {
    pub(super) socket: OwnedFd,
    pub(super) peer: Option<SocketAddr>,
    /// Only what is measured is to be had here.
    pub(super) admin: bool,
    readable: bool,
    pub(super) writable: bool,
    hung_up: bool,
    pub(super) input: Vec<u8>,
    pub(super) phase: Phase,
    pub(super) deadline: Option<Instant>,
    /// Bytes since the deadline was set.
    pub(super) moved: u64,
    /// Which sends of the socket are hinted.
    pub(super) set: Set,
    pub(super) in_flight: Option<InFlight>,
}

impl Connection {
    /// A connection that was just accepted.
    pub fn new(
        socket: OwnedFd,
        peer: Option<SocketAddr>,
        admin: bool,
        until: Instant,
    ) -> Connection {
        Connection {
            socket,
            peer,
            admin,
            readable: true,
            writable: true,
            hung_up: false,
            input: Vec::new(),
            phase: Phase::Head,
            deadline: Some(until),
            moved: 0,
            set: Set::NONE,
            in_flight: None,
        }
    }

    /// What epoll said.
    pub fn woken(&mut self, readable: bool, writable: bool, hung_up: bool) {
        self.readable |= readable || hung_up;
        self.writable |= writable;
        self.hung_up |= hung_up;
    }

    /// Its time is up at this moment.
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Does what can be done now.
    pub fn run(&mut self, ctx: &mut Context<'_>) -> Fate {
        let mut turn_bytes = 0;
        loop {
            if turn_bytes >= TURN_BYTES {
                return Fate::Again;
            }
            let moved = match &mut self.phase {
                Phase::Job => return Fate::Wait,
                Phase::Head => self.head(ctx),
                Phase::Upload(_) => self.body(ctx),
                Phase::Send(_) => self.send(ctx),
                Phase::Linger => self.read(ctx, usize::MAX).map(|bytes| bytes as u64),
            };
            match moved {
                Ok(bytes) => {
                    turn_bytes += bytes;
                    self.progress(bytes, ctx);
                }
                Err(Stop::Wait) => return Fate::Wait,
                Err(Stop::Close) => return Fate::Close,
            }
        }
    }

    /// Since when it has had an object in memory that it was decoded to.
    pub fn decoded_since(&self) -> Option<Instant> {
        match &self.phase {
            Phase::Send(sending) => sending.decoded_since(),
            _ => None,
        }
    }

    /// Its time is up.
    pub fn expire(&mut self, ctx: &mut Context<'_>) -> Fate {
        if let Phase::Send(sending) = &mut self.phase
            && sending.drips(&self.socket, PROGRESS_BYTES)
        {
            self.moved = 0;
            self.deadline = Some(ctx.now + ctx.tunables.send_timeout);
            self.writable = true;
            return self.run(ctx);
        }
        let busy = !matches!(self.phase, Phase::Linger) && !self.is_idle();
        if busy {
            ctx.counters.timeouts.up();
        }
        match self.phase {
            Phase::Head if busy => self.refuse(408, "the head took too long", ctx),
            Phase::Upload(_) => self.refuse(408, "the body took too long", ctx),
            _ => return Fate::Close,
        }
        self.run(ctx)
    }

    /// Between two requests.
    pub fn is_idle(&self) -> bool {
        matches!(self.phase, Phase::Head) && self.input.is_empty()
    }

    /// Until when it may go on waiting for a request, if none has come as far as the kernel knows.
    pub fn idle_until(&self) -> Option<Instant> {
        self.deadline.filter(|_| self.is_idle() && !self.admin && self.is_silent())
    }

    /// The connection ends here, in whatever it was doing.
    pub fn close(mut self, ctx: &mut Context<'_>) {
        if let Phase::Send(mut sending) = std::mem::replace(&mut self.phase, Phase::Linger) {
            ctx.counters.aborted.up();
            sending.outgoing.recycle(ctx.sender);
            self.account(&sending, ctx, true);
        }
    }

    fn head(&mut self, ctx: &mut Context<'_>) -> Result<u64, Stop> {
        if !self.input.is_empty() {
            match parse(&self.input) {
                Ok(Parsed::Whole(request, bytes)) => {
                    self.input.drain(..bytes);
                    self.deadline = None;
                    self.start(request, ctx);
                    return Ok(bytes as u64);
                }
                Ok(Parsed::Partial) => {}
                Err(Refusal { status, why }) => {
                    self.refuse(status, why, ctx);
                    return Ok(0);
                }
            }
        }
        let first = self.input.is_empty();
        // What comes behind a head waits in the socket: a client that sends and never reads has
        // one head here, and no more.
        match self.read(ctx, HEAD_BYTES_MAX + 1 - self.input.len().min(HEAD_BYTES_MAX)) {
            Ok(bytes) => {
                self.input.extend_from_slice(&ctx.scratch[..bytes]);
                if first {
                    self.deadline = Some(ctx.now + ctx.tunables.head_timeout);
                }
                Ok(0)
            }
            // Asked of the kernel, since the event of a request may not have come yet.
            Err(Stop::Wait) if ctx.draining && first && self.is_silent() => Err(Stop::Close),
            Err(stop) => {
                if first {
                    self.input = Vec::new();
                }
                Err(stop)
            }
        }
    }

    fn body(&mut self, ctx: &mut Context<'_>) -> Result<u64, Stop> {
        let from_input = !self.input.is_empty();
        let Phase::Upload(incoming) = &self.phase else { return Ok(0) };
        // Little of what follows the body.
        let most = incoming.next_bytes().saturating_add(HEAD_BYTES_MAX);
        let read = if from_input { 0 } else { self.read(ctx, most)? };
        let Phase::Upload(incoming) = &mut self.phase else { return Ok(0) };
        let before = incoming.bytes();
        let result = match from_input {
            true => incoming.push(&self.input).inspect(|taken| {
                self.input.drain(..*taken);
            }),
            false => incoming.push(&ctx.scratch[..read]).inspect(|taken| {
                self.input.extend_from_slice(&ctx.scratch[*taken..read]);
            }),
        };
        match result {
            Ok(taken) => {
                ctx.counters.received.add(incoming.bytes() - before);
                self.body_is_in(ctx);
                Ok(taken as u64)
            }
            Err(BodyError::Malformed) => {
                self.refuse(400, "the chunked body is malformed", ctx);
                Ok(0)
            }
            Err(BodyError::TooLarge) => {
                self.refuse(413, "the object is too large (see --object-max)", ctx);
                Ok(0)
            }
            Err(BodyError::Store(error)) => {
                self.refuse_for(&error, ctx);
                Ok(0)
            }
        }
    }

    /// Begins to take a body.
    pub(super) fn take_body(&mut self, incoming: Box<Incoming>, ctx: &mut Context<'_>) -> bool {
        let wanted = self.in_flight.as_ref().is_some_and(|request| request.expects_continue);
        if wanted && self.input.is_empty() && !incoming.is_done() {
            let text = b"HTTP/1.1 100 Continue\r\n\r\n";
            // Nothing else is on its way out, so these few bytes find room.
            if send(&self.socket, text, SendFlags::NOSIGNAL) != Ok(text.len()) {
                return false;
            }
        }
        self.phase = Phase::Upload(incoming);
        self.deadline = Some(ctx.now + ctx.tunables.body_timeout);
        self.moved = 0;
        self.body_is_in(ctx);
        true
    }

    fn body_is_in(&mut self, ctx: &mut Context<'_>) {
        match std::mem::replace(&mut self.phase, Phase::Job) {
            Phase::Upload(incoming) if incoming.is_done() => {
                self.deadline = None;
                self.commit(*incoming, ctx);
            }
            phase => self.phase = phase,
        }
    }

    /// Answers with an error after which the connection ends: where the request ends is not
    /// known, or not waited for.
    pub(super) fn refuse(&mut self, status: u16, why: &str, ctx: &mut Context<'_>) {
        let request = self.in_flight.get_or_insert_with(|| InFlight::unknown(ctx.now));
        let method = request.method;
        let answer = respond::error(status, why, method, false, ctx.clock);
        self.answer(answer, ctx);
    }

    /// Reads into the scratch room; at least a byte, at most so many.
    fn read(&mut self, ctx: &mut Context<'_>, most: usize) -> Result<usize, Stop> {
        if !self.readable {
            return Err(Stop::Wait);
        }
        loop {
            let room = most.min(ctx.scratch.len());
            match recv(&self.socket, &mut ctx.scratch[..room], RecvFlags::empty()) {
                Ok((_, 0)) => return Err(Stop::Close),
                Ok((_, bytes)) => {
                    // A short read has emptied the socket, and what comes later is a new event;
                    // an end of the stream that has been announced is not.
                    self.readable = bytes == room || self.hung_up;
                    return Ok(bytes);
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    self.readable = false;
                    return Err(Stop::Wait);
                }
                Err(_) => return Err(Stop::Close),
            }
        }
    }

    /// Whether nothing has come that was not read, and no end.
    fn is_silent(&self) -> bool {
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        matches!(recv(&self.socket, &mut [0; 1], flags), Err(Errno::AGAIN))
    }

    /// Waits for a job.
    pub(super) fn wait_for_job(&mut self) {
        self.phase = Phase::Job;
        self.deadline = None;
    }

    /// A job's outcome is of use.
    pub(super) fn is_waiting_for_job(&self) -> bool {
        matches!(self.phase, Phase::Job)
    }

    fn progress(&mut self, bytes: u64, ctx: &Context<'_>) {
        self.moved += bytes;
        if self.moved >= PROGRESS_BYTES {
            let patience = match self.phase {
                Phase::Upload(_) => ctx.tunables.body_timeout,
                Phase::Send(_) => ctx.tunables.send_timeout,
                _ => return,
            };
            self.moved = 0;
            self.deadline = Some(ctx.now + patience);
        }
    }
}

impl InFlight {
    /// A request whose head could not be read.
    pub(super) fn unknown(now: Instant) -> InFlight {
        InFlight {
            method: None,
            path: String::new(),
            reader: Reader::Unknown,
            keep_alive: false,
            expects_continue: false,
            started: now,
        }
    }
}

/// Why a connection's turn is over.
pub(super) enum Stop {
    Wait,
    Close,
}
