//! The program: started for a mode, filled, every value compared, and ended.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::client::Client;
use super::command::command;
use super::plan::{APP, AppMode, Plan};
use super::store;
use crate::experiments::http::run::Daemon;
use crate::experiments::turns::program::Endpoint;
use crate::run::{Failure, Stop};

pub struct Server {
    daemon: Daemon,
    pub at: PathBuf,
}

impl Server {
    /// Starts it on the server's CPU, and stores all values.
    pub fn start(
        plan: &Plan,
        mode: AppMode,
        folder: &Path,
        (patience, stop): (Duration, &Stop),
    ) -> Result<Server, Failure> {
        let at = folder.join(format!("{mode}.sock"));
        let mut command = command(plan, &at);
        if let Some(Ok(environment)) = plan.hinting.get(&mode) {
            command.envs(environment.iter().map(|(name, value)| (name, value)));
        }
        // One that was there before has left its name.
        let _ = std::fs::remove_file(&at);
        let mut daemon = Daemon::start(APP, command, Some(plan.cpus[0]))?;
        daemon.program.accepts(&Endpoint::Unix(at.clone()), patience, stop)?;
        daemon.find_clocks()?;
        let server = Server { daemon, at };
        store::fill(plan, &server.at, (patience, stop))?;
        server.check(plan, 0..plan.data.large_values, (patience, stop), false)?;
        Ok(server)
    }

    pub fn cpu_ns(&self) -> Result<u64, Failure> {
        self.daemon.cpu_ns()
    }

    /// What failed, in the server's own words if it is gone.
    pub fn blame(&mut self, failure: Failure) -> Failure {
        self.daemon.program.gone().unwrap_or(failure)
    }

    /// Compares every byte of every hot value, and of some large ones.
    pub fn check(
        &self,
        plan: &Plan,
        large: Range<u64>,
        patience: (Duration, &Stop),
        spoil: bool,
    ) -> Result<(), Failure> {
        Client::connect(plan.data, &self.at, [1, 1], patience)?.check(large, spoil)
    }
}
