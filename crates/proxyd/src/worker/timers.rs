//! Deadlines of sessions, soonest first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::{Duration, Instant};

use super::Key;

/// A heap that forgets nothing: an entry whose session is gone, or has moved its deadline, is
/// recognised when its time comes. So a deadline that moves with every byte costs nothing.
#[derive(Debug, Default)]
pub(super) struct Timers(BinaryHeap<Reverse<(Instant, Key)>>);

impl Timers {
    pub(super) fn push(&mut self, at: Instant, key: Key) {
        self.0.push(Reverse((at, key)));
    }

    /// The next whose time has come, with that time: a session that has set an earlier one since
    /// does not mean this one.
    pub(super) fn pop(&mut self, now: Instant) -> Option<(Instant, Key)> {
        match self.0.peek() {
            Some(Reverse((at, _))) if *at <= now => self.0.pop().map(|Reverse(entry)| entry),
            _ => None,
        }
    }

    /// How long until there is one.
    pub(super) fn wait(&self, now: Instant) -> Option<Duration> {
        self.0.peek().map(|Reverse((at, _))| at.saturating_duration_since(now))
    }
}
