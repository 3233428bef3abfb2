//! What exchanges of HTTP/3 share.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use tokio::sync::Semaphore;

use super::upstream::{Gate, Idle};
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
    gates: Mutex<Vec<(Arc<Backend>, Arc<Gate>)>>,
}

impl Context {
    pub(super) fn new(shared: Arc<Shared>, counters: Arc<Counters>) -> std::io::Result<Context> {
        let log = AccessLog::open(shared.live().1.as_deref())?;
        let (log, turn) = (Mutex::new(log), AtomicUsize::new(0));
        let (idle, gates) = (Idle::default(), Mutex::default());
        Ok(Context { shared, counters, idle, log, turn, gates })
    }

    /// The gate of that backend; those of backends that a reload took away go.
    pub(super) fn gate(&self, live: &Live, backend: &Arc<Backend>) -> Arc<Gate> {
        let mut gates = self.gates.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, gate)) = gates.iter().find(|(other, _)| Arc::ptr_eq(other, backend)) {
            return Arc::clone(gate);
        }
        gates.retain(|(other, _)| live.backends.iter().any(|one| Arc::ptr_eq(one, other)));
        let most = match live.limits.backend_connections {
            0 => Semaphore::MAX_PERMITS,
            most => most.min(Semaphore::MAX_PERMITS),
        };
        let room = Arc::new(Semaphore::new(most));
        let gate = Arc::new(Gate { room, asking: tokio::sync::Mutex::new(()) });
        gates.push((Arc::clone(backend), Arc::clone(&gate)));
        gate
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
