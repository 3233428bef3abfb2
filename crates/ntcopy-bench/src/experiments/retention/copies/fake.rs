//! A victim that feels nothing.
#![allow(dead_code, clippy::missing_errors_doc, clippy::must_use_candidate)]

use std::collections::BTreeMap;
use std::time::Duration;

use super::CopyMode;
use super::plan::{CopiesCell, CopiesPlan};
use crate::run::script::{call, note};
use crate::run::{Failure, Stop};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Felt {
    pub bytes: u64,
    pub offered_bytes: u64,
    pub elapsed_ns: u64,
    pub phases_ns: BTreeMap<String, u64>,
    pub counters: BTreeMap<String, u64>,
    pub passes: Vec<(u64, u64)>,
}

impl Felt {
    pub fn median_pass_ns(&self) -> u64 {
        self.passes.first().map_or(0, |(ns, _)| *ns)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    Time { warm_up: Duration, clocked: Duration, rate_bytes_per_s: Option<u64> },
    Passes { warm_up: u64, clocked: u64 },
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("wrong byte at 1 of the destination: expected 0x02, got 0x03")]
pub struct Wrong;

pub struct Bench(u64);

/// A comparison: only wrong bytes and signals can come of it.
fn compare(what: std::fmt::Arguments<'_>) -> Result<(), Wrong> {
    match call(what) {
        Err(Failure::WrongByte { .. }) => Err(Wrong),
        _ => Ok(()),
    }
}

impl Bench {
    pub fn open(
        _plan: &CopiesPlan,
        cell: &CopiesCell,
        streamer_cpu: u32,
        before: Option<Bench>,
        _stop: &Stop,
    ) -> Result<Bench, Failure> {
        let before = before.map(|bench| bench.0);
        let size = cell.hot_set_bytes;
        call(format_args!("bench on CPU {streamer_cpu}, hot set {size}, after {before:?}"))?;
        Ok(Bench(before.unwrap_or(0) + 1))
    }

    pub fn verify(&mut self, mode: CopyMode, spoil: bool) -> Result<(), Wrong> {
        compare(format_args!("verify {mode}, spoil {spoil}"))
    }

    pub fn run(&mut self, mode: CopyMode, length: Length) -> Result<Felt, Failure> {
        let late = call(format_args!("run {mode} {length:?}"))?;
        Ok(Felt {
            bytes: 1 << 28,
            offered_bytes: 1 << 28,
            elapsed_ns: 50_000_000 + mode as u64,
            phases_ns: [("walk".to_owned(), 1)].into(),
            counters: [("cycles".to_owned(), 7)].into(),
            // A run in which nothing fitted in.
            passes: if late { vec![] } else { vec![(1000 + mode as u64, 20)] },
        })
    }

    pub fn check(&mut self) -> Result<(), Wrong> {
        compare(format_args!("check"))
    }

    pub fn passes_in_hot_set(&self) -> u64 {
        16
    }
}

pub fn path(mode: CopyMode, object_bytes: u64) -> Result<&'static str, String> {
    note(format_args!("path of {mode}, {object_bytes}"));
    if mode == CopyMode::NtBoth { Err("not on this fake".to_owned()) } else { Ok("avx2-nt") }
}

pub fn room() -> Option<u64> {
    None
}
