//! One request and its response. Both directions run at once: a backend may answer before it has
//! read the whole request.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::flow::{Coding, Flow};
use super::upstreams::Upstream;
use crate::backend::{Attempt, Backend};
use crate::config::Timeouts;
use crate::http::{
    Framing, INTERIMS_MAX, Method, Request, Response, Scanner, TOO_MANY_INTERIMS, write_response,
};

/// What a client must send of a body, or take of one, in each `timeouts.body_idle_ms`.
pub(crate) const LEAST_BYTES: u64 = 16 << 10;
/// How many such times what a client took before may cover: its system tells that it reads only
/// once much of a buffer is free, which at 2 KB/s may take minutes.
pub(crate) const SPARE_TIMES: u32 = 8;

/// Whether an exchange waits until there may be another connection to its backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Waits {
    /// It doesn't.
    No,
    /// It is in the queue.
    Yes,
    /// It is its turn.
    Called,
}

/// One request and its response.
#[derive(Debug)]
pub(super) struct Exchange {
    /// Method and target, for the log; empty if there is none.
    pub(super) name: String,
    pub(super) method: Method,
    pub(super) minor: u8,
    /// Whether the client wants to keep its connection.
    pub(super) keep_client: bool,
    framing: Framing,
    /// The head for the backend, kept for another try.
    head: Vec<u8>,
    pub(super) started: Instant,
    /// When enough bytes had last moved.
    pub(super) last: Instant,
    /// Bytes of the client's side then.
    mark: u64,
    /// Bytes of the response that the client had acknowledged when that was last looked at.
    acknowledged: u64,
    /// Times that are covered by what it had acknowledged before.
    spare: u64,
    pub(super) request: Flow,
    pub(super) response: Flow,
    pub(super) up: Option<Upstream>,
    /// The backend that was tried last.
    pub(super) tried: Option<Arc<Backend>>,
    /// Which of its addresses, and how many others of them are still to be tried.
    pub(super) address: usize,
    pub(super) addresses_left: usize,
    pub(super) tries: u32,
    /// Whether the connection had served before.
    pub(super) reused: bool,
    /// Whether it waits for others' connections.
    pub(super) waits: Waits,
    /// When the request was sent, or given up.
    pub(super) sent_at: Option<Instant>,
    /// The backend takes no more of the request, but may still answer.
    pub(super) broken: bool,
    pub(super) scanner: Scanner,
    /// The status, once the final head is there.
    pub(super) status: Option<u16>,
    /// Whether an interim answer was passed on.
    pub(super) interim: bool,
    /// Interim answers of the present connection, passed on or not.
    interims: u32,
    pub(super) keep_backend: bool,
    pub(super) until_close: bool,
}

impl Exchange {
    pub(super) fn new(
        request: &Request<'_>,
        head: Vec<u8>,
        started: Instant,
        now: Instant,
    ) -> Exchange {
        Exchange {
            name: String::new(),
            method: request.kind,
            minor: request.minor,
            keep_client: request.keep_alive,
            framing: request.framing,
            head,
            started,
            last: now,
            mark: 0,
            acknowledged: 0,
            spare: 0,
            request: Flow::new(),
            response: Flow::new(),
            up: None,
            tried: None,
            address: 0,
            addresses_left: 0,
            tries: 0,
            reused: false,
            waits: Waits::No,
            sent_at: None,
            broken: false,
            scanner: Scanner::default(),
            status: None,
            interim: false,
            interims: 0,
            keep_backend: false,
            until_close: false,
        }
    }

    /// Whether the client's connection is kept after this exchange.
    pub(super) fn keeps_client(&self) -> bool {
        self.keep_client
    }

    /// When it has taken too long; `connecting` is since when, if that is what it does.
    pub(super) fn deadline(&self, connecting: Option<Instant>, timeouts: &Timeouts) -> Instant {
        if let Some(since) = connecting {
            return since + Duration::from_millis(timeouts.connect_ms);
        }
        match self.sent_at {
            Some(sent) if self.status.is_none() => {
                sent + Duration::from_millis(timeouts.backend_header_ms)
            }
            _ => self.last + Duration::from_millis(timeouts.body_idle_ms),
        }
    }

    /// Another try begins: nothing has been sent, as far as the flows know, and nothing of the
    /// body consumed, or its rest would be taken for its beginning.
    pub(super) fn rewind(&mut self, body_limit: u64, may_splice: bool) {
        debug_assert_eq!(self.request.consumed, 0, "a request is not begun again in its middle");
        self.request = Flow::new();
        self.request.out.push(&self.head);
        self.request.start(self.framing, Coding::of_request(self.framing), may_splice, body_limit);
        self.scanner = Scanner::default();
        self.interims = 0;
        self.sent_at = None;
        self.broken = false;
    }

    /// Bytes have moved; `taken` of the response are with the client's socket. Who is waited for
    /// begins his time anew: a backend with any byte, for it may be at work on the next; a client
    /// with no fewer than the least.
    pub(super) fn progressed(&mut self, taken: u64, now: Instant) {
        let (waits_for_client, bytes) = match self.sent_at {
            None => (self.request.is_drained(), self.request.consumed),
            Some(_) => (!self.response.is_drained(), taken),
        };
        if !waits_for_client || bytes.abs_diff(self.mark) >= LEAST_BYTES {
            self.last = now;
            self.mark = bytes;
        }
    }

    /// Whether the client takes enough out of its socket, though the socket had no room for more.
    /// Asked once for each time in which it has to.
    pub(super) fn drips(&mut self, taken: u64, unacknowledged: u64, now: Instant) -> bool {
        let acknowledged = taken.saturating_sub(unacknowledged);
        let since = acknowledged.saturating_sub(self.acknowledged);
        self.acknowledged = acknowledged;
        self.spare = (self.spare + since / LEAST_BYTES).min(u64::from(SPARE_TIMES));
        let enough = self.spare > 0;
        if enough {
            self.spare -= 1;
            self.last = now;
        }
        enough
    }

    /// How far the request got on the present connection.
    pub(super) fn attempt(&self) -> Attempt {
        Attempt {
            consumed: self.request.consumed,
            sent: self.request.sent > 0,
            heard: self.interims > 0
                || self.status.is_some()
                || self.up.as_ref().is_some_and(|up| !up.input.is_empty()),
            reused: self.reused,
            safe: self.method.is_safe(),
        }
    }

    /// Rises with every byte that goes anywhere.
    pub(super) fn moved(&self) -> u64 {
        self.request.sent
            + self.response.sent
            + self.request.body_bytes()
            + self.response.body_bytes()
    }

    /// Another head follows; HTTP/1.0 knows no interim answers, its clients don't see them.
    ///
    /// # Errors
    ///
    /// There were too many.
    pub(super) fn pass_interim(&mut self, response: &Response<'_>) -> Result<(), &'static str> {
        self.interims += 1;
        if self.interims > INTERIMS_MAX {
            return Err(TOO_MANY_INTERIMS);
        }
        if self.minor > 0 {
            self.interim = true;
            self.response.out.push_with(|out| write_response(response, 1, true, out));
        }
        Ok(())
    }

    /// Takes up the final head.
    pub(super) fn accept(&mut self, response: &Response<'_>, may_splice: bool) {
        // While the request isn't read to its end, where the next begins is not known.
        let request_read = self.request.is_read();
        self.until_close = response.framing == Framing::UntilClose
            || (response.framing == Framing::Chunked && self.minor == 0);
        self.keep_client &= request_read && !self.broken && !self.until_close;
        self.keep_backend = response.keep_alive;
        self.status = Some(response.status);
        let keep = self.keep_client;
        self.response.out.push_with(|out| write_response(response, self.minor, keep, out));
        let coding = match response.framing {
            Framing::Chunked if self.minor > 0 => Coding::Chunked,
            _ => Coding::Plain,
        };
        self.response.start(response.framing, coding, may_splice, 0);
    }
}
