//! The module `ntcopy.ko`: `MSG_NTCOPY` on a kernel that doesn't know it.
//!
//! [`build`] makes it for a kernel whose headers are here, [`load`] and [`unload`] put it into the
//! running kernel and take it out, [`Status`] says how things are. What a kernel refuses is
//! explained in words by pure functions of what is known of it.

mod compile;
mod error;
mod headers;
mod kept;
mod load;
mod modinfo;
mod refusal;
mod source;
mod status;
mod stock;

pub use compile::{ModuleBuild, build};
pub use error::ModuleError;
pub use kept::{Kept, cached, find};
pub(crate) use load::unpacked;
pub use load::{Loaded, holders, load, unload};
pub use modinfo::Modinfo;
pub use source::{Range, Sources};
pub(crate) use status::secure_boot;
pub use status::{Lockdown, Presence, SecureBoot, Status, Sysroot, Taint, TaintFound};
pub use stock::{StockHeaders, stock_headers};
