//! What a proxy and its backend are started for.

use std::path::Path;
use std::time::Duration;

use super::daemon::free_address;
use crate::experiments::http::{HttpCell, HttpPlan, Transport, Way};
use crate::experiments::turns::program::Endpoint;
use crate::run::Failure;

pub struct Setup<'a> {
    pub plan: &'a HttpPlan,
    /// The cell, of those with the same data.
    pub cell: &'a HttpCell,
    pub way: Way,
    pub folder: &'a Path,
    pub open_files: u64,
    pub patience: Duration,
}

impl Setup<'_> {
    /// Where the backend listens.
    pub(super) fn between(&self) -> Result<Endpoint, Failure> {
        match self.plan.transport {
            Transport::Unix => Ok(Endpoint::Unix(self.folder.join("b.sock"))),
            Transport::Tcp => free_address().map(Endpoint::Tcp),
        }
    }
}
