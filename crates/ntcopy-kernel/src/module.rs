//! The module `ntcopy.ko`: `MSG_NTCOPY` on a kernel that doesn't know it.
//!
//! [`build`] makes it for a kernel whose headers are here, [`load`] and [`unload`] put it into the
//! running kernel and take it out, [`Status`] says how things are. Which kernels it is for, its own
//! sources say, to the compiler and to [`check_release`].

mod compile;
mod headers;
mod kept;
mod load;
mod range;
mod status;

pub use compile::{Compiled, build, build_for};
pub use load::{load, unload};
pub use range::check_release;
pub use status::{Presence, Status, Sysroot, holders};
