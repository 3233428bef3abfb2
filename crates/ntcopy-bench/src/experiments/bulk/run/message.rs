//! What the measuring program and its worker say to each other, one JSON object a message.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::experiments::bulk::task::Task;
use crate::run::process::Process;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Order {
    /// Before anything else: map the memory.
    SetUp {
        source_bytes: u64,
        destination_bytes: u64,
        huge_pages: bool,
        /// The CPUs, one a thread.
        cpus: Vec<u32>,
    },
    Cell {
        task: Task,
        size_bytes: u64,
        threads: u32,
    },
    /// Do it once, and look at every byte.
    Verify {
        way: String,
        /// Turn a byte into a wrong one first: for tests.
        spoil: bool,
    },
    Sample {
        way: String,
        /// How long, before the clock runs, in nanoseconds.
        warm_up_ns: u64,
        /// And how many bytes at least, of all threads together.
        warm_up_bytes: u64,
        /// How long the clocked part lasts about, in nanoseconds.
        sample_ns: u64,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reply {
    Ready {
        /// The threshold of the worker's own C library, if it tells.
        libc_threshold_bytes: Option<u64>,
        memset_threshold_bytes: Option<u64>,
        /// Why other libraries cannot be used, those that cannot, by their ways' names.
        missing_peers: BTreeMap<String, String>,
    },
    Done,
    Verified {
        path: Option<String>,
    },
    Sample(Traffic),
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Traffic {
    pub bytes: u64,
    /// Nanoseconds from the first thread's start to the last one's end.
    pub elapsed_ns: u64,
    /// Hardware events of all threads, and the machine's traffic to memory, by name; of bytes that the
    /// library was free to place, how many it placed non-temporally, as `nontemporal_bytes`.
    pub counters: BTreeMap<String, u64>,
}

/// The worker, as the measuring program sees it.
pub type Copier = Process<Order, Reply>;
