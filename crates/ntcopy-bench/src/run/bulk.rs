//! Copies and fills in user space: a process that owns the memory, does what it is told on pinned
//! threads, clocks it and compares the bytes.
//!
//! It is this program started anew, because the C library's thresholds are fixed when a process
//! starts: a peer with another threshold needs another process, and so each has its own.

mod calls;
mod counters;
mod lanes;
mod matrix;
mod memory;
mod message;
mod pages;
mod peers;
mod pmem2;
mod threads;
mod work;
mod worker;

pub use memory::{available_bytes, room};
pub use message::Traffic;
pub use pages::unavailable as page_way_unavailable;
pub use work::main as worker_main;
pub use worker::{Setup, Timing, Worker};
