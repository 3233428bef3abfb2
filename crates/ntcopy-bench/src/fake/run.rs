//! In the place of `run` with the feature `fake-lanes`: what the drivers ask of lanes, as text.
//!
//! The types that stand for processes have the names and methods of the real ones.
#![allow(dead_code, clippy::missing_errors_doc, clippy::must_use_candidate)]

pub mod bulk;
#[path = "../run/failure.rs"]
mod failure;
#[path = "../run/load.rs"]
pub(crate) mod load;
#[path = "../run/meter.rs"]
pub(crate) mod meter;
pub mod net;
#[path = "../run/schedule.rs"]
pub(crate) mod schedule;
pub mod script;
#[path = "../run/setup.rs"]
mod setup;
#[path = "../run/stop.rs"]
mod stop;

use std::time::Duration;

use ntcopy_record::Params;

use crate::experiment::{Family, Mode};
use crate::plan::{CellPlan, Plan};
use script::{call, note};

pub use failure::Failure;
pub use setup::{Clocked, Fault, RigOptions};
pub use stop::Stop;

/// Memory that is handed on from rig to rig.
pub struct Buffer(u64);

/// Part of a cell, in bytes, that the fake moves in a run.
const RUN_BYTES: u64 = 4096;
const RUN_NS: u64 = 1_000_000;

pub struct Rig {
    cell: CellPlan,
    memory: u64,
}

impl Rig {
    pub fn open(
        cell: &CellPlan,
        options: &RigOptions,
        kept: Option<Buffer>,
        _stop: &Stop,
    ) -> Result<Rig, Failure> {
        let kept = kept.map(|buffer| buffer.0);
        call(format_args!("open, {:?}, memory {kept:?}", options.fault))?;
        Ok(Rig { cell: cell.clone(), memory: kept.unwrap_or(0) + 1 })
    }

    pub fn into_memory(self) -> Buffer {
        note(format_args!("into memory {}", self.memory));
        Buffer(self.memory)
    }

    pub fn params(&self, iterations: Option<u64>) -> Params {
        self.cell.params(iterations)
    }

    pub fn verify(&mut self, mode: Mode, most_sockets: u32) -> Result<(), Failure> {
        call(format_args!("verify {mode} on {most_sockets}")).map(drop)
    }

    pub fn run(&mut self, mode: Mode, count: u64) -> Result<Clocked, Failure> {
        call(format_args!("run {mode} x {count}"))?;
        Ok(Clocked {
            bytes: count * RUN_BYTES,
            elapsed_ns: count * (RUN_NS + mode as u64),
            phases_ns: [("send".to_owned(), count * RUN_NS / 2)].into(),
            counters: [("nontemporal_bytes".to_owned(), count)].into(),
            series: [("walk_ns".to_owned(), vec![count])].into(),
        })
    }

    pub fn spot_check(&mut self, mode: Mode) -> Result<(), Failure> {
        call(format_args!("spot check {mode}")).map(drop)
    }
}

pub fn preflight(_plan: &Plan) -> Result<(), Failure> {
    call(format_args!("preflight")).map(drop)
}

pub fn unavailable(mode: Mode) -> Result<Option<String>, Failure> {
    call(format_args!("is {mode} here"))?;
    Ok((mode == Mode::Vmsplice).then(|| "not on this fake".to_owned()))
}

pub fn family_unavailable(family: Family) -> Result<Option<String>, Failure> {
    call(format_args!("is {family} here"))?;
    Ok((family == Family::Tcp6).then(|| "not on this fake".to_owned()))
}

pub fn place(cpu: Option<u32>) -> Result<(), Failure> {
    call(format_args!("place on {}", cpu.is_some())).map(drop)
}

pub fn unix_now_ns() -> u64 {
    1_700_000_000 * Duration::from_secs(1).as_nanos() as u64
}
