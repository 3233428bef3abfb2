//! One connection: what it is in the middle of, and what moves it on.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use ntcopy::socket::Support;
use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown, recv, send, shutdown};

use super::log::Lines;
use super::metrics::Counters;
use super::respond::{self, Answer};
use super::shared::Shared;
use super::slab::Id;
use super::upload::{BodyError, Incoming};
use crate::config::Tunables;
use crate::http::{Clock, HEAD_BYTES_MAX, Method, Parsed, Reader, Refusal, parse};
use crate::send::{Choice, Facts, Mode, Outgoing, Progress, Reason, Sender, Set, choose};

/// Bytes that one connection moves before the others get their turn.
const TURN_BYTES: u64 = 8 << 20;
/// Bytes that must move for a time-out to begin anew: one byte at a time is no progress.
const PROGRESS_BYTES: u64 = 16 << 10;
/// How long a client may take to see that its connection has ended.
const LINGER: Duration = Duration::from_secs(2);

/// What a worker lends to a connection.
pub struct Context<'a> {
    pub shared: &'a Shared,
    pub worker: usize,
    pub id: Id,
    pub now: Instant,
    pub tunables: &'a Tunables,
    pub counters: &'a Counters,
    /// Room for what is read.
    pub scratch: &'a mut [u8],
    pub clock: &'a mut Clock,
    pub sender: &'a mut Sender,
    pub lines: &'a mut Lines,
    pub draining: bool,
}

/// What becomes of a connection after its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    Wait,
    Again,
    Close,
}

/// What a connection is in the middle of.
pub(super) enum Phase {
    /// Waiting for a request, or reading its head.
    Head,
    Job,
    /// Reading the body of a PUT.
    Upload(Box<Incoming>),
    Send(Box<Sending>),
    /// Waiting for the client to hang up. Closed at once, a socket with unread bytes in it would
    /// take back what the client has not read yet.
    Linger,
}

pub(super) struct InFlight {
    pub(super) method: Option<Method>,
    pub(super) path: String,
    pub(super) reader: Reader,
    pub(super) keep_alive: bool,
    pub(super) expects_continue: bool,
    pub(super) started: Instant,
}

/// A response on its way out, and what is counted of it.
pub(super) struct Sending {
    outgoing: Outgoing,
    status: u16,
    keep_alive: bool,
    /// How a body that is not in the head is sent.
    way: Option<(Mode, Reason)>,
    in_head: u64,
    body_bytes: u64,
    /// Bytes that the peer had taken out of the socket when that was last looked at.
    taken: u64,
}

impl Sending {
    /// Whether the peer has taken `least` bytes since this was last asked, though the socket had no
    /// room for more: it says so only once a good part of it is free.
    fn drips(&mut self, socket: &OwnedFd, least: u64) -> bool {
        let sent = self.body_bytes - self.outgoing.left();
        let taken = sent.saturating_sub(unread(socket));
        let before = std::mem::replace(&mut self.taken, taken);
        taken >= before + least
    }
}

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

    pub(super) fn answer(&mut self, answer: Answer, ctx: &mut Context<'_>) {
        let reader = self.in_flight.as_ref().map_or(Reader::Unknown, |request| request.reader);
        let facts = Facts {
            bytes: answer.body.left(),
            reader: if reader == Reader::Unknown { ctx.tunables.reader } else { reader },
            hints: ctx.shared.hints != Support::None,
        };
        let body_bytes = facts.bytes;
        let Choice { mode, reason } = match body_bytes {
            0 => Choice { mode: Mode::Copy, reason: Reason::Small },
            _ => choose(ctx.tunables.mode, &facts),
        };
        let mut outgoing = Outgoing::new(answer.head, answer.body, mode);
        let mut way = None;
        if body_bytes > 0 {
            way = Some((outgoing.prepare(self.socket.as_fd(), &mut self.set, ctx.sender), reason));
            ctx.counters.chose(reason);
        }
        self.phase = Phase::Send(Box::new(Sending {
            outgoing,
            status: answer.status,
            keep_alive: answer.keep_alive,
            way,
            in_head: answer.in_head as u64,
            body_bytes,
            taken: 0,
        }));
        self.deadline = Some(ctx.now + ctx.tunables.send_timeout);
        self.moved = 0;
    }

    fn send(&mut self, ctx: &mut Context<'_>) -> Result<u64, Stop> {
        let Phase::Send(sending) = &mut self.phase else { return Ok(0) };
        if !self.writable {
            return Err(Stop::Wait);
        }
        match sending.outgoing.advance(self.socket.as_fd(), ctx.sender) {
            Ok(Progress::Some(bytes)) => Ok(bytes as u64),
            Ok(Progress::Blocked) => {
                self.writable = false;
                Err(Stop::Wait)
            }
            Ok(Progress::Done) => {
                self.sent(ctx);
                Ok(0)
            }
            Err(errno) => {
                if !matches!(errno, Errno::PIPE | Errno::CONNRESET | Errno::NOTCONN) {
                    let path = self.in_flight.as_ref().map_or("", |request| &request.path);
                    tracing::error!(path, %errno, "a response was cut off");
                }
                Err(Stop::Close)
            }
        }
    }

    fn sent(&mut self, ctx: &mut Context<'_>) {
        let Phase::Send(mut sending) = std::mem::replace(&mut self.phase, Phase::Head) else {
            return;
        };
        sending.outgoing.recycle(ctx.sender);
        self.account(&sending, ctx, false);
        if sending.keep_alive {
            let idle = self.input.is_empty();
            let patience = if idle { ctx.tunables.idle_timeout } else { ctx.tunables.head_timeout };
            self.deadline = Some(ctx.now + patience);
        } else {
            let _ = shutdown(&self.socket, Shutdown::Write);
            self.phase = Phase::Linger;
            self.deadline = Some(ctx.now + LINGER);
        }
    }

    /// Counts and logs what was answered.
    fn account(&mut self, sending: &Sending, ctx: &mut Context<'_>, aborted: bool) {
        let request = self.in_flight.take().unwrap_or_else(|| InFlight::unknown(ctx.now));
        let took = request.started.elapsed();
        ctx.counters.answered(sending.status, took);
        let sent = sending.body_bytes - sending.outgoing.left();
        if let Some((mode, _)) = sending.way {
            ctx.counters.sent(mode, sent);
        }
        if let Some(log) = &ctx.shared.access_log {
            let line = serde_json::json!({
                "date": ctx.clock.date(),
                "peer": self.peer.map(|peer| peer.to_string()),
                "method": request.method.map(Method::name),
                "path": request.path,
                "status": sending.status,
                "body_bytes": sent + sending.in_head,
                "us": took.as_micros() as u64,
                "mode": sending.way.map(|(mode, _)| mode.name()),
                "reason": sending.way.map(|(_, reason)| reason.name()),
                "aborted": aborted,
            });
            ctx.lines.push(&line, log);
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

    /// Reads into the scratch room; at least a byte, at most `most`.
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

/// Bytes that were sent and that the peer has not read or acknowledged, as the kernel counts them.
fn unread(socket: &OwnedFd) -> u64 {
    let mut bytes: libc::c_int = 0;
    // SAFETY: SIOCOUTQ, which is TIOCOUTQ, writes one int to the pointer; the descriptor is open.
    let asked = unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    u64::try_from(bytes).ok().filter(|_| asked == 0).unwrap_or(0)
}
