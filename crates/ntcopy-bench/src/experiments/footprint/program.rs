//! A whole program between priming and probing: a slice of it at a time.

use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use super::Plan;
use super::lines::Cycle;
use crate::experiments::turns::program::{Output, Program, adopt_orphans};
use crate::run::{CpuClock, Failure, Stop, family};

/// How long the program may run between priming and probing.
const SLICE: Duration = Duration::from_micros(500);
/// How long it runs between two slices that are looked at, so that all of it comes to pass.
const BETWEEN: Duration = Duration::from_millis(10);
const WALKS: u32 = 4;

/// What was found, a slice each.
#[derive(Debug, Default)]
pub struct Slices {
    pub displaced: Vec<u64>,
    pub took_ns: Vec<u64>,
    /// Nanoseconds of CPU time that the program had of them.
    pub cpu_ns: Vec<u64>,
}

/// Starts the program on the CPU that this process stays on, and looks at slices of it until it
/// ends. Outside of them it is stopped while the lines are primed and probed.
pub fn slices(plan: &Plan, cycle: &Cycle, threshold: u64, stop: &Stop) -> Result<Slices, Failure> {
    adopt_orphans()?;
    let mut program = Program::start(&plan.program, &[], Output::Dropped)?;
    let group = program.pid();
    let mut slices = Slices::default();
    while program.runs()? {
        stop.check()?;
        thread::sleep(BETWEEN);
        // It may end at any moment, and then there is no process to stop.
        let _ = kill_process_group(group, Signal::STOP);
        let before = cpu_ns(group);
        cycle.prime(WALKS);
        let began = Instant::now();
        let _ = kill_process_group(group, Signal::CONT);
        thread::sleep(SLICE);
        let _ = kill_process_group(group, Signal::STOP);
        let took = began.elapsed();
        let displaced = cycle.probe(threshold);
        if let (Some(before), Some(after)) = (before, cpu_ns(group)) {
            slices.displaced.push(displaced);
            slices.took_ns.push(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
            slices.cpu_ns.push(after.saturating_sub(before));
        }
        let _ = kill_process_group(group, Signal::CONT);
    }
    program.finish(Duration::from_secs(1), stop)?;
    Ok(slices)
}

/// CPU time of a process and of those below it; none once they are gone.
fn cpu_ns(pid: Pid) -> Option<u64> {
    let all = family(pid).ok()?;
    let times = all.iter().filter_map(|pid| CpuClock::new(*pid).ok()?.ns().ok());
    let times: Vec<u64> = times.collect();
    (!times.is_empty()).then(|| times.iter().sum())
}
