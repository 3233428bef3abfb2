//! storaged: objects over HTTP/1.1 from a folder of immutable files, sent in the way that suits
//! whoever reads them next.
//!
//! A request goes from `session` (one function, from top to bottom) to `store`, and what is found
//! back through `send`, where the hint is given.

mod answer;
mod condition;
pub mod config;
mod fault;
mod key;
mod plan;
mod request;
mod send;
pub mod serve;
mod session;
mod shared;
mod store;
