//! What all sessions share.

use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use httpd::{AccessLog, Handle};
use ntcopy::socket::Support;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use crate::config::{Config, Tunables};
use crate::counters::Counters;
use crate::store::Store;

/// Lists at one time: they wait for each other, and for nobody else.
pub const LISTS: usize = 2;

/// What waits for the disk. Each kind has turns of its own, so that none waits for another's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// Opening an object or a new file.
    Open,
    /// Making a change durable.
    Change,
    List,
}

/// What all sessions share.
pub struct Shared {
    pub store: Arc<Store>,
    pub access_log: Option<AccessLog>,
    /// One a worker.
    pub counters: Vec<Counters>,
    pub hints: Support,
    /// The door where only what is measured is to be had.
    pub admin_door: usize,
    tunables: RwLock<Tunables>,
    turns: [Semaphore; 3],
    server: OnceLock<Handle>,
}

impl Shared {
    pub fn new(config: &Config, store: Store, access_log: Option<AccessLog>) -> Shared {
        Shared {
            store: Arc::new(store),
            access_log,
            counters: (0..config.workers).map(|_| Counters::default()).collect(),
            hints: ntcopy::socket::kernel_support(),
            admin_door: config.listen.len(),
            tunables: RwLock::new(config.tunables),
            turns: [config.disk_threads, config.disk_threads, LISTS].map(Semaphore::new),
            server: OnceLock::new(),
        }
    }

    /// Changes it, for the requests that come from now on.
    pub fn tune(&self, tunables: Tunables) {
        *self.tunables.write().unwrap_or_else(PoisonError::into_inner) = tunables;
        self.server().set_idle(tunables.idle_timeout);
    }

    /// The server has started.
    pub fn serves(&self, server: Handle) {
        let _ = self.server.set(server);
    }

    pub fn tunables(&self) -> Tunables {
        *self.tunables.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The server, once it has started: no session asks before.
    pub fn server(&self) -> &Handle {
        self.server.wait()
    }

    /// Has `work` done by a thread that waits for the disk; `None` if it panicked, and the log has
    /// why.
    pub async fn wait<T: Send + 'static>(
        &self,
        kind: Work,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let _turn = self.turns[kind as usize].acquire().await.ok()?;
        spawn_blocking(work).await.ok()
    }
}

/// A worker's.
pub struct Worker {
    pub shared: Arc<Shared>,
    pub index: usize,
}

impl Worker {
    pub fn counters(&self) -> &Counters {
        &self.shared.counters[self.index]
    }
}
