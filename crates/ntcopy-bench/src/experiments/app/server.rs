//! The program: started for a mode, filled, every value compared, and ended.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::client::Client;
use super::store;
use super::{APP, AppMode, AppPlan};
use crate::experiments::http::run::Daemon;
use crate::experiments::turns::program::Endpoint;
use crate::run::{Failure, Patience};

/// What memcached may hold, in percent of what is put into it: it must drop nothing.
const ROOM_PERCENT: u64 = 150;
const ROOM_MIB: u64 = 128;

pub struct Server {
    daemon: Daemon,
    pub at: PathBuf,
}

impl Server {
    /// Starts it on the server's CPU, and stores all values.
    pub fn start(
        plan: &AppPlan,
        mode: AppMode,
        folder: &Path,
        patience: Patience<'_>,
    ) -> Result<Server, Failure> {
        let at = folder.join(format!("{mode}.sock"));
        let mut command = command(plan, &at);
        if let Some(Ok(environment)) = plan.hinting.get(&mode) {
            command.envs(environment.iter().map(|(name, value)| (name, value)));
        }
        // One that was there before has left its name.
        let _ = std::fs::remove_file(&at);
        let mut daemon = Daemon::start(APP, command, Some(plan.cpus[0]))?;
        daemon.program.accepts(&Endpoint::Unix(at.clone()), patience)?;
        daemon.find_clocks()?;
        let server = Server { daemon, at };
        store::fill(plan, &server.at, patience)?;
        server.check(plan, 0..plan.data.large_values, patience, false)?;
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
        plan: &AppPlan,
        large: Range<u64>,
        patience: Patience<'_>,
        spoil: bool,
    ) -> Result<(), Failure> {
        Client::connect(plan.data, &self.at, [1, 1], patience)?.check(large, spoil)
    }
}

/// The command line of a server that listens there.
fn command(plan: &AppPlan, at: &Path) -> Command {
    let data = &plan.data;
    let stored = data.large_values * data.large_bytes + data.small_keys * data.small_bytes;
    let room_mib = (stored >> 20) * ROOM_PERCENT / 100 + ROOM_MIB;
    let largest = (data.large_bytes.max(data.small_bytes) * 2).max(1 << 20);
    let mut command = Command::new(&plan.program);
    command.arg("-s").arg(at);
    command.args(format!("-t 1 -U 0 -m {room_mib} -I {largest}").split(' '));
    if rustix::process::geteuid().is_root() {
        // It would lose root's rights, and with them the way to the folder.
        command.args(["-u", "root"]);
    }
    command
}

pub fn version(plan: &AppPlan) -> String {
    let Ok(output) = Command::new(&plan.program).arg("--version").output() else {
        return String::new();
    };
    String::from_utf8_lossy(&output.stdout).lines().next().unwrap_or_default().trim().to_owned()
}
