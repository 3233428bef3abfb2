//! What all sessions share.

use std::sync::Arc;

use ntcopy::socket::Support;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use crate::config::Config;
use crate::send::Mode;
use crate::store::Store;

httpd::counters! {
    pub struct Counters {
        received: "counter" "received_body_bytes_total" "Body bytes of PUTs.",
        copied: "counter" "sent_copy_bytes_total" "Body bytes sent with --mode copy.",
        nontemporal: "counter" "sent_nt_bytes_total" "Body bytes sent with --mode nt.",
        by_sendfile: "counter" "sent_sendfile_bytes_total" "Body bytes sent with --mode sendfile.",
        aborted: "counter" "aborted_responses_total" "Responses cut off: peer gone, time out, bad disk.",
        damaged: "counter" "damaged_total" "Requests answered 500 because a file was gone or too short.",
    }
}

impl Counters {
    pub fn sent(&self, mode: Mode, bytes: u64) {
        let counter = match mode {
            Mode::Auto | Mode::Copy => &self.copied,
            Mode::Nt => &self.nontemporal,
            Mode::Sendfile => &self.by_sendfile,
        };
        counter.add(bytes);
    }
}

/// Objects that are opened or mapped at one time, bodies that are written, and changes.
pub const DISK: usize = 4;
/// Lists at one time: they wait for each other, and for nobody else.
pub const LISTS: usize = 2;

/// What waits for the disk. Each kind has turns of its own, so that none waits for another's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    Open,
    Write,
    Change,
    List,
}

pub struct Shared {
    pub config: Config,
    pub store: Arc<Store>,
    pub counters: Vec<Counters>,
    pub hints: Support,
    turns: [Semaphore; 4],
}

impl Shared {
    pub fn new(config: Config, store: Store) -> Shared {
        Shared {
            store: Arc::new(store),
            counters: (0..config.options.workers()).map(|_| Default::default()).collect(),
            hints: ntcopy::socket::kernel_support(),
            turns: [DISK, DISK, DISK, LISTS].map(Semaphore::new),
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
