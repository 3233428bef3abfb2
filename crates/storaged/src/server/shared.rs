//! What all workers share.

use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::Instant;

use ntcopy::socket::Support;
use rustix::io::Errno;

use super::jobs::{Jobs, Mailbox};
use super::log::AccessLog;
use super::metrics::Counters;
use super::slab::Id;
use super::upload::Incoming;
use crate::config::{Config, Tunables};
use crate::http::Request;
use crate::store::{Object, Store, StoreError, Stored};

/// Threads that make folders: a client that wants many of them waits for itself.
const FOLDER_THREADS: usize = 2;

pub enum Outcome {
    Ready(Box<Request>, Result<Arc<Object>, StoreError>),
    Begun(Result<Box<Incoming>, StoreError>),
    Stored(Result<Stored, StoreError>),
    Deleted(Result<(), StoreError>),
    /// A list of objects, as JSON.
    Listed(Result<Vec<u8>, StoreError>),
    /// The job panicked; the log has why.
    Broken,
}

/// What a job waits for. Each kind has threads of its own, so that none waits for another's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// Reading: opening, verifying, listing; and the creation of a temporary file.
    Read,
    /// Making one change durable.
    Sync,
    /// The same, after folders are made, each durably.
    Folders,
}

pub struct Shared {
    pub config: Config,
    pub store: Arc<Store>,
    jobs: [Jobs; 3],
    pub access_log: Option<AccessLog>,
    /// One a worker.
    pub counters: Vec<Counters>,
    /// One a worker.
    pub mailboxes: Vec<Arc<Mailbox<Outcome>>>,
    pub connections: AtomicUsize,
    pub hints: Support,
    tunables: RwLock<Tunables>,
    tuned: AtomicU64,
    draining: AtomicBool,
    /// When connections that are still busy end.
    drain_until: OnceLock<Instant>,
}

impl Shared {
    pub fn new(config: Config, store: Store) -> std::io::Result<Shared> {
        let mailboxes: Result<_, Errno> =
            (0..config.workers).map(|_| Mailbox::new().map(Arc::new)).collect();
        Ok(Shared {
            store: Arc::new(store),
            jobs: [
                Jobs::start("read", config.disk_threads)?,
                Jobs::start("sync", config.disk_threads)?,
                Jobs::start("folders", config.disk_threads.min(FOLDER_THREADS))?,
            ],
            access_log: config.access_log.as_deref().map(AccessLog::open).transpose()?,
            counters: (0..config.workers).map(|_| Counters::default()).collect(),
            mailboxes: mailboxes?,
            connections: AtomicUsize::new(0),
            hints: ntcopy::socket::kernel_support(),
            tunables: RwLock::new(config.tunables),
            tuned: AtomicU64::new(0),
            draining: AtomicBool::new(false),
            drain_until: OnceLock::new(),
            config,
        })
    }

    /// What can change, and how often it did.
    pub fn tunables(&self) -> (u64, Tunables) {
        let tuned = self.tuned();
        (tuned, *self.tunables.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub fn tuned(&self) -> u64 {
        self.tuned.load(Ordering::Acquire)
    }

    /// Changes it, for the requests that come from now on.
    pub fn tune(&self, tunables: Tunables) {
        *self.tunables.write().unwrap_or_else(PoisonError::into_inner) = tunables;
        self.tuned.fetch_add(1, Ordering::Release);
        self.wake();
    }

    /// No connection is accepted, and none is kept after its response, from now on.
    pub fn drain(&self) {
        let _ = self.drain_until.set(Instant::now() + self.config.drain_timeout);
        self.draining.store(true, Ordering::Release);
        self.wake();
    }

    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Acquire)
    }

    pub fn is_drained(&self, now: Instant) -> bool {
        self.drain_until.get().is_some_and(|until| now >= *until)
    }

    fn wake(&self) {
        for mailbox in &self.mailboxes {
            mailbox.ring();
        }
    }

    /// Has `work` done elsewhere; what it returns comes to the worker's mailbox.
    pub fn submit(
        &self,
        (kind, worker): (Work, usize),
        id: Id,
        work: impl FnOnce() -> Outcome + Send + 'static,
    ) {
        let mailbox = Arc::clone(&self.mailboxes[worker]);
        self.jobs[kind as usize].submit(move || {
            // The connection gets an answer whatever happens; nothing that `work` has is used
            // after a panic.
            let outcome = panic::catch_unwind(AssertUnwindSafe(work)).unwrap_or(Outcome::Broken);
            mailbox.post(id, outcome);
        });
    }
}
