//! Running one mode in one cell: processes, sockets, bytes, clocks.
//!
//! Only this stage touches processes. The sender is this process; the reader is
//! the same program started anew ([`reader`] says why not a mere `fork`).
//! Nothing here decides how often something runs or writes a record.

mod beside;
pub mod bulk;
mod clock;
pub(crate) mod counters;
mod cpu_clock;
mod cpus;
mod datagram;
mod failure;
pub mod fork;
mod form;
mod hot_set;
pub mod http;
mod inet;
pub(crate) mod latency;
mod link;
mod load;
mod memory;
mod message;
mod meter;
pub mod net;
mod netns;
pub(crate) mod pattern;
mod pipe;
pub(crate) mod poll;
mod preflight;
mod process;
pub mod reader;
pub mod retention;
mod rig;
mod schedule;
mod send;
mod setup;
mod sockets;
mod stop;
mod ticks;
mod victim;

pub use clock::unix_now_ns;
pub(crate) use cpu_clock::{CpuClock, family};
pub use cpus::{cpus, place};
pub use failure::Failure;
pub use inet::unavailable as family_unavailable;
pub(crate) use memory::Buffer;
pub(crate) use pipe::Pipe;
pub use preflight::{preflight, unavailable};
pub use rig::Rig;
pub use setup::{Clocked, Fault, RigOptions};
pub use stop::Stop;
