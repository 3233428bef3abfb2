//! A worker that is no process.

use std::collections::BTreeMap;
use std::time::Duration;

use super::script::copying;
use super::{Failure, Stop};
use crate::experiment::bulk::PageWay;
use crate::experiment::bulk::{Peer, Way};
use crate::plan::bulk::{BulkCell, BulkPlan};

#[derive(Debug, Clone)]
pub struct Setup {
    pub args: Vec<String>,
    pub patience: Duration,
    pub tuned_threshold_bytes: Option<u64>,
    pub stop: Stop,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    pub warm_up: Duration,
    pub warm_up_bytes: u64,
    pub sample: Duration,
}

pub struct Traffic {
    pub bytes: u64,
    pub elapsed_ns: u64,
    pub counters: BTreeMap<String, u64>,
}

#[derive(Debug)]
pub struct Worker {
    name: &'static str,
    counters: BTreeMap<String, Option<String>>,
}

impl Worker {
    pub fn start(setup: &Setup, _plan: &BulkPlan) -> Result<Worker, Failure> {
        let name = if setup.tuned_threshold_bytes.is_some() { "tuned" } else { "plain" };
        copying(format_args!("start {name}"))?;
        let why = Some("it is a fake".to_owned());
        let counters = [("cycles", None), ("llc-misses", why.clone()), ("dram-reads", why)];
        let counters = counters.map(|(name, why)| (name.to_owned(), why)).into();
        Ok(Worker { name, counters })
    }

    pub fn missing_peer(&self, peer: Peer) -> Option<&str> {
        (peer == Peer::ALL[0]).then_some("not on this fake")
    }

    pub fn counters(&self) -> &BTreeMap<String, Option<String>> {
        &self.counters
    }

    pub fn cell(&mut self, cell: &BulkCell) -> Result<(), Failure> {
        copying(format_args!("{}: cell of {} x {}", self.name, cell.size_bytes, cell.threads))
    }

    pub fn verify(&mut self, way: Way, spoil: bool) -> Result<Option<String>, Failure> {
        copying(format_args!("{}: verify {way}, spoil {spoil}", self.name))?;
        Ok((way == Way::Ours).then(|| "avx2-nt".to_owned()))
    }

    pub fn sample(&mut self, way: Way, timing: Timing) -> Result<Traffic, Failure> {
        copying(format_args!("{}: sample {way} {timing:?}", self.name))?;
        Ok(Traffic { bytes: 1000, elapsed_ns: 100, counters: [("cycles".to_owned(), 7)].into() })
    }
}

pub fn page_way_unavailable(way: PageWay) -> Option<String> {
    (way == PageWay::ALL[0]).then(|| "not on this fake".to_owned())
}
