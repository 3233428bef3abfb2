//! ntcopy: copies and sends that know whether their bytes belong in the cache.
//!
//! This version asks and answers: what the CPU and its caches are ([`cpu`]), which hardware
//! counters are to be had ([`hardware`]), when the C library goes non-temporal by itself
//! ([`libc`]), and whether the kernel knows `MSG_NTCOPY` ([`socket`]). The numbers of the kernel
//! interface are in [`uapi`].

pub mod arch;
pub mod cpu;
pub mod hardware;
pub mod libc;
pub mod socket;
pub mod uapi;
