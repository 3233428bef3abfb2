//! One HTTP/1.1 server under two daemons.
//!
//! A daemon implements [`Service`]: a worker's state, made in the worker's own thread, and a
//! session, which is one async function over a [`Conn`] that reads from top to bottom. A worker is
//! a thread with a tokio runtime of its own (`current_thread`), so that neither state nor sessions
//! need be `Send`. [`Server::start`] listens and starts them; [`Signals`] are obeyed until all ends.
//!
//! - Accepting, limits, eviction, and the end are here: [`server`]. A session says when it waits
//!   for a request ([`Conn::head`] does, by [`Ticket::idle`]). To evict the longest idle,
//!   to end one for its age, and to end all, its reading side is shut down: the session still reads
//!   a request that had come, and then the end.
//! - [`Stream`] is a socket that is registered once, for both directions. It is `AsyncRead` and
//!   `AsyncWrite`, for a layer like TLS above it; [`Stream::poll_in`] and [`Stream::poll_out`] take
//!   a raw system call (`sendmsg`, `sendfile`, `splice`). A [`Conn`] may be made of a layer, too: of
//!   anything that is `AsyncRead`.
//! - [`Input`] holds what has come. A head is looked for as its bytes come ([`Scanner`]), each byte
//!   once, and parsed once ([`parse_request`]). [`Body`] says which bytes are content; inside a
//!   chunk they can be spliced past it.
//! - [`splice`] has the pipes, and what goes through them.
//! - [`Pace`] is the one clock for peers that are slow, in both directions; [`Turn`] lets none that is
//!   fast keep the others of its worker waiting.

pub mod address;
mod body;
mod buffers;
mod conn;
mod handed;
mod head;
mod headers;
mod listen;
mod log;
pub mod metrics;
pub mod options;
mod pace;
pub mod program;
mod reply;
mod request;
pub mod server;
mod settings;
mod signals;
pub mod splice;
mod stream;
mod target;
mod ticket;
mod turn;

pub use address::{Address, Place};
pub use body::{Body, Chunks, Event};
pub use conn::Conn;
pub use handed::is_handed_sockets;
pub use head::{HEAD_BYTES, HEADERS, Input, Refusal, Scanner};
pub use headers::{Framing, Headers, digits};
pub use options::Options;
pub use pace::{Pace, TimedOut, unacknowledged};
pub use reply::{Reply, date, http_date, now, reason};
pub use request::{Request, keeps, parse_request};
pub use server::{Server, Service};
pub use signals::{Signals, raise_file_limit};
pub use stream::{Stream, is_silent};
pub use target::{Target, is_spelled, parse_authority, parse_target};
pub use ticket::{Counts, Stop, Ticket};
pub use turn::{TURN_BYTES, Turn};
