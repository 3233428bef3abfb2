//! How a client's connection ends once everything was answered.

use std::time::{Duration, Instant};

use super::session::{Phase, Session, Step};
use crate::conn::Finish;
use crate::net::Io;

/// What a client may still send after its last answer, so that the close doesn't become a reset
/// that takes the answer with it.
const LINGER_BYTES: usize = 1 << 20;
/// How soon to look again at what the kernel's TLS holds back: no event tells.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

impl Session {
    /// Says that nothing more will be sent, and waits a little for the client's own end.
    pub(super) fn finish(&mut self, now: Instant) -> Step {
        self.input.clear();
        self.lingered = 0;
        self.held_up = (u64::MAX, None);
        self.enter(Phase::Goodbye, now);
        Step::Again
    }

    /// Ends a connection on which nothing is due in either direction. TLS wants that said, and the
    /// kernel's may still have something to send; there is no wait beyond that.
    pub(super) fn leave(&mut self, now: Instant) -> Step {
        if !self.conn.is_encrypted() {
            return Step::Close;
        }
        let step = self.finish(now);
        self.lingered = LINGER_BYTES;
        step
    }

    /// Ends the sending side, behind everything that was sent.
    pub(super) fn goodbye(&mut self, now: Instant) -> Step {
        if self.conn.is_hung_up() {
            return Step::Close;
        }
        self.held_up.1 = None;
        match self.conn.finish() {
            Finish::Said => {
                self.enter(Phase::Linger, now);
                Step::Again
            }
            Finish::Blocked => Step::Wait,
            Finish::HeldUp(bytes) => {
                // A client that takes something is not cut off.
                if bytes < self.held_up.0 {
                    self.since = now;
                }
                self.held_up = (bytes, Some(now + LOOK_AGAIN));
                Step::Wait
            }
        }
    }

    pub(super) fn linger(&mut self) -> Step {
        let mut scrap = [0; 16 << 10];
        while self.lingered < LINGER_BYTES {
            match self.conn.recv(&mut scrap) {
                Ok(Io::Done(bytes)) => self.lingered += bytes,
                Ok(Io::Blocked) => return Step::Wait,
                Ok(Io::End) | Err(_) => return Step::Close,
            }
        }
        Step::Close
    }
}
