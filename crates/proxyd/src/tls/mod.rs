//! TLS for clients: by rustls in this process, or by rustls for the handshake and the kernel for
//! the rest.

mod files;
pub(crate) mod kernel;
mod session;

pub use files::{TlsError, server_config};
pub use kernel::is_available as kernel_is_available;
pub use session::Session;
