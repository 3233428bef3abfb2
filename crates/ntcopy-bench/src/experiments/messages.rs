//! Messages between a client and a server: experiments `net` and `pingpong`.

mod mode;
pub mod net;
pub mod pingpong;
pub mod plan;
pub mod run;
mod sample;

pub use mode::NetMode;
