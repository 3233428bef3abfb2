//! The two processes of a cell of sends. The sender is this process; the reader is the same program
//! started anew ([`reader`] says why not a mere `fork`).

mod data_set;
mod hot_set;
mod message;
mod preflight;
pub mod reader;
mod rig;
mod sockets;

pub(super) use preflight::preflight;
pub use rig::{Clocked, Rig, RigOptions};
