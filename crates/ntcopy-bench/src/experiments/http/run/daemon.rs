//! A daemon, and the clocks of its processes.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::process::Command;

use rustix::process::Signal;
use rustix::thread::{sched_getaffinity, sched_setaffinity};

use crate::experiments::turns::program::{Output, RunningProgram};
use crate::run::cpu_clock::{CpuClock, family};
use crate::run::{Failure, cpus};

/// Dropped, it is ended.
pub struct Daemon {
    pub program: RunningProgram,
    clocks: Vec<CpuClock>,
}

impl Daemon {
    /// Starts it, on one CPU if that is said.
    pub fn start(name: &str, command: Command, cpu: Option<u32>) -> Result<Daemon, Failure> {
        let start = || {
            // It may tell its workers to end, if this process is killed.
            let program =
                RunningProgram::spawn(name.to_owned(), command, Output::Kept, Signal::TERM)?;
            Ok(Daemon { program, clocks: Vec::new() })
        };
        let Some(cpu) = cpu else { return start() };
        let doing = || Failure::os("cannot leave the CPUs of before, or go back to them");
        let before = sched_getaffinity(None).map_err(doing())?;
        cpus::pin(cpu)?;
        let started = start();
        sched_setaffinity(None, &before).map_err(doing())?;
        started
    }

    /// Finds the processes that its CPU time is made of.
    pub fn find_clocks(&mut self) -> Result<(), Failure> {
        let clocks = family(self.program.pid())?.into_iter().map(CpuClock::new);
        self.clocks = clocks.collect::<Result<_, _>>()?;
        Ok(())
    }

    pub fn cpu_ns(&self) -> Result<u64, Failure> {
        self.clocks.iter().map(CpuClock::ns).sum()
    }
}

/// An address of this machine for itself that is free.
pub fn free_address() -> Result<SocketAddr, Failure> {
    let failed = || Failure::io("cannot find a free port of the loopback");
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed())?;
    listener.local_addr().map_err(failed())
}
