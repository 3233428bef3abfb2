//! Who is waited for, and how long.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use httpd::{Pace, unacknowledged};
use tokio::time::{Instant, Sleep, sleep_until};

use super::outcome::{Error, Side};
use super::{Answer, Awaited, Exchange, Sending};
use crate::flow::Pass;

/// A client's timer, made when it is first needed.
#[derive(Debug, Default)]
pub(crate) struct Timer(Option<Pin<Box<Sleep>>>);

impl Timer {
    fn poll(&mut self, cx: &mut Context<'_>, deadline: Instant) -> Poll<()> {
        let sleep = self.0.get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        if deadline != sleep.deadline() {
            sleep.as_mut().reset(deadline);
        }
        sleep.as_mut().poll(cx)
    }
}

/// What has moved in an exchange, as of the last look.
#[derive(Debug)]
pub(super) struct Progress {
    pub(super) pace: Pace,
    /// Bytes, anywhere.
    moved: u64,
    /// Bytes on the client's side, in the direction that is waited for.
    of_client: u64,
}

impl Progress {
    pub(super) fn new(patience: Duration) -> Progress {
        Progress { pace: Pace::new(patience), moved: 0, of_client: 0 }
    }
}

impl Exchange<'_> {
    /// Whether whoever is waited for has taken too long; ready where another look is worth it.
    pub(super) fn poll_too_slow(&mut self, cx: &mut Context<'_>) -> Poll<Result<Pass, Error>> {
        self.look_at_progress();
        let deadline = self.deadline();
        ready!(self.timer.poll(cx, deadline));
        if !self.client_still_takes() {
            self.client.ticket.counts().timeouts.up();
            return Poll::Ready(Err(self.timeout()));
        }
        self.progress.pace.again();
        self.client.stream.socket_mut().writable = true;
        Poll::Ready(Ok(Pass::Again))
    }

    fn deadline(&self) -> Instant {
        let since = match (self.answer, self.sending) {
            (Answer::Awaited(_), Sending::Sent(at) | Sending::Refused(at)) => at,
            (Answer::Awaited(awaited), Sending::Begun(at)) if self.needs_100(awaited) => at,
            _ => return self.progress.pace.until,
        };
        since + self.worker.shared.config.answer_timeout
    }

    /// The client waits for a 100, and the backend, which has the head, has not said it.
    fn needs_100(&self, awaited: Awaited) -> bool {
        let untouched = self.request.consumed == 0 && self.request.is_drained();
        self.asked.expects_continue && !awaited.continued && untouched
    }

    /// Who is waited for, and for what.
    fn waits_for(&self) -> (Side, &'static str) {
        let who = |is_client| if is_client { Side::Client } else { Side::Backend };
        match (self.answer, self.sending) {
            (Answer::Awaited(awaited), Sending::Begun(_)) if self.needs_100(awaited) => {
                (Side::Backend, "neither a 100 nor an answer")
            }
            (Answer::Awaited(_), Sending::Begun(_)) => {
                (who(self.request.is_drained()), "the request's body makes no progress")
            }
            // Interim answers that the client doesn't take hold up the final one.
            (Answer::Awaited(_), _) => (who(!self.response.is_drained()), "no answer"),
            _ => (who(!self.response.is_drained()), "the response's body makes no progress"),
        }
    }

    fn timeout(&self) -> Error {
        let (side, what) = self.waits_for();
        let status = if side == Side::Client { 408 } else { 504 };
        Error::new(side, status, format!("timeout: {what}"))
    }

    /// Bytes of the answer that the client's socket took.
    fn taken(&self) -> u64 {
        if self.client.stream.is_encrypted() {
            self.client.stream.socket().written
        } else {
            self.response.sent
        }
    }

    /// Progress restarts the timer of the side that is waited for: any byte of the backend, for it
    /// may be at work on the next; of the client no fewer than the least.
    fn look_at_progress(&mut self) {
        let (request, response) = (&self.request, &self.response);
        let moved = request.sent + response.sent + request.body_bytes() + response.body_bytes();
        let moved = moved + self.client.stream.socket().written;
        if std::mem::replace(&mut self.progress.moved, moved) == moved {
            return;
        }
        let bytes = match (self.answer, self.sending) {
            (Answer::Awaited(_), Sending::Begun(_)) => request.consumed,
            _ => self.taken(),
        };
        let since = bytes.abs_diff(std::mem::replace(&mut self.progress.of_client, bytes));
        match self.waits_for() {
            (Side::Client, _) => self.progress.pace.moved(since),
            _ => self.progress.pace.again(),
        }
    }

    /// Whether a client of whom no event came takes enough of an answer all the same.
    fn client_still_takes(&mut self) -> bool {
        let waits = matches!(self.answer, Answer::Begun(_)) && !self.response.is_drained();
        let taken = self.taken().saturating_sub(unacknowledged(self.client.stream.socket()));
        waits && self.progress.pace.take(taken).is_ok()
    }
}
