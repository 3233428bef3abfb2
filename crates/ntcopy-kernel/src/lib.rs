//! Finds, patches, builds and boots the kernels that know `MSG_NTCOPY`.
//!
//! [`module`] builds, loads and unloads `ntcopy.ko` for a kernel that doesn't; [`package`] makes
//! packages of a kernel that does, for a machine of one's own.
//!
//! [`build`] gives a kernel from the cache, and makes it first when it is not there. [`Boot`]
//! runs a command of the host inside, on the host's file tree. The running kernel of the host is
//! never touched, but by [`module::load`] and [`module::unload`].
//!
//! Does: on x86-64 Linux, user-mode Linux and x86 kernels in QEMU, 7.3 and 6.12, from the
//! distribution's source packages or a tree of the user's, and the distribution's own kernels as
//! they come. Does not: other architectures, and install a kernel.

pub mod boot;
mod build;
mod cache;
mod collision;
mod config;
mod error;
pub mod guest;
mod interrupt;
mod kind;
mod manage;
pub mod module;
pub mod package;
pub mod process;
pub mod progress;
mod room;
mod series;
mod source;
pub mod temporary;
#[cfg(test)]
mod testing;
mod tools;

pub use boot::{Boot, Outcome, Output};
pub use build::make::command as make;
pub use build::{BuildOptions, build, compile_into};
pub use cache::{Built, CACHE_VARIABLE, Cache, Meta, SourceId};
pub use error::{Error, Result};
pub use interrupt::Interrupts;
pub use kind::{Flavour, Kind, Release, RunsAs};
pub use manage::{Cleaned, Entry, State, clean, list};
pub use progress::Progress;
pub use series::{Patch, SERIES_VARIABLE, Series};
pub use source::SOURCE_VARIABLE;
pub use source::package::cached_sources;
