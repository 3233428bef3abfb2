//! The proxy between real sockets: a backend made of threads, and clients that write bytes.

mod budget;
mod closing;
mod common;
mod edge;
mod failures;
mod forwarding;
mod framing;
mod fuzz;
mod lifecycle;
mod limits;
mod meaning;
mod smuggling;
mod tls;
