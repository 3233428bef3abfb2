//! The worker, as the measuring program sees it.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use ntcopy::libc::{MEMCPY_TUNABLE, MEMSET_TUNABLE};
use rustix::io::Errno;

use super::message::{Order, Reply, Traffic};
use crate::experiment::bulk::{Task, Way};
use crate::plan::bulk::{BulkCell, BulkPlan};
use crate::run::link::{self, Received};
use crate::run::{Failure, Stop};

/// How a worker is started.
#[derive(Debug, Clone)]
pub struct Setup {
    /// The arguments of this program that lead to [`super::worker_main`].
    pub args: Vec<String>,
    /// How long an answer may take.
    pub patience: Duration,
    /// The C library's threshold, if it is to have another than its own.
    pub tuned_threshold_bytes: Option<u64>,
    /// Whether to stop.
    pub stop: Stop,
}

/// How long to run before the clock, and under it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// Before the clock, at least.
    pub warm_up: Duration,
    /// And so many bytes at least.
    pub warm_up_bytes: u64,
    /// Under the clock, about.
    pub sample: Duration,
}

/// A worker. Dropping it ends it.
#[derive(Debug)]
pub struct Worker {
    child: Child,
    line: OwnedFd,
    patience: Duration,
    stop: Stop,
    no_libpmem2: Option<String>,
    counters: BTreeMap<String, Option<String>>,
}

impl Worker {
    /// Starts it, and has it map the plan's memory.
    ///
    /// # Errors
    ///
    /// When it cannot be started or has no memory, or when its C library doesn't take the
    /// threshold.
    pub fn start(setup: &Setup, plan: &BulkPlan) -> Result<Worker, Failure> {
        let (line, theirs) = link::pair().map_err(Failure::os("cannot make a socket pair"))?;
        link::set_patience(line.as_fd(), Some(setup.patience))
            .map_err(Failure::os("cannot set SO_RCVTIMEO"))?;
        // The link in /proc, not the name behind it: the file may have been replaced since.
        let mut command = Command::new("/proc/self/exe");
        if let Some(bytes) = setup.tuned_threshold_bytes {
            command.env("GLIBC_TUNABLES", tunables(tunable(plan), bytes));
        }
        let child = command
            .args(&setup.args)
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::null())
            // Ctrl-C goes to the measuring program alone, which then ends the worker.
            .process_group(0)
            .spawn()
            .map_err(Failure::io("cannot start the worker"))?;
        let mut worker = Worker {
            child,
            line,
            patience: setup.patience,
            stop: setup.stop.clone(),
            no_libpmem2: None,
            counters: BTreeMap::new(),
        };
        worker.set_up(setup, plan)?;
        Ok(worker)
    }

    fn set_up(&mut self, setup: &Setup, plan: &BulkPlan) -> Result<(), Failure> {
        let order = Order::SetUp {
            source_bytes: plan.source_bytes,
            destination_bytes: plan.destination_bytes,
            huge_pages: plan.huge_pages,
            cpus: plan.cpus.clone(),
        };
        let Reply::Ready { libc_threshold_bytes, memset_threshold_bytes, no_libpmem2, counters } =
            self.ask(&order)?
        else {
            return Err(Failure::Worker("another answer than asked for".to_owned()));
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
        (self.no_libpmem2, self.counters) = (no_libpmem2, counters);
        Ok(())
    }

    /// Why libpmem2 cannot be used, if it cannot.
    #[must_use]
    pub fn no_libpmem2(&self) -> Option<&str> {
        self.no_libpmem2.as_deref()
    }

    /// Hardware events, and why each cannot be counted, if it cannot.
    #[must_use]
    pub fn counters(&self) -> &BTreeMap<String, Option<String>> {
        &self.counters
    }

    /// Turns to a cell.
    ///
    /// # Errors
    ///
    /// When the worker is gone or lacks the memory.
    pub fn cell(&mut self, cell: &BulkCell) -> Result<(), Failure> {
        let order =
            Order::Cell { task: cell.task, size_bytes: cell.size_bytes, threads: cell.threads };
        self.ask(&order).map(drop)
    }

    /// Does the cell's task once and compares every byte; gives the path that the library chose.
    ///
    /// # Errors
    ///
    /// [`Failure::WrongCopy`], or when it could not be done. `spoil` makes a byte wrong.
    pub fn verify(&mut self, way: Way, spoil: bool) -> Result<Option<String>, Failure> {
        match self.ask(&Order::Verify { way: way.to_string(), spoil })? {
            Reply::Verified { path } => Ok(path),
            other => Err(Failure::Worker(format!("another answer than asked for: {other:?}"))),
        }
    }

    /// Does the cell's task for a while under the clock.
    ///
    /// # Errors
    ///
    /// As [`Worker::verify`].
    pub fn sample(&mut self, way: Way, timing: Timing) -> Result<Traffic, Failure> {
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let order = Order::Sample {
            way: way.to_string(),
            warm_up_ns: ns(timing.warm_up),
            warm_up_bytes: timing.warm_up_bytes,
            sample_ns: ns(timing.sample),
        };
        match self.ask(&order)? {
            Reply::Sample(traffic) => Ok(traffic),
            other => Err(Failure::Worker(format!("another answer than asked for: {other:?}"))),
        }
    }

    fn ask(&mut self, order: &Order) -> Result<Reply, Failure> {
        self.stop.check()?;
        let lost = |errno| Failure::Os { doing: "the line to the worker".to_owned(), errno };
        link::send_encoded(self.line.as_fd(), &link::encode(order)).map_err(lost)?;
        loop {
            match link::receive::<Reply>(self.line.as_fd()).map_err(lost)? {
                Received::Message(Reply::Failed { what }, _) => {
                    return Err(Failure::Worker(what));
                }
                Received::Message(Reply::WrongByte { position, expected, got }, _) => {
                    return Err(Failure::WrongCopy { position, expected, got });
                }
                Received::Message(reply, _) => return Ok(reply),
                Received::Closed => return Err(self.ended()),
                Received::Nothing(Errno::INTR) => self.stop.check()?,
                Received::Nothing(_) => {
                    let waited = self.patience;
                    let what = format!("silent for {} s: it hangs or is stopped", waited.as_secs());
                    return Err(Failure::Worker(what));
                }
            }
        }
    }

    fn ended(&mut self) -> Failure {
        let status = self.child.wait().map_or_else(|e| e.to_string(), |status| status.to_string());
        Failure::Worker(format!("it ended early: {status} (out of memory?)"))
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // Already gone is fine; anything else cannot be helped here.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The tunable of what the plan does.
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
