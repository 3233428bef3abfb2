//! What a proxy and its backend are started for, and where the backend belongs.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::daemon::{Daemon, Endpoint};
use super::data::{LOOPBACK, free_address};
use super::links::Link;
use super::tls::Certificate;
use crate::experiments::http::plan::{HttpCell, HttpPlan};
use crate::experiments::http::{Transport, Way};
use crate::run::Failure;

/// What a way is started for.
pub struct Setup<'a> {
    /// The plan.
    pub plan: &'a HttpPlan,
    /// The cell, of those with the same data.
    pub cell: &'a HttpCell,
    /// The way.
    pub way: Way,
    /// A folder of its own.
    pub folder: &'a Path,
    /// For TLS.
    pub certificate: Option<&'a Certificate>,
    /// Descriptors that a process may have.
    pub open_files: u64,
    /// How long anything may take.
    pub patience: Duration,
    /// What is between proxy and backend, if that was made for it.
    pub link: Option<Link<'a>>,
}

impl Setup<'_> {
    /// Where the backend listens.
    pub(super) fn between(&self) -> Result<Endpoint, Failure> {
        match (self.plan.transport, self.link) {
            (Transport::Unix, _) => Ok(Endpoint::Unix(self.folder.join("b.sock"))),
            (_, Some(link)) => link.free_address().map(Endpoint::Tcp),
            (_, None) => free_address(LOOPBACK).map(Endpoint::Tcp),
        }
    }

    /// Starts the backend, where it belongs.
    pub(super) fn start_backend(
        &self,
        name: &'static str,
        command: Command,
    ) -> Result<Daemon, Failure> {
        let cpu = self.plan.places.backend;
        let start = || Daemon::start(name, command, self.folder, cpu);
        match self.link {
            Some(link) => link.at_backend(start)?,
            None => start(),
        }
    }
}
