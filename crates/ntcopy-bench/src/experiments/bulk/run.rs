//! Copies and fills in user space: a process that owns the memory, carries out orders on pinned
//! threads, clocks them and compares the bytes.
//!
//! It is this program started anew, because the C library's thresholds are fixed when a process
//! starts: a peer with another threshold needs another process, and so each has its own.

mod calls;
mod counters;
mod lanes;
mod matrix;
mod message;
mod pages;
mod peers;
mod work;
mod worker;

use memmap2::{Advice, MmapMut};

use super::plan::Resources;
use crate::c_library::{Libc, corrected_threshold_bytes};
use crate::run::{Failure, available_bytes, cpus, map, pattern};

pub use message::Traffic;
pub use pages::unavailable as page_way_unavailable;
pub use work::main as worker_main;
pub use worker::{Setup, Worker};

const SEED: u64 = 7;

/// Maps memory and touches every page; with a seed, fills it with that pattern.
fn map_memory(len_bytes: u64, huge_pages: bool, seed: Option<u64>) -> Result<MmapMut, Failure> {
    let advice = if huge_pages { Advice::HugePage } else { Advice::NoHugePage };
    let mut map = map(len_bytes, advice)?;
    match seed {
        Some(seed) => pattern::fill(seed, 0, &mut map),
        None => map.fill(0),
    }
    Ok(map)
}

pub fn resources() -> Result<Resources, Failure> {
    Ok(Resources {
        cpus: cpus()?.allowed,
        available_bytes: available_bytes(),
        llc_bytes: crate::cpu::detect().llc_bytes(),
    })
}

/// What was asked for, or what CPUID's cache asks glibc's threshold to be; none where there is no
/// such threshold.
pub(super) fn tuned_threshold_bytes(
    asked: Option<u64>,
    own: fn(&Libc) -> Option<u64>,
) -> Option<u64> {
    let libc = Libc::detect();
    let from_cpuid = || crate::cpu::detect().l3_bytes().map(corrected_threshold_bytes);
    asked.or_else(from_cpuid).filter(|bytes| *bytes > 0 && own(&libc).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_has_its_pattern_and_nothing_is_no_error() {
        let map = map_memory(100_000, true, Some(SEED)).unwrap();
        assert_eq!(pattern::first_wrong(SEED, 0, &map), None);
        assert!(map_memory(0, false, None).is_ok());
    }
}
