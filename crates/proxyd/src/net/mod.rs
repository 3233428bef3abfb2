//! Addresses, listeners, and connections that know whether they can be read or written.

mod address;
mod conn;
mod listener;
mod mode;

pub use address::{Address, BadAddress};
pub(crate) use conn::Raw;
pub use conn::{Conn, Io, Layer};
pub use listener::{ListenError, Listener, SocketFile, bind_tcp, bind_unix};
pub use mode::{Applied, Mode};
