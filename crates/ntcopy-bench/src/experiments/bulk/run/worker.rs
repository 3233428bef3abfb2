//! The worker, as the measuring program sees it.

use std::collections::BTreeMap;

use ntcopy_kernel::process::Group;

use super::message::{Copier, Order, Reply, Traffic};
use crate::c_library::{MEMCPY_TUNABLE, MEMSET_TUNABLE};
use crate::experiments::bulk::plan::{BulkCell, BulkPlan};
use crate::experiments::bulk::task::{Peer, Task, Way};
use crate::run::process::Process;
use crate::run::{Failure, Patience, Stop, ns};

#[derive(Debug, Clone, Copy)]
pub struct Setup<'a> {
    /// The arguments of this program that lead to [`super::worker_main`].
    pub args: &'a [String],
    pub patience: Patience<'a>,
    /// The C library's threshold, if it is to have another than its own.
    pub tuned_threshold_bytes: Option<u64>,
}

/// A worker. Dropping it ends it.
#[derive(Debug)]
pub struct Worker {
    process: Copier,
    stop: Stop,
    missing_peers: BTreeMap<String, String>,
}

impl Worker {
    /// Starts it, and has it map the plan's memory.
    pub fn start(setup: &Setup<'_>, plan: &BulkPlan) -> Result<Worker, Failure> {
        let process = Process::start("the worker", setup.args, setup.patience, |command| {
            if let Some(bytes) = setup.tuned_threshold_bytes {
                command.env("GLIBC_TUNABLES", tunables(tunable(plan), bytes));
            }
            Ok(Group::start(command))
        })?;
        let stop = setup.patience.stop.clone();
        let mut worker = Worker { process, stop, missing_peers: BTreeMap::new() };
        worker.set_up(setup, plan)?;
        Ok(worker)
    }

    fn set_up(&mut self, setup: &Setup<'_>, plan: &BulkPlan) -> Result<(), Failure> {
        let order = Order::SetUp {
            source_bytes: plan.source_bytes,
            destination_bytes: plan.destination_bytes,
            huge_pages: plan.huge_pages,
            cpus: plan.cpus.clone(),
        };
        let (libc_threshold_bytes, memset_threshold_bytes) = match self.ask(&order)? {
            Reply::Ready { libc_threshold_bytes, memset_threshold_bytes, missing_peers } => {
                self.missing_peers = missing_peers;
                (libc_threshold_bytes, memset_threshold_bytes)
            }
            other => return Err(self.process.unexpected(&other)),
        };
        let tunable = tunable(plan);
        let threshold_bytes =
            if tunable == MEMSET_TUNABLE { memset_threshold_bytes } else { libc_threshold_bytes };
        if let Some(wanted) = setup.tuned_threshold_bytes
            && threshold_bytes != Some(wanted)
        {
            let got = threshold_bytes.map_or("unknown".to_owned(), |bytes| bytes.to_string());
            return Err(Failure::Limit(format!(
                "GLIBC_TUNABLES={tunable}={wanted} was not taken: the threshold is {got}"
            )));
        }
        Ok(())
    }

    pub fn missing_peer(&self, peer: Peer) -> Option<&str> {
        self.missing_peers.get(peer.as_str()).map(String::as_str)
    }

    pub fn cell(&mut self, cell: &BulkCell) -> Result<(), Failure> {
        let order =
            Order::Cell { task: cell.task, size_bytes: cell.size_bytes, threads: cell.threads };
        self.ask(&order).map(drop)
    }

    /// Does the cell's task once and compares every byte; gives the path that the library chose.
    pub fn verify(&mut self, way: Way, spoil: bool) -> Result<Option<String>, Failure> {
        match self.ask(&Order::Verify { way: way.to_string(), spoil })? {
            Reply::Verified { path } => Ok(path),
            other => Err(self.process.unexpected(&other)),
        }
    }

    /// Does the cell's task for a while under the clock, warmed up as the plan says.
    pub fn sample(
        &mut self,
        way: Way,
        plan: &BulkPlan,
        cell: &BulkCell,
    ) -> Result<Traffic, Failure> {
        let order = Order::Sample {
            way: way.to_string(),
            warm_up_ns: ns(plan.warm_up),
            warm_up_bytes: if cell.is_cold() { plan.cold_warm_up_bytes } else { 0 },
            sample_ns: ns(plan.sample),
        };
        match self.ask(&order)? {
            Reply::Sample(traffic) => Ok(traffic),
            other => Err(self.process.unexpected(&other)),
        }
    }

    fn ask(&mut self, order: &Order) -> Result<Reply, Failure> {
        self.stop.check()?;
        self.process.ask(order)
    }
}

fn tunable(plan: &BulkPlan) -> &'static str {
    let fills = plan.cells.iter().any(|cell| matches!(cell.task, Task::Fill { .. }));
    if fills { MEMSET_TUNABLE } else { MEMCPY_TUNABLE }
}

/// The user's own tunables, and the threshold after them: of two, glibc takes the last.
fn tunables(name: &str, bytes: u64) -> String {
    let threshold = format!("{name}={bytes}");
    match std::env::var("GLIBC_TUNABLES") {
        Ok(others) if !others.is_empty() => format!("{others}:{threshold}"),
        _ => threshold,
    }
}
