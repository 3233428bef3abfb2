//! libntcopy-preload.so as programs see it: linked by link.sh, loaded by the dynamic loader before
//! C programs of this crate and before programs that everybody has.
//!
//! The kernel here need not know the flag: `NTCOPY_PRELOAD_ASSUME=kernel` makes the library add it
//! all the same, which other kernels ignore on these sockets. What comes out of the library is seen
//! by a second library behind it (`tests/c/spy.c`). That the kernel takes it is shown where there
//! is one that does: crates/ntcopy-cli/tests/it/run.rs.

mod built;
mod errors;
mod filtered;
mod library;
mod life;
mod optin;
mod programs;
mod settings;
