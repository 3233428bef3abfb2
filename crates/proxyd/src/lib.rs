//! proxyd: an HTTP/1.1 reverse proxy that splices.
//!
//! A backend writes a response into a socket; the proxy moves it on to the client and never
//! touches it; so no program on the machine needs those bytes in a cache. The proxy says to the
//! backend, request by request, whether that is so ([`forward::Facts`]), and sends what it must
//! write itself past the cache ([`config::Mode`]).
//!
//! | module | what |
//! |---|---|
//! | `session` | a client's connection, from top to bottom |
//! | `exchange` | one request and its answer, in both directions at once |
//! | `flow` | one direction: what is copied, and what goes through a pipe |
//! | [`conn`], [`tls`] | connections |
//! | `backend` | its addresses |
//! | `upstreams` | connections to the backend |
//! | [`request`], [`response`], [`forward`], [`paths`] | heads; bytes alone |
//! | `worker` | what sessions share |
//! | [`server`] | all of it, started, reloaded, stopped |

pub mod backend;
pub mod config;
pub mod conn;
mod counters;
mod exchange;
mod flow;
pub mod forward;
pub mod paths;
pub mod request;
pub mod response;
pub mod server;
mod session;
pub mod tls;
mod upstreams;
mod worker;
