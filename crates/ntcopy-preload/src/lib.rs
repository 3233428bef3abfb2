//! libntcopy-preload.so: has the kernel hint the large sends of a program that cannot be changed.
//!
//! Loaded by `LD_PRELOAD`, which `ntcopy run` sets. It stands in for the calls that make sockets,
//! and sets `SO_NTCOPY` on what they made (`sockets.rs`); what a listener accepts has it from the
//! listener. It stands in for two more so that it leaves alone a program that confines itself
//! (`confine.rs`). Everything else of the C library is untouched: no send costs anything more.
//!
//! What holds in every one of these functions:
//!
//! - No allocation, no lock, no thread-local storage, no panic: they may run in signal handlers,
//!   between `fork` and `exec`, in a `vfork` child, and before any constructor.
//! - Own questions to the kernel are bare system calls (`sys.rs`), which leave `errno` alone.
//! - Inactive is the state before the constructor has run, after a setting that is not understood,
//!   in a program with more rights than its user, under a filter of system calls that was not
//!   tried (`filter.rs`), and on a kernel that doesn't know the hint. Then each is a comparison and a
//!   jump to the original.

// Copies are non-temporal on x86-64 only; elsewhere this is a library without functions.
// Its functions are not exported into the unit tests, which would get them for their own.
#![cfg_attr(test, allow(dead_code))]
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod confine;
mod enable;
mod filter;
mod original;
mod settings;
mod sockets;
mod start;
mod sys;
