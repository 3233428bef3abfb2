//! Setting a program's sockets from outside, where it loads no library.

use std::ffi::OsString;

use rustix::process::Pid;

use super::program::RunningProgram;
use crate::run::{Failure, Patience};

/// A command that sets the sockets of the process whose number follows it.
#[derive(Debug, Clone)]
pub struct Outside {
    /// Sets those that are there, and ends.
    pub once: Vec<OsString>,
    /// Goes on until the process has ended.
    pub watch: Vec<OsString>,
}

impl Outside {
    /// Sets the sockets of a server that is ready: its listeners hand the setting on to what they
    /// accept.
    pub fn once(&self, pid: Pid, patience: Patience<'_>) -> Result<(), Failure> {
        start(&self.once, pid)?.finish(patience).map(drop)
    }

    /// Sets those of a program that makes them while it runs, until the value is dropped.
    pub fn follow(&self, pid: Pid) -> Result<RunningProgram, Failure> {
        start(&self.watch, pid)
    }
}

fn start(words: &[OsString], pid: Pid) -> Result<RunningProgram, Failure> {
    let mut words = words.to_vec();
    words.push(pid.as_raw_nonzero().to_string().into());
    RunningProgram::start_helper(&words)
}
