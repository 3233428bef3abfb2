//! Signals to programs that a test has started; kill(1) is no part of a bare system.

use std::process::Child;

pub use rustix::process::Signal;

/// Sends a signal to a program that was not waited for yet.
pub fn send(child: &Child, signal: Signal) {
    let pid = rustix::process::Pid::from_child(child);
    rustix::process::kill_process(pid, signal).expect("it is ours, and not waited for");
}
