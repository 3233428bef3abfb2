//! The daemon: listeners, workers, connections, and the threads that wait for the disk.
//!
//! A worker is a thread with an epoll of its own; it owns its connections, and nothing that it
//! does waits for a disk, but for page faults and page-cache writes. Syncs, opening, verifying,
//! decoding and listing are jobs for a few other threads (`jobs`), whose results come back
//! through the worker's mailbox.
//!
//! Connections are registered once, edge-triggered, for both directions: a request on a kept-alive
//! connection then costs no `epoll_ctl`. Listeners are level-triggered, and one connection is
//! accepted a turn, so that workers that share a unix socket (`EPOLLEXCLUSIVE`) share its load.

mod accept;
mod admin;
mod connection;
mod handle;
mod jobs;
pub mod listen;
mod log;
mod metrics;
mod plan;
mod respond;
mod run;
mod shared;
mod slab;
mod upload;
mod worker;

pub use self::listen::ListenError;
pub use self::plan::{Plan, plan};
pub use self::run::{ServeError, serve};
