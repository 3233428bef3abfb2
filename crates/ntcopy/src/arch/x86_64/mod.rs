//! x86-64.

pub mod page_nt;
