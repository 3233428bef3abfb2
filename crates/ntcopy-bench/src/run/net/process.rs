//! The server's process, as the client sees it.

use std::ops::{Deref, DerefMut};
use std::time::Duration;

use super::message::Server;
use super::network::Network;
use crate::run::cpu_clock::CpuClock;
use crate::run::process::Process;
use crate::run::{Failure, Stop};

/// A server. Dropping it ends it.
pub struct ServerProcess {
    process: Process<Server>,
    clock: CpuClock,
}

impl ServerProcess {
    /// Starts it on the server's side of the network, with the arguments that lead to
    /// [`super::server_main`].
    pub fn start(
        args: &[String],
        network: &Network,
        patience: Duration,
        stop: &Stop,
    ) -> Result<ServerProcess, Failure> {
        let process =
            Process::start(args, patience, stop, |command| network.at_server(|| command.spawn()))?;
        let clock = CpuClock::new(process.pid())?;
        Ok(ServerProcess { process, clock })
    }

    /// Its CPU time so far, nanoseconds.
    pub fn cpu_ns(&self) -> Result<u64, Failure> {
        self.clock.ns()
    }
}

impl Deref for ServerProcess {
    type Target = Process<Server>;

    fn deref(&self) -> &Process<Server> {
        &self.process
    }
}

impl DerefMut for ServerProcess {
    fn deref_mut(&mut self) -> &mut Process<Server> {
        &mut self.process
    }
}
