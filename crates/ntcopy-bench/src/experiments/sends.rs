//! Objects that are sent through sockets to a process that takes them out: experiments `unix`, and
//! `retention`, in which another program walks through its hot set between the sends.

mod cell;
mod plan;
pub mod retention;
pub mod run;
mod sample;
pub mod unix;

pub use cell::{CellPlan, Form, Small};
pub use plan::SendsPlan;
