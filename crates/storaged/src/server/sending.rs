//! The sending half of a connection.

use std::time::{Duration, Instant};

use ntcopy::socket::Support;
use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{Shutdown, shutdown};

use super::connection::{Connection, Context, InFlight, Phase, Stop};
use super::respond::Answer;
use crate::http::{Method, Reader};
use crate::send::{Choice, Facts, Mode, Outgoing, Progress, Reason, choose};

/// How long a client may take to see that its connection has ended.
const LINGER: Duration = Duration::from_secs(2);

/// A response on its way out, and what is counted of it.
pub(super) struct Sending {
    pub(super) outgoing: Outgoing,
    status: u16,
    keep_alive: bool,
    /// Of a body that is not in the head.
    way: Option<(Mode, Reason)>,
    in_head: u64,
    body_bytes: u64,
    /// Since when it has had decoded content in memory.
    decoded_since: Option<Instant>,
    /// Bytes that the peer had taken out of the socket when that was last looked at.
    taken: u64,
}

impl Sending {
    /// Whether the peer has taken so many bytes since this was last asked, though the socket had no
    /// room for more: it says so only once a good part of it is free.
    pub(super) fn drips(&mut self, socket: &OwnedFd, least: u64) -> bool {
        let sent = self.body_bytes - self.outgoing.left();
        let taken = sent.saturating_sub(unread(socket));
        let before = std::mem::replace(&mut self.taken, taken);
        taken >= before + least
    }

    pub(super) fn decoded_since(&self) -> Option<Instant> {
        self.decoded_since
    }
}

impl Connection {
    /// Sends an answer.
    pub(super) fn answer(&mut self, answer: Answer, ctx: &mut Context<'_>) {
        let reader = self.in_flight.as_ref().map_or(Reader::Unknown, |request| request.reader);
        let facts = Facts {
            bytes: answer.body.left(),
            source: answer.body.source(),
            reader: if reader == Reader::Unknown { ctx.tunables.reader } else { reader },
            hints: ctx.shared.hints != Support::None,
        };
        let body_bytes = facts.bytes;
        let Choice { mode, reason } = match body_bytes {
            0 => Choice { mode: Mode::Copy, reason: Reason::Small },
            _ => choose(ctx.tunables.mode, &facts),
        };
        let decoded_since = answer.body.is_memory().then_some(ctx.now);
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
            decoded_since,
            taken: 0,
        }));
        self.deadline = Some(ctx.now + ctx.tunables.send_timeout);
        self.moved = 0;
    }

    /// Sends the next piece.
    pub(super) fn send(&mut self, ctx: &mut Context<'_>) -> Result<u64, Stop> {
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
    pub(super) fn account(&mut self, sending: &Sending, ctx: &mut Context<'_>, aborted: bool) {
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
}

/// Bytes that were sent and that the peer has not read or acknowledged, as the kernel counts them.
fn unread(socket: &OwnedFd) -> u64 {
    let mut bytes: libc::c_int = 0;
    // SAFETY: SIOCOUTQ, which is TIOCOUTQ, writes one int to the pointer; the descriptor is open.
    let asked = unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    u64::try_from(bytes).ok().filter(|_| asked == 0).unwrap_or(0)
}
