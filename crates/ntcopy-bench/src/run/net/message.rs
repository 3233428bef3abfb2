//! What client and server say to each other over the line, one JSON object a message.

use serde::{Deserialize, Serialize};

use crate::run::Failure;
use crate::run::process::{Part, TakesSockets};

/// The number of the last message that is sent back, which ends the server's part.
pub const LAST: u64 = u64::MAX;

/// What the messages of all connections are like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shape {
    /// Whether a message is one datagram.
    pub datagrams: bool,
    /// Bytes of a request.
    pub request_bytes: u64,
    /// Bytes of a response.
    pub response_bytes: u64,
    /// Whether sends carry the hint.
    pub hint: bool,
}

/// What the client says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Order {
    /// Stay on this CPU.
    Place {
        /// Its number.
        cpu: u32,
    },
    /// This message carries this many more sockets.
    Sockets {
        /// How many.
        count: u32,
    },
    /// Close all sockets.
    Forget,
    /// Answer requests on all sockets until [`Order::Pause`].
    Serve {
        /// The messages.
        shape: Shape,
        /// Look at every byte of the requests.
        compares: bool,
    },
    /// Answer no more.
    Pause,
    /// Send every message of the first socket back, until one comes with [`LAST`] as its number.
    Echo {
        /// The messages; both kinds are of one size.
        shape: Shape,
    },
}

/// What the server answers, one to every order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reply {
    /// Done.
    Done,
    /// What was answered since [`Order::Serve`] or [`Order::Echo`].
    Answered {
        /// Responses.
        responses: u64,
    },
    /// A byte of a request was wrong.
    WrongByte {
        /// Number of the connection.
        socket: u32,
        /// Position in the message.
        position: u64,
        /// What should be there.
        expected: u8,
        /// What is there.
        got: u8,
    },
    /// The order could not be carried out.
    Failed {
        /// Why.
        what: String,
    },
}

/// The server, as the client sees it.
#[derive(Debug)]
pub enum Server {}

impl Part for Server {
    type Order = Order;
    type Reply = Reply;
    const NAME: &'static str = "the server";

    fn wrong(what: String) -> Failure {
        Failure::Server(what)
    }

    fn judge(reply: Reply) -> Result<Reply, Failure> {
        match reply {
            Reply::Failed { what } => Err(Failure::Server(what)),
            Reply::WrongByte { socket, position, expected, got } => {
                Err(Failure::WrongByte { socket, position, expected, got })
            }
            other => Ok(other),
        }
    }
}

impl TakesSockets for Server {
    fn sockets(count: u32) -> Order {
        Order::Sockets { count }
    }
}
