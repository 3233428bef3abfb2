//! What a worker's sessions need of it.

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use super::upstreams::Upstreams;
use crate::access::AccessLog;
use crate::backend::{Backend, pick};
use crate::config::Live;
use crate::metrics::Counters;
use crate::net::{Address, Applied};
use crate::pipe::Pool;
use crate::policy::Policy;

/// What is asked of the workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// Go on.
    No,
    /// Take nothing new, finish what is in flight.
    Graceful,
    /// Drop everything.
    Now,
}

/// What the workers and those who steer them share.
#[derive(Debug)]
pub struct Shared {
    live: Mutex<(Arc<Live>, Option<PathBuf>)>,
    /// Rises with every reload.
    generation: AtomicU64,
    stop: AtomicU8,
    /// How clients are sent to.
    pub mode: Applied,
    /// Whether bodies may be spliced, and can be.
    pub splice: bool,
    /// Whether the kernel does TLS after the handshake.
    pub kernel_tls: bool,
}

impl Shared {
    /// Shared by workers that start with these settings and that access log.
    pub fn new(
        live: Arc<Live>,
        log: Option<PathBuf>,
        mode: Applied,
        splice: bool,
        kernel_tls: bool,
    ) -> Shared {
        let (generation, stop) = (AtomicU64::new(1), AtomicU8::new(0));
        Shared { live: Mutex::new((live, log)), generation, stop, mode, splice, kernel_tls }
    }

    /// The present settings, and the path of the access log.
    pub fn live(&self) -> (Arc<Live>, Option<PathBuf>) {
        self.live.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the settings; each worker takes them up when it is woken.
    pub fn reload(&self, live: Arc<Live>, log: Option<PathBuf>) {
        *self.live.lock().unwrap_or_else(PoisonError::into_inner) = (live, log);
        self.generation.fetch_add(1, Ordering::Release);
    }

    /// How often the settings were replaced.
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Asks the workers to stop; each sees it when it is woken.
    pub fn stop(&self, stop: Stop) {
        self.stop.store(stop as u8, Ordering::Release);
    }

    /// What was asked.
    pub fn stopping(&self) -> Stop {
        match self.stop.load(Ordering::Acquire) {
            0 => Stop::No,
            1 => Stop::Graceful,
            _ => Stop::Now,
        }
    }
}

/// What a worker's sessions need of it.
pub(super) struct Context {
    pub(super) poll: OwnedFd,
    pub(super) shared: Arc<Shared>,
    pub(super) live: Arc<Live>,
    pub(super) upstreams: Upstreams,
    pub(super) pipes: Pool,
    pub(super) counters: Arc<Counters>,
    pub(super) log: AccessLog,
    /// When this round began.
    pub(super) now: Instant,
    pub(super) draining: bool,
    pub(super) turn: usize,
    /// What each door lets in.
    pub(super) policies: Vec<Policy>,
}

impl Context {
    /// Takes up what the present settings let in at each door.
    pub(super) fn take_policies(&mut self, doors: &[Address]) {
        let edges = &self.live.edges;
        self.policies = doors.iter().map(|at| edges.policy(at)).collect();
    }

    /// The backend for the next try.
    pub(super) fn pick(&mut self, tried: Option<&Arc<Backend>>) -> Arc<Backend> {
        Arc::clone(pick(&self.live.backends, &mut self.turn, tried, self.now))
    }
}
