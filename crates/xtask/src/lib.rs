//! What tests, releases and this repository's documents need beside cargo: the commands of `cargo
//! xtask`, and what the tests of the program share with them.

pub mod all;
pub mod documents;
pub mod error;
mod guests;
mod kernels;
mod modules;
pub mod mutations;
pub mod programs;
mod report;
pub mod running;
pub mod selftests;
pub mod soak;
pub mod suite;
mod sum;
mod tap;
pub mod test;

pub use error::Error;
