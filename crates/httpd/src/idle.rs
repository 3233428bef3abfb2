//! A worker's connections that wait for a request, by how long they have waited.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use lru::LruCache;
use rustix::fd::OwnedFd;
use rustix::net::{Shutdown, shutdown};

#[derive(Debug)]
pub(crate) struct Idle(Mutex<LruCache<u64, (Arc<OwnedFd>, Instant)>>);

impl Idle {
    pub(crate) fn new() -> Idle {
        Idle(Mutex::new(LruCache::unbounded()))
    }

    /// In the list until what is returned is dropped.
    pub(crate) fn enter(&self, number: u64, socket: Arc<OwnedFd>) -> Waiting<'_> {
        self.lock().put(number, (socket, Instant::now()));
        Waiting { idle: self, number }
    }

    /// Since when the longest has waited.
    pub(crate) fn oldest(&self) -> Option<Instant> {
        self.lock().peek_lru().map(|(_, (_, since))| *since)
    }

    /// Ends the one that has waited longest, if it has waited for so long.
    pub(crate) fn end_oldest(&self, waited: Duration) -> bool {
        let mut list = self.lock();
        if list.peek_lru().is_none_or(|(_, (_, since))| since.elapsed() < waited) {
            return false;
        }
        if let Some((_, (socket, _))) = list.pop_lru() {
            end(&socket);
        }
        true
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, LruCache<u64, (Arc<OwnedFd>, Instant)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whoever reads from the socket finds the end behind what has come already.
pub(crate) fn end(socket: &OwnedFd) {
    let _ = shutdown(socket, Shutdown::Read);
}

#[derive(Debug)]
pub(crate) struct Waiting<'a> {
    idle: &'a Idle,
    number: u64,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.idle.lock().pop(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A look at each of them for each that is ended would take minutes.
    #[test]
    fn many_can_be_idle() {
        let (ours, _theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        let (idle, ours) = (Idle::new(), Arc::new(OwnedFd::from(ours)));
        let waiting: Vec<_> = (0..100_000).map(|at| idle.enter(at, Arc::clone(&ours))).collect();
        for at in 0..100_000 {
            assert!(idle.oldest().is_some() && idle.end_oldest(Duration::ZERO), "{at}");
        }
        assert!(!idle.end_oldest(Duration::ZERO));
        drop(waiting);
    }
}
