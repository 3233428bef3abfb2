//! The C interface of [`ntcopy`]: what `include/ntcopy.h` declares and documents.
//!
//! Every function here has its documentation for C in that header; the comments in this crate
//! are about what the header doesn't show. `link.sh` makes `libntcopy.so.0` and `libntcopy.a`,
//! `scripts/install.sh` installs them.
//!
//! What holds for all functions:
//!
//! - They answer with a negative errno, never through `errno`, and write results through
//!   pointers that may be NULL.
//! - What a pointer and a length can show to be wrong is answered with an error and nothing is
//!   touched ([`boundary`]). What they can't show, memory that isn't there, is the caller's to
//!   keep.
//! - No panic leaves the library ([`boundary`]).
//!
//! Nothing here is meant to be called from Rust, where [`ntcopy`] is the interface.

#![deny(missing_docs)]
// The names are those of C.
#![allow(non_camel_case_types)]
// Each `# Safety` is one sentence about pointers; the header has the rest.
#![deny(clippy::missing_safety_doc)]

pub mod boundary;
pub mod copy;
pub mod fill;
pub mod hints;
pub mod path;
pub mod settings;
pub mod socket;
pub mod stream;
pub mod vectored;
