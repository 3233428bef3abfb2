//! What all sessions share.

use std::sync::Arc;

use ntcopy::socket::Support;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use crate::config::Config;
use crate::counters::Counters;
use crate::store::Store;

/// Lists at one time: they wait for each other, and for nobody else.
pub const LISTS: usize = 2;

/// What waits for the disk. Each kind has turns of its own, so that none waits for another's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    Open,
    Change,
    List,
}

pub struct Shared {
    pub config: Config,
    pub store: Arc<Store>,
    pub counters: Vec<Counters>,
    pub hints: Support,
    turns: [Semaphore; 3],
}

impl Shared {
    pub fn new(config: Config, store: Store) -> Shared {
        Shared {
            store: Arc::new(store),
            counters: (0..config.options.workers()).map(|_| Default::default()).collect(),
            hints: ntcopy::socket::kernel_support(),
            turns: [config.disk_threads, config.disk_threads, LISTS].map(Semaphore::new),
            config,
        }
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

pub struct Worker {
    pub shared: Arc<Shared>,
    pub index: usize,
}

impl Worker {
    pub fn counters(&self) -> &Counters {
        &self.shared.counters[self.index]
    }
}
