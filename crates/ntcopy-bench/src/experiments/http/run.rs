//! Clients, a proxy and a backend: the processes of experiment `http`, and what they are asked.
//!
//! Proxy and backend are programs of their own, started in a folder of their own and ended with
//! it. The client is this process: one thread, one epoll, all connections. It throws bodies away
//! in the socket (`wire`), so that it is the smallest part of what is measured, or compares
//! every byte of them, outside of what is timed.

mod body_reader;
mod client;
mod commands;
mod conn;
mod daemon;
mod data;
mod limits;
mod programs;
mod scratch;
mod stack;
mod wire;

pub use body_reader::BodyReader;
pub use client::{Client, Meter, Window};
pub use commands::Setup;
pub(crate) use daemon::Daemon;
pub use data::Data;
pub use limits::{allow_files, exceeds, have_buffers};
pub(crate) use programs::KnownProgram;
pub use scratch::Scratch;
pub use stack::{Running, unavailable};
