//! libntcopy-preload.so: gives the large sends of a program that cannot be changed `MSG_NTCOPY`.
//!
//! Loaded by `LD_PRELOAD`, which `ntcopy run` sets. It stands in for the calls that send
//! (`send.rs`), for those that open and close, so that it is never wrong about what a descriptor is
//! (`descriptors.rs`), and for those that ask and set the socket option by which a socket opts in, so
//! that the program finds its own (`options.rs`). Everything else of the C library is untouched.
//!
//! What holds in every one of these functions:
//!
//! - No allocation, no lock, no thread-local storage, no panic: they may run in signal handlers,
//!   between `fork` and `exec`, in a `vfork` child, and before any constructor.
//! - The original is called with nothing to clean up after it, through an ABI that may unwind, so
//!   that a thread that is cancelled inside it goes as it would have gone. Own questions to the
//!   kernel are bare system calls (`sys.rs`), which are no cancellation points and leave `errno`
//!   alone.
//! - Inactive is the state before the constructor has run, after a setting that is not understood,
//!   in a program with more rights than its user, under a filter of system calls that was not
//!   tried (`filter.rs`), and on a kernel that doesn't know the hint. Then each is a comparison and a
//!   jump to the original.

// Copies are non-temporal on x86-64 only; elsewhere this is a library without functions.
// Its functions are not exported into the unit tests, which would get them for their own.
#![cfg_attr(test, allow(dead_code))]
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod active;
mod confine;
mod descriptors;
mod enable;
mod filter;
mod memory;
mod message;
mod options;
mod original;
mod send;
mod setters;
mod settings;
mod sockets;
mod start;
mod sys;
mod table;
