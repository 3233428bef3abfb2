//! Copies and fills in user space: experiments `memcpy`, `memset`, `order` and `pages`.

pub mod memcpy;
pub mod memset;
pub mod order;
pub mod pages;
pub mod plan;
pub mod run;
mod sample;
pub mod task;
