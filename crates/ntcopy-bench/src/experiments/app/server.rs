//! The program: started for a mode, filled, every value compared, and ended.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::command;
use super::connection::{Connection, buffer};
use super::plan::{App, AppMode, Plan};
use super::wire::Value;
use crate::experiments::http::run::Daemon;
use crate::experiments::turns::program::Endpoint;
use crate::run::{Failure, Stop};

pub struct Server {
    app: App,
    /// One, or that of the small values and that of the large ones.
    daemons: Vec<Daemon>,
    pub small: PathBuf,
    pub large: PathBuf,
    pub is_chunked: bool,
}

impl Server {
    /// Starts what the mode needs on the server's CPU, and stores all values.
    pub fn start(
        plan: &Plan,
        mode: AppMode,
        folder: &Path,
        patience: Duration,
        stop: &Stop,
    ) -> Result<Server, Failure> {
        let small = folder.join(format!("{mode}.sock"));
        let large = match mode {
            AppMode::SecondInstance => folder.join(format!("{mode}-large.sock")),
            _ => small.clone(),
        };
        let mut places = vec![&small];
        places.extend(Some(&large).filter(|large| **large != small));
        let is_chunked = mode == AppMode::Chunked;
        let mut server = Server {
            app: plan.app,
            daemons: Vec::new(),
            is_chunked,
            small: small.clone(),
            large: large.clone(),
        };
        for place in places {
            server.start_one(plan, mode, place, patience, stop)?;
        }
        server.fill(plan, patience, stop)?;
        server.check(plan, patience, stop)?;
        Ok(server)
    }

    fn start_one(
        &mut self,
        plan: &Plan,
        mode: AppMode,
        at: &Path,
        patience: Duration,
        stop: &Stop,
    ) -> Result<(), Failure> {
        let mut command = command::command(plan, at);
        if let Some(Ok(environment)) = plan.hinting.get(&mode) {
            command.envs(environment.iter().map(|(name, value)| (name, value)));
        }
        // One that was there before has left its name.
        let _ = std::fs::remove_file(at);
        let mut daemon = Daemon::start(plan.app.as_str(), command, Some(plan.cpus[0]))?;
        daemon.program.accepts(&Endpoint::Unix(at.to_owned()), patience, stop)?;
        daemon.find_clocks()?;
        self.daemons.push(daemon);
        Ok(())
    }

    pub fn cpu_ns(&self) -> Result<u64, Failure> {
        self.daemons.iter().map(Daemon::cpu_ns).sum()
    }

    /// What failed, in the server's own words if it is gone.
    pub fn blame(&mut self, failure: Failure) -> Failure {
        self.daemons.iter_mut().find_map(|daemon| daemon.program.gone()).unwrap_or(failure)
    }

    /// Stores every value.
    fn fill(&self, plan: &Plan, patience: Duration, stop: &Stop) -> Result<(), Failure> {
        let mut buffer = buffer();
        let mut small = Connection::open(self.app, &self.small, patience)?;
        for key in 0..plan.data.small_keys {
            small.set(&plan.data.small(key), &mut buffer)?;
        }
        let mut large = Connection::open(self.app, &self.large, patience)?;
        for value in plan.data.large_all(0..plan.data.large_values, self.is_chunked) {
            stop.check()?;
            large.set(&value, &mut buffer)?;
        }
        Ok(())
    }

    pub fn check(&self, plan: &Plan, patience: Duration, stop: &Stop) -> Result<(), Failure> {
        self.check_some(plan, 0..plan.data.large_values, patience, stop, false)
    }

    /// Compares every byte of every hot value, and of some large ones.
    pub fn check_some(
        &self,
        plan: &Plan,
        large: std::ops::Range<u64>,
        patience: Duration,
        stop: &Stop,
        spoil: bool,
    ) -> Result<(), Failure> {
        let mut buffer = buffer();
        let mut asking = Connection::open(self.app, &self.small, patience)?;
        asking.spoils = spoil;
        let hot: Vec<Value> = (0..plan.data.small_keys).map(|key| plan.data.small(key)).collect();
        for values in hot.chunks(plan.data.multiget as usize) {
            asking.compare_all(values, &mut buffer)?;
        }
        let mut asking = Connection::open(self.app, &self.large, patience)?;
        for value in plan.data.large_all(large, self.is_chunked) {
            stop.check()?;
            asking.compare(&value, &mut buffer)?;
        }
        Ok(())
    }
}
