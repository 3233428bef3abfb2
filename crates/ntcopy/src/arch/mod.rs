//! What is particular to an architecture. Another one enters here.

#[cfg(target_arch = "x86_64")]
pub mod x86_64;
