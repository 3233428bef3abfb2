//! What running a mode takes, whatever the experiment: processes, sockets, bytes, clocks.
//!
//! Nothing here decides how often something runs or writes a record.

pub(crate) mod clock;
pub(crate) mod cpu_clock;
pub(crate) mod cpus;
pub(crate) mod datagram;
mod failure;
pub(crate) mod inet;
pub(crate) mod link;
pub(crate) mod load;
mod memory;
pub(crate) mod meter;
pub(crate) mod pattern;
mod pipe;
mod poll;
pub(crate) mod process;
pub(crate) mod proof;
pub(crate) mod schedule;
pub(crate) mod send;
pub(crate) mod sockets;
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
pub use send::unavailable;
pub(crate) use sockets::{allow_files, can_have_send_buffer};
pub use stop::{Patience, Stop};
