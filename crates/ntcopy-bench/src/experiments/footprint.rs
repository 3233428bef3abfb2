//! How much of a cache a call displaces, by Prime+Trigger+Probe: no counter and no privilege.
//!
//! A set of lines is walked until the cache holds it (prime), the call is made (trigger), and each
//! line is loaded with the clock running (probe): one that takes longer than a hit was displaced.
//! Known displacers, taken in the same rounds, turn that count into *equivalent lines read*: how
//! many lines one would have to read to displace as many.

mod call;
mod lines;
mod measure;
mod trigger;

pub use self::call::{Call, TABLE};
pub use ntcopy_record::stats::footprint::NOTHING;

const LINE_BYTES: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    L2,
    Llc,
}

crate::experiment::words!(Level, L2 = "L2", Llc = "LLC");

#[derive(Debug, Clone)]
pub struct Plan {
    pub calls: Vec<Call>,
    pub levels: Vec<Level>,
    pub rounds: u32,
    pub cpu: u32,
    /// Bytes of the L2 and of the last-level cache.
    pub cache_bytes: [u64; 2],
}
