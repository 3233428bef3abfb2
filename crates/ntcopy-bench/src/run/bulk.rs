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
mod pmem2;
mod threads;
mod work;
mod worker;

use std::fs;

use memmap2::{Advice, MmapMut, MmapOptions};
use ntcopy::cpu::Cpu;
use ntcopy_record::units::Bytes;

use crate::plan::bulk::Resources;
use crate::run::{Failure, cpus, pattern};

pub use message::Traffic;
pub use pages::unavailable as page_way_unavailable;
pub use work::main as worker_main;
pub use worker::{Setup, Timing, Worker};

/// The pattern of what is copied from.
const SEED: u64 = 7;

/// Maps memory and touches every page; with a seed, fills it with that pattern.
fn map_memory(len_bytes: u64, huge_pages: bool, seed: Option<u64>) -> Result<MmapMut, Failure> {
    let len = usize::try_from(len_bytes)
        .map_err(|_| Failure::Limit(format!("{} do not fit in memory", Bytes(len_bytes))))?;
    let doing = || format!("cannot map {}", Bytes(len_bytes));
    // A mapping of nothing is refused.
    let mut map = MmapOptions::new().len(len.max(1)).map_anon().map_err(Failure::io(doing()))?;
    let advice = if huge_pages { Advice::HugePage } else { Advice::NoHugePage };
    // A kernel without huge pages has no advice about them either, and then all are small.
    let _ = map.advise(advice);
    match seed {
        Some(seed) => pattern::fill(seed, 0, &mut map),
        None => map.fill(0),
    }
    Ok(map)
}

/// Bytes of memory that are to be had without pushing anything out; 0 if the kernel doesn't tell.
#[must_use]
pub fn available_bytes() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) << 10
}

/// What a plan has to know of this machine.
pub fn resources() -> Result<Resources, Failure> {
    Ok(Resources {
        cpus: cpus()?.allowed,
        available_bytes: available_bytes(),
        llc_bytes: Cpu::detect().llc_bytes(),
    })
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

    #[test]
    fn this_machine_has_room() {
        let resources = resources().unwrap();
        assert!(!resources.cpus.is_empty() && resources.available_bytes > 0);
    }
}
