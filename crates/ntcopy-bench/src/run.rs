//! Running one mode in one cell: processes, sockets, bytes, clocks.
//!
//! Only this stage touches processes. The sender is this process; the reader is
//! the same program started anew ([`reader`] says why not a mere `fork`).
//! Nothing here decides how often something runs or writes a record.

pub mod bulk;
mod clock;
pub(crate) mod cpu_clock;
pub(crate) mod cpus;
mod datagram;
mod failure;
pub(crate) mod hot_set;
mod inet;
mod link;
pub(crate) mod load;
mod memory;
mod message;
pub(crate) mod meter;
pub mod net;
pub(crate) mod netns;
pub(crate) mod pattern;
mod pipe;
mod poll;
mod preflight;
mod process;
pub(crate) mod proof;
pub mod reader;
mod rig;
pub(crate) mod schedule;
mod send;
mod sockets;
mod stop;

pub(crate) use clock::ns;
pub use clock::unix_now_ns;
pub(crate) use cpu_clock::{CpuClock, family};
pub use cpus::{cpus, stay_on};
pub use failure::{Failure, WrongByte};
pub use inet::unavailable as family_unavailable;
pub use memory::available_bytes;
pub(crate) use memory::map;
pub(crate) use pipe::{Pipe, Sink};
pub(crate) use poll::{Poll, TURN};
pub use preflight::{preflight, unavailable};
pub use rig::{Clocked, Rig, RigOptions};
pub(crate) use sockets::{allow_files, can_have_send_buffer};
pub use stop::{Patience, Stop};
