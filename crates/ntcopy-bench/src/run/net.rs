//! A client and a server that send each other messages: the processes of experiments `net` and
//! `pingpong`.
//!
//! The client is this process. The server is the same program started anew, one for each mode; it
//! gets its ends of the connections over a line, as [`super::reader`] does, and ends with the
//! line. Both ends of a connection are made here, the server's in its own network namespace where
//! it has one, and both get their setting of the hint here.

mod client;
mod end;
mod lane;
mod limits;
mod message;
mod network;
mod pingpong;
mod process;
mod proof;
mod server;

pub use super::latency::Answers;
pub use super::meter::Events;
pub use super::schedule::Schedule;
pub use client::{CpuNs, NetClient, Window};
pub use lane::{Lane, Setup, Traffic, unavailable};
pub use limits::allow_files;
pub use network::Network;
pub use pingpong::{PingPong, Pings};
pub use proof::Proof;
pub use server::main as server_main;
