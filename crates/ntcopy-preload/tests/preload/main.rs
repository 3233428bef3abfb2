//! libntcopy-preload.so as programs see it: linked by link.sh, loaded by the dynamic loader before
//! C programs of this crate and before programs that everybody has.
//!
//! The kernel here need not know the option: a program plays one that does (`tests/c/fake.c`). That
//! sends are hinted then is shown where a kernel does it: crates/ntcopy-cli/tests/it/run.rs.

mod built;
mod errors;
mod filtered;
mod library;
mod life;
mod optin;
mod programs;
mod settings;
