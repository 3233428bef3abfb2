//! Clients, a proxy and a backend: the processes of experiment `http`, and what they are asked.
//!
//! Proxy and backend are programs of their own, started in a folder of their own and ended with
//! it. The client is this process: one thread, one epoll, all connections. It throws bodies away
//! in the socket (`wire`), so that it is the smallest part of what is measured, or compares
//! every byte of them, outside of what is timed.

mod client;
mod conn;
mod daemon;
mod data;
mod either;
mod limits;
mod links;
mod load;
mod ours;
mod programs;
mod proof;
#[cfg(feature = "tls")]
mod quic;
mod scratch;
mod stack;
mod theirs;
#[cfg(feature = "tls")]
mod tls;
#[cfg(not(feature = "tls"))]
#[path = "http/no_tls.rs"]
mod tls;
mod victim;
mod wire;

pub use super::cpu_clock::CpuClock;
pub use super::latency::Answers;
pub use super::meter::Events;
pub use super::schedule::Schedule;
pub use client::Look;
pub use data::Data;
pub use either::Client;
pub use limits::{allow_files, place_client};
pub use links::{Link, Links};
pub use load::{CpuNs, Meter, Window};
pub(crate) use programs::find as find_program;
pub use proof::Proof;
pub use scratch::Scratch;
pub use stack::{Running, Setup, unavailable};
pub use tls::Certificate;
pub use victim::{Victim, Walking};
