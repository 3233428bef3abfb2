//! The proxy from outside, over real sockets: what arrives where, what is refused, what takes too
//! long, who goes away, how it starts and stops. Hostile requests have a battery of their own.

#[path = "../anything/mod.rs"]
mod anything;
mod bodies;
mod closing;
mod common;
mod failures;
mod fuzz;
mod heads;
mod lifecycle;
mod limits;
#[path = "../over_tls/mod.rs"]
mod over_tls;
#[path = "../../../httpd/tests/peer/mod.rs"]
mod peer;
mod tls;
