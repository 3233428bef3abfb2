//! What client and server say to each other over the line, one JSON object a message.

use serde::{Deserialize, Serialize};

use crate::run::process::Process;

/// What failures of the server call it.
pub const NAME: &str = "the server";
/// The number of the last message that is sent back, which ends the server's part.
pub const LAST: u64 = u64::MAX;

/// What the messages of all connections are like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shape {
    pub datagrams: bool,
    pub request_bytes: u64,
    pub response_bytes: u64,
    pub hint: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Order {
    Place {
        cpu: u32,
    },
    /// This message carries this many more sockets.
    Sockets {
        count: u32,
    },
    Forget,
    /// Answer requests on all sockets until [`Order::Pause`].
    Serve {
        shape: Shape,
        /// Look at every byte of the requests.
        compares: bool,
    },
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
    Done,
    /// What was answered since [`Order::Serve`] or [`Order::Echo`].
    Answered {
        responses: u64,
    },
}

/// The server, as the client sees it.
pub type Server = Process<Order, Reply>;
