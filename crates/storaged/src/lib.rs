//! storaged: objects over HTTP/1.1 from a folder of immutable files, sent in the way that suits
//! whoever reads them next.

pub mod address;
pub mod config;
pub mod fault;
pub mod http;
pub mod key;
pub mod region;
pub mod send;
pub mod server;
pub mod store;
