//! Addresses, listeners, modes of sockets, and their calls.

mod address;
mod listener;
mod mode;
mod raw;

pub(crate) use address::origin;
pub use address::{Address, BadAddress};
pub(crate) use listener::BACKLOG;
pub use listener::{ListenError, Listener, SocketFile, bind_tcp, bind_unix};
pub use mode::{Applied, Mode};
pub use raw::Io;
pub(crate) use raw::{Raw, is_silent};
