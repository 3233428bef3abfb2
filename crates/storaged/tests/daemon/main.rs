//! The daemon as a process, over real sockets.

mod common;
mod crash;
mod damage;
mod folder;
mod full;
mod http;
mod lifecycle;
mod model;
mod modes;
#[path = "../../../httpd/tests/peer/mod.rs"]
mod peer;
mod service;
