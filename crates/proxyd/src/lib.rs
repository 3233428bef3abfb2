//! proxyd: an HTTP/1.1 reverse proxy that splices.
//!
//! A backend writes a response into a socket; the proxy moves it on to the client and never
//! touches it; so no program on the machine needs those bytes in a cache. The proxy says to the
//! backend, request by request, whether that is so ([`http::Reader`]), and sends what it must
//! write itself past the cache ([`net::Mode`]).
//!
//! | module | what |
//! |---|---|
//! | [`http`] | heads, framing, what is passed on; bytes alone |
//! | [`splice`], [`pipe`] | socket to pipe to socket |
//! | [`net`], [`tls`], [`conn`] | addresses, listeners, connections |
//! | [`worker`] | the loop, sessions, exchanges |
//! | [`server`] | all of it, started, reloaded, stopped |

pub mod access;
pub mod backend;
pub mod buffer;
pub mod cli;
pub mod config;
pub mod conn;
pub mod error;
#[doc(hidden)]
pub mod fuzzing;
pub mod http;
pub mod metrics;
pub mod net;
pub mod pipe;
pub mod policy;
pub mod server;
pub mod splice;
pub mod tls;
pub mod worker;
