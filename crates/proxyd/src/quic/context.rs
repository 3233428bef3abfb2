//! What exchanges of HTTP/3 share.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use super::upstream::Idle;
use crate::access::{AccessLog, Line};
use crate::backend::{Backend, pick};
use crate::config::Live;
use crate::metrics::Counters;
use crate::worker::Shared;

/// What exchanges of HTTP/3 share.
pub(super) struct Context {
    pub(super) shared: Arc<Shared>,
    pub(super) counters: Arc<Counters>,
    pub(super) idle: Idle,
    log: Mutex<AccessLog>,
    turn: AtomicUsize,
}

impl Context {
    pub(super) fn new(shared: Arc<Shared>, counters: Arc<Counters>) -> std::io::Result<Context> {
        let log = AccessLog::open(shared.live().1.as_deref())?;
        let (log, turn) = (Mutex::new(log), AtomicUsize::new(0));
        Ok(Context { shared, counters, idle: Idle::default(), log, turn })
    }

    /// The backend for the next try.
    pub(super) fn pick(&self, live: &Live, tried: Option<&Arc<Backend>>) -> Arc<Backend> {
        let mut turn = self.turn.fetch_add(1, Ordering::Relaxed);
        Arc::clone(pick(&live.backends, &mut turn, tried, Instant::now()))
    }

    pub(super) fn log(&self, line: &Line<'_>) {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).write(line);
    }

    pub(super) fn flush_log(&self) {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).flush();
    }

    /// Takes up the present path of the log.
    pub(super) fn reopen_log(&self) {
        match AccessLog::open(self.shared.live().1.as_deref()) {
            Ok(log) => *self.log.lock().unwrap_or_else(PoisonError::into_inner) = log,
            Err(error) => tracing::error!(%error, "access log: the old one stays"),
        }
    }
}
