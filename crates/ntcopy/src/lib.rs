//! ntcopy: copies, fills and sends that know whether their bytes belong in the cache.
//!
//! Non-temporal stores take bytes to memory past the caches. They win where the bytes would not
//! have stayed in a cache anyway, or where something else wants that cache; they lose, often by a
//! factor of two or three, where whoever reads the bytes would have found them there. Every
//! call therefore carries a [`Hint`], one for each side of a copy ([`Hints`]), and the library
//! decides by that, by the size of the whole transfer, and by what the machine is.
//!
//! | for | call |
//! |---|---|
//! | one piece | [`copy()`], [`fill()`] |
//! | into memory that holds nothing yet | [`copy_uninit`], [`Stream::copy_uninit`] |
//! | a whole in many pieces | [`Stream`] |
//! | many slices into many slices | [`copy_vectored`] |
//! | pieces that share one [`fence()`] | [`copy_unfenced`], [`fill_unfenced`], [`Stream::unfenced`] |
//! | bytes for a socket | [`socket::Hinted`]: [`socket::enable`] once, then [`socket::send`], [`socket::sendmsg`] |
//!
//! Each says which way the bytes went ([`Path`]). The bytes are the same on every way.
//!
//! ```
//! use ntcopy::{Hints, Stream, copy};
//!
//! let source = vec![1; 1 << 20];
//! let mut archive = vec![0; 1 << 20];
//!
//! // What is archived is not looked at soon; the source stays in use.
//! let path = copy(&mut archive, &source, Hints::NONTEMPORAL_DESTINATION);
//! println!("one piece: {path}");
//!
//! // A gigabyte in small pieces is a gigabyte.
//! let mut stream = Stream::known(1 << 30, Hints::AUTO);
//! for (to, from) in archive.chunks_mut(1 << 16).zip(source.chunks(1 << 16)) {
//!     stream.copy(to, from);
//! }
//! println!("in pieces: {:?}", stream.finish());
//! # assert_eq!(archive, source);
//! ```
//!
//! # What decides
//!
//! [`policy`] is a pure function of hints, sizes and thresholds. The thresholds are this
//! machine's profile, if it was measured (`ntcopy footprint calibrate`, [`profile`]), else what CPUID says.
//! `NTCOPY_ISA` and `NTCOPY_THRESHOLD` override them for tests; [`init`] reports a bad value.
//!
//! # Features
//!
//! `std` (default): environment, sockets, and what the CPU is ([`cpu`]). Without it, the copies and
//! fills of a `no_std` program that has a `memcpy`, by CPUID alone. `profile`: the thresholds that
//! were measured on this machine.

#![deny(missing_docs)]
#![cfg_attr(not(any(feature = "std", test)), no_std)]
// Half of what the text refers to isn't there then.
#![cfg_attr(not(feature = "profile"), allow(rustdoc::broken_intra_doc_links))]

pub mod arch;
mod copy;
mod fence;
mod fill;
mod hint;
mod path;
pub mod policy;
mod settings;
mod stream;
pub mod uapi;
mod vectored;

#[cfg(feature = "std")]
pub mod cpu;
#[cfg(feature = "profile")]
pub mod profile;
#[cfg(feature = "std")]
pub mod recommended;
#[cfg(feature = "std")]
pub mod socket;

pub use copy::{copy, copy_unfenced, copy_uninit};
pub use fence::fence;
pub use fill::{fill, fill_unfenced};
pub use hint::{Hint, Hints};
pub use path::{Method, Path, Prefetch, Turns};
pub use policy::Policy;
#[cfg(feature = "std")]
pub use settings::{
    BadVariable, ISA_VARIABLE, Origin, Overrides, Settings, SettingsError, THRESHOLD_VARIABLE,
    TURNS_VARIABLE, init,
};
pub use stream::{Moved, Stream, Unfenced};
#[doc(hidden)]
pub use vectored::copy_scattered;
pub use vectored::copy_vectored;
