//! A daemon's process, and what it holds, as the kernel has it.

use std::fs;
use std::process::{Child, ExitStatus};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::PATIENCE;

/// Dropped, it is killed.
pub struct Process(pub Child);

impl Process {
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).unwrap();
    }

    /// Its own end.
    pub fn wait(&mut self) -> ExitStatus {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.0.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < until, "it does not end");
            sleep(Duration::from_millis(2));
        }
    }

    /// Ends it as a crash would.
    pub fn kill(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }

    pub fn descriptors(&self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.0.id())).unwrap().count()
    }

    /// Memory of its own that it has now.
    pub fn resident_bytes(&self) -> u64 {
        let text = fs::read_to_string(format!("/proc/{}/status", self.0.id())).unwrap();
        let line = text.lines().find(|line| line.starts_with("RssAnon:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}
