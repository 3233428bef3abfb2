//! The engine: experiment → plan → run → sample.
//!
//! Each stage uses only the stages before it, and has only what is general. [`sample`] measures, by
//! means of [`run`], and writes a record; what a record says is the business of `ntcopy-record`.
//! [`machine`] describes the machine, [`hardware`] has its counters, [`c_library`] what the C library
//! believes, [`guest`] takes a whole measurement into a kernel that this program boots.
//! [`experiments`] has each experiment, or a family of them, in one folder, made of what the stages
//! have for all.

pub mod alone;
pub mod c_library;
pub mod calibrate;
pub mod cpu;
pub mod experiment;
pub mod experiments;
pub mod guest;
pub mod hardware;
pub mod machine;
pub mod plan;
pub mod run;
pub mod sample;
mod tcp;
