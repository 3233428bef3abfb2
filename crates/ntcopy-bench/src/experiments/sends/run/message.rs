//! What sender and reader say to each other, one JSON object a message.

use serde::{Deserialize, Serialize};

use crate::run::process::Process;
use crate::run::{Failure, link};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Order {
    /// Before anything else.
    SetUp {
        cpu: u32,
        pipe_bytes: u64,
        /// Whether a smaller pipe will not do.
        pipe_exact: bool,
        /// Whether the sockets carry datagrams, which cannot be spliced.
        datagrams: bool,
        /// Milliseconds without a byte on a socket after which the reader gives up.
        patience_ms: u64,
    },
    /// This message carries this many more sockets.
    Sockets { count: u32 },
    /// Splice this many bytes of each socket to `/dev/null`, or discard as many in datagrams.
    Drain {
        /// How many of the sockets, from the first.
        sockets: u32,
        bytes: u64,
    },
    /// Take bytes through the pipe as for `Drain`, and look at every one of them.
    Compare {
        /// How many of the sockets, from the first.
        sockets: u32,
        bytes: u64,
        /// Socket n carries the pattern of seed + n.
        seed: u64,
        /// Position in the pattern of the first byte.
        start: u64,
    },
}

/// What the reader answers, one to every order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reply {
    /// Set up, with a pipe of this size in bytes, as the kernel has it.
    Ready {
        pipe_bytes: u64,
    },
    Drained {
        bytes: u64,
    },
    Done,
}

/// The order to take this many bytes out of each of the first sockets, encoded.
pub fn drain_order(sockets: usize, bytes: u64) -> Vec<u8> {
    link::encode(&Order::Drain { sockets: u32::try_from(sockets).unwrap_or(u32::MAX), bytes })
}

/// The reading process, as the sender sees it.
pub type Reader = Process<Order, Reply>;

impl Reader {
    pub fn done(&mut self) -> Result<(), Failure> {
        match self.reply()? {
            Reply::Done => Ok(()),
            other => Err(self.unexpected(&other)),
        }
    }

    /// Waits for the answer to an order to drain: bytes taken.
    pub fn drained(&mut self) -> Result<u64, Failure> {
        match self.reply()? {
            Reply::Drained { bytes } => Ok(bytes),
            other => Err(self.unexpected(&other)),
        }
    }
}
