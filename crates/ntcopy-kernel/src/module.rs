//! The module `ntcopy.ko`: `MSG_NTCOPY` on a kernel that doesn't know it.
//!
//! [`build`] makes it for a kernel whose headers are here, [`load`] and [`unload`] put it into the
//! running kernel and take it out, [`Status`] says how things are.

mod compile;
mod headers;
mod kept;
mod load;
mod source;
mod status;
mod stock;

pub use compile::{ModuleBuild, build};
pub use load::{holders, load, unload};
pub use status::{Presence, Status, Sysroot};
