//! What a worker's sessions need of it.

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use rustls::ServerConfig;

use super::upstreams::Upstreams;
use crate::access::AccessLog;
use crate::backend::{Backend, pick};
use crate::config::Settings;
use crate::metrics::Counters;
use crate::net::Applied;
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
    pub settings: Settings,
    /// Where exchanges are logged.
    pub log: Option<PathBuf>,
    /// What clients of TLS are offered.
    tls: Mutex<Option<Arc<ServerConfig>>>,
    /// Rises when the certificate and the log are to be taken up anew.
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
    pub fn new(
        settings: Settings,
        (tls, log): (Option<Arc<ServerConfig>>, Option<PathBuf>),
        mode: Applied,
        splice: bool,
        kernel_tls: bool,
    ) -> Shared {
        let (generation, stop) = (AtomicU64::new(1), AtomicU8::new(0));
        Shared { settings, log, tls: Mutex::new(tls), generation, stop, mode, splice, kernel_tls }
    }

    /// What clients of TLS are offered now.
    pub fn tls(&self) -> Option<Arc<ServerConfig>> {
        self.tls.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Has each worker open the log anew when it is woken, and offer this, if it is given.
    pub fn reload(&self, tls: Option<Arc<ServerConfig>>) {
        if let Some(tls) = tls {
            *self.tls.lock().unwrap_or_else(PoisonError::into_inner) = Some(tls);
        }
        self.generation.fetch_add(1, Ordering::Release);
    }

    /// How often that was asked.
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
    pub(super) tls: Option<Arc<ServerConfig>>,
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
    /// The backend for the next try.
    pub(super) fn pick(&mut self, tried: Option<&Arc<Backend>>) -> Arc<Backend> {
        Arc::clone(pick(&self.shared.settings.backends, &mut self.turn, tried, self.now))
    }
}
