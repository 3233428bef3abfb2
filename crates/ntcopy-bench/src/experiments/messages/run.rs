//! A client and a server that send each other messages.
//!
//! The client is this process. The server is the same program started anew, one for each mode; it
//! gets its ends of the connections over a line, as the reader of sends does, and ends with the
//! line. Both ends of a connection are made here, the server's in its own network namespace where
//! it has one, and both get their setting of the hint here.

mod client;
mod end;
mod lane;
mod message;
mod netns;
mod network;
mod pingpong;
mod server;

use crate::run::{Failure, sockets};

pub use client::{NetClient, Window};
pub use lane::{Lane, Setup, Traffic, unavailable};
pub use network::Network;
pub use pingpong::PingPong;
pub use server::main as server_main;

/// Descriptors beside the connections: lines, epolls, namespaces, the record.
const OTHER_FILES: u64 = 128;

/// Lets this process and the servers have `connections` connections in each of `modes` modes.
pub fn allow_files(connections: u32, modes: usize) -> Result<(), Failure> {
    // While they are made, both ends of a mode's connections are here.
    let needed = u64::from(connections) * (modes as u64 + 1) + OTHER_FILES;
    sockets::allow_files(needed, "fewer --connections").map(drop)
}
