//! What sender and reader say to each other, one JSON object a message.

use serde::{Deserialize, Serialize};

use super::process::{Part, TakesSockets};
use super::{Failure, link};

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
    /// Before `Send`: this much memory, with the data set's pattern, an object after the other.
    Data { dataset_bytes: u64, object_bytes: u64 },
    /// Send bytes of the data set on the first socket, object by object, round and round.
    Send {
        /// The mode, by its name.
        mode: String,
        /// Where to begin: at an object.
        start: u64,
        bytes: u64,
        /// Whether the last of them is to be another one than the pattern's: for tests.
        spoil: bool,
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
    /// Set up, with a pipe of this size in bytes.
    Ready {
        /// The pipe's size in bytes, as the kernel has it.
        pipe_bytes: u64,
    },
    Received,
    Drained {
        /// Bytes taken from all sockets together.
        bytes: u64,
    },
    Filled,
    Sent,
    Compared,
    /// One was not.
    WrongByte {
        socket: u32,
        position: u64,
        expected: u8,
        got: u8,
    },
    /// The order could not be carried out.
    Failed {
        what: String,
    },
}

/// The order to take this many bytes out of each of the first sockets, encoded.
pub fn drain_order(sockets: usize, bytes: u64) -> Vec<u8> {
    link::encode(&Order::Drain { sockets: u32::try_from(sockets).unwrap_or(u32::MAX), bytes })
}

/// The reading process, as the sender sees it.
#[derive(Debug)]
pub enum Reader {}

impl Part for Reader {
    type Order = Order;
    type Reply = Reply;
    const NAME: &'static str = "the reading process";

    fn wrong(what: String) -> Failure {
        Failure::Reader(what)
    }

    fn judge(reply: Reply) -> Result<Reply, Failure> {
        match reply {
            Reply::Failed { what } => Err(Failure::Reader(what)),
            Reply::WrongByte { socket, position, expected, got } => {
                Err(Failure::WrongByte { socket, position, expected, got })
            }
            other => Ok(other),
        }
    }
}

impl TakesSockets for Reader {
    fn sockets(count: u32) -> Order {
        Order::Sockets { count }
    }
}

/// A process that sends beside this one, as this one sees it: the same program, ordered to send.
#[derive(Debug)]
pub enum Sending {}

impl Part for Sending {
    type Order = Order;
    type Reply = Reply;
    const NAME: &'static str = "a sending process";

    fn wrong(what: String) -> Failure {
        Failure::Sending(what)
    }

    fn judge(reply: Reply) -> Result<Reply, Failure> {
        match reply {
            Reply::Failed { what } => Err(Failure::Sending(what)),
            other => Ok(other),
        }
    }
}

impl TakesSockets for Sending {
    fn sockets(count: u32) -> Order {
        Order::Sockets { count }
    }
}
