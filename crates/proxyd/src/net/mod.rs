//! Addresses, listeners, and connections that know whether they can be read or written.

mod address;
mod conn;
mod listener;
mod mode;

pub(crate) use address::origin;
pub use address::{Address, BadAddress};
pub(crate) use conn::Raw;
#[cfg(feature = "quic")]
pub(crate) use conn::is_silent;
pub use conn::{Conn, Finish, Io, Layer};
pub(crate) use listener::BACKLOG;
pub use listener::{ListenError, Listener, SocketFile, bind_tcp, bind_unix};
pub use mode::{Applied, Mode};
