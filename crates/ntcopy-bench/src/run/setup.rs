//! What a rig is set up with, and what a clocked run of it gives.

use std::collections::BTreeMap;
use std::time::Duration;

#[derive(Debug, Clone)]
pub struct RigOptions {
    /// The arguments of this program that lead to [`super::reader::main`].
    pub reader_args: Vec<String>,
    pub patience: Duration,
    /// Make a byte wrong before it is sent, to see that it is noticed: for tests.
    pub spoil: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Clocked {
    /// Payload bytes: sent, taken, and both the same number.
    pub bytes: u64,
    /// Nanoseconds from first byte offered to last byte taken.
    pub elapsed_ns: u64,
    /// Nanoseconds of the phases that were clocked on their own.
    pub phases_ns: BTreeMap<String, u64>,
    pub counters: BTreeMap<String, u64>,
    /// Figures of parts of the run, in order, by name.
    pub series: BTreeMap<String, Vec<u64>>,
}
