//! Backends, what their recent connections say about them, and when a request may be given to
//! another connection.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use httpd::{Address, BadAddress};

/// Where a backend is: a unix socket's path, or every address that a host's name stands for. There
/// is at least one.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
#[serde(try_from = "String")]
pub struct Place(Vec<Address>);

impl Place {
    /// These addresses of one backend; `None` without any.
    pub fn new(addresses: Vec<Address>) -> Option<Place> {
        (!addresses.is_empty()).then_some(Place(addresses))
    }

    pub fn addresses(&self) -> &[Address] {
        &self.0
    }
}

impl From<Address> for Place {
    fn from(address: Address) -> Place {
        Place(vec![address])
    }
}

impl FromStr for Place {
    type Err = BadAddress;

    /// A host's name is looked up here, once.
    fn from_str(text: &str) -> Result<Place, BadAddress> {
        Address::all(text).map(Place)
    }
}

impl TryFrom<String> for Place {
    type Error = BadAddress;

    fn try_from(text: String) -> Result<Place, BadAddress> {
        text.parse()
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, address) in self.0.iter().enumerate() {
            write!(f, "{}{address}", if at > 0 { ", " } else { "" })?;
        }
        Ok(())
    }
}

/// A backend. Workers share it; its health is what their exchanges saw, nothing probes it.
#[derive(Debug)]
pub struct Backend {
    /// Where it listens.
    pub place: Place,
    /// Which of its addresses took a connection last.
    preferred: AtomicUsize,
    started: Instant,
    failures: AtomicU32,
    /// Milliseconds since `started`; 0 while it is up.
    down_until_ms: AtomicU64,
}

/// When a backend counts as down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HealthRule {
    /// This number of failures in a row.
    pub failures: u32,
    /// It is passed over for this long.
    pub down_for: Duration,
}

impl Backend {
    /// A backend of which nothing bad is known.
    pub fn new(place: Place) -> Backend {
        Backend {
            place,
            preferred: AtomicUsize::new(0),
            started: Instant::now(),
            failures: AtomicU32::new(0),
            down_until_ms: AtomicU64::new(0),
        }
    }

    /// Which of its addresses is tried first.
    pub fn preferred(&self) -> usize {
        self.preferred.load(Ordering::Relaxed)
    }

    /// That address took a connection.
    pub fn prefer(&self, address: usize) {
        // Mostly nothing has changed: then the line stays shared between the workers' caches.
        if self.preferred() != address {
            self.preferred.store(address, Ordering::Relaxed);
        }
    }

    fn millis(&self, now: Instant) -> u64 {
        now.saturating_duration_since(self.started).as_millis() as u64
    }

    /// A connection or an exchange failed by its fault; true if that put it down.
    pub fn failed(&self, now: Instant, rule: &HealthRule) -> bool {
        let failures = self.failures.fetch_add(1, Ordering::Relaxed) + 1;
        if failures < rule.failures {
            return false;
        }
        let until = self.millis(now) + rule.down_for.as_millis() as u64;
        self.down_until_ms.swap(until.max(1), Ordering::Relaxed) == 0
    }

    /// It answered; true if it counted as down.
    pub fn answered(&self) -> bool {
        // Mostly nothing has changed: then the line stays shared between the workers' caches.
        if self.failures.load(Ordering::Relaxed) == 0 {
            return false;
        }
        self.failures.store(0, Ordering::Relaxed);
        self.down_until_ms.swap(0, Ordering::Relaxed) != 0
    }

    /// Whether it is to be passed over. Once its time is over it is tried again, and goes down
    /// at the next failure.
    pub fn is_down(&self, now: Instant) -> bool {
        let until = self.down_until_ms.load(Ordering::Relaxed);
        until != 0 && self.millis(now) < until
    }
}

/// The next backend in turn that is up and has not been tried; if there is none, the next in turn.
pub fn pick<'b>(
    backends: &'b [Arc<Backend>],
    turn: &mut usize,
    tried: Option<&Arc<Backend>>,
    now: Instant,
) -> &'b Arc<Backend> {
    *turn = turn.wrapping_add(1);
    let in_turn = || (0..backends.len()).map(|step| &backends[(*turn + step) % backends.len()]);
    let fresh = |backend: &&Arc<Backend>| !tried.is_some_and(|tried| Arc::ptr_eq(tried, backend));
    in_turn()
        .filter(fresh)
        .find(|backend| !backend.is_down(now))
        .or_else(|| in_turn().find(|backend| !backend.is_down(now)))
        .unwrap_or(&backends[*turn % backends.len()])
}

/// How far a request got on one connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attempt {
    /// Bytes behind the head that were consumed of the client's stream, framing included. What
    /// was only looked at, and is still there for another try, is not counted.
    pub(crate) consumed: u64,
    /// Whether the backend may have some of the request.
    pub(crate) sent: bool,
    /// Whether the backend has said anything.
    pub(crate) heard: bool,
    /// Whether the connection had served before, so that it may have been closed for its age.
    pub(crate) reused: bool,
    /// Whether the method changes nothing.
    pub(crate) safe: bool,
}

impl Attempt {
    /// Whether another connection can be given the same request. A body of which a byte is
    /// consumed can't be begun again: the client's stream stands in the middle of it, and what
    /// comes next would be read as something else.
    pub(crate) fn may_repeat(self) -> bool {
        self.consumed == 0 && !self.heard && (!self.sent || (self.reused && self.safe))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: HealthRule = HealthRule { failures: 2, down_for: Duration::from_secs(10) };

    fn backends(count: usize) -> Vec<Arc<Backend>> {
        (0..count).map(|at| Arc::new(Backend::new(format!("/{at}").parse().unwrap()))).collect()
    }

    #[test]
    fn failures_in_a_row_put_a_backend_down_for_a_while() {
        let (backend, now) = (&backends(1)[0], Instant::now());
        assert!(!backend.failed(now, &RULE) && !backend.is_down(now));
        assert!(!backend.answered());
        assert!(!backend.failed(now, &RULE) && !backend.is_down(now), "not in a row");
        assert!(backend.failed(now, &RULE) && backend.is_down(now));
        assert!(!backend.failed(now, &RULE), "it was down already");
        assert!(!backend.is_down(now + Duration::from_secs(11)));
        assert!(backend.answered() && !backend.is_down(now));
    }

    #[test]
    fn the_turn_passes_over_those_that_are_down_or_tried() {
        let (list, now, mut turn) = (backends(3), Instant::now(), 0);
        let mut next =
            |tried: Option<&Arc<Backend>>| pick(&list, &mut turn, tried, now).place.to_string();
        assert_eq!([next(None), next(None), next(None)], ["unix:/1", "unix:/2", "unix:/0"]);
        list[1].failed(now, &HealthRule { failures: 1, ..RULE });
        assert_eq!(next(None), "unix:/2", "1 is down");
        assert_eq!(next(Some(&list[2])), "unix:/0", "2 was tried");
        for backend in &list {
            backend.failed(now, &HealthRule { failures: 1, ..RULE });
        }
        assert_eq!([next(None), next(None)], ["unix:/0", "unix:/1"], "all are down: the turn's");
    }

    #[test]
    fn nothing_is_repeated_of_which_a_byte_is_gone() {
        let whole = Attempt { consumed: 0, sent: false, heard: false, reused: false, safe: false };
        assert!(whole.may_repeat());
        assert!(!Attempt { consumed: 1, ..whole }.may_repeat());
        assert!(!Attempt { heard: true, ..whole }.may_repeat());
        let sent = Attempt { sent: true, ..whole };
        assert!(!sent.may_repeat());
        assert!(!Attempt { safe: true, ..sent }.may_repeat(), "the backend may be at work on it");
        assert!(!Attempt { reused: true, ..sent }.may_repeat(), "it may have been done");
        let stale = Attempt { reused: true, safe: true, ..sent };
        assert!(stale.may_repeat());
        assert!(!Attempt { consumed: 1, ..stale }.may_repeat());
        assert!(!Attempt { heard: true, ..stale }.may_repeat());
    }
}
