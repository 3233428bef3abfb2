//! A loop that does not fork.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{ForkCell, ForkMode};
use crate::run::script::{copying, note};
use crate::run::{Failure, Stop};

pub struct ForkLoop;

impl ForkLoop {
    pub fn new(cell: ForkCell, _cpu: u32, _stop: &Stop) -> Result<ForkLoop, Failure> {
        copying(format_args!("fork loop over {}, {}", cell.buffer_bytes, cell.user))?;
        Ok(ForkLoop)
    }

    pub fn warm_up(&mut self, at_least: Duration, sample: Duration) -> Result<u64, Failure> {
        copying(format_args!("warm up {at_least:?} for {sample:?}"))?;
        Ok(10)
    }

    pub fn run(&mut self, forks: u64) -> Result<(Duration, BTreeMap<String, u64>), Failure> {
        copying(format_args!("fork x {forks}"))?;
        Ok((Duration::from_micros(forks), [("dram-reads".to_owned(), forks)].into()))
    }

    pub fn check(&mut self, spoil: bool) -> Result<(), Failure> {
        copying(format_args!("check, spoil {spoil}"))
    }
}

pub fn why_fixed(kernel_kind: &str) -> Option<String> {
    note(format_args!("knob of {kernel_kind}"));
    (kernel_kind != "um").then(|| "no knob on this fake".to_owned())
}

pub fn set(mode: ForkMode) -> Result<(), Failure> {
    copying(format_args!("set {mode}"))
}

pub fn counts() -> Result<[u64; 2], Failure> {
    copying(format_args!("read counts"))?;
    Ok([0, 0])
}

pub fn check(
    mode: ForkMode,
    forked_pages: u64,
    before: [u64; 2],
    after: [u64; 2],
) -> Result<BTreeMap<String, u64>, Failure> {
    copying(format_args!("counts of {mode}, {forked_pages} pages: {before:?} {after:?}"))?;
    Ok([("pgcopy_nontemporal".to_owned(), forked_pages)].into())
}
