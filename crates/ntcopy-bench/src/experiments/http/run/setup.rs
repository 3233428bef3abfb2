//! What a proxy and its backend are started for.

use std::path::Path;
use std::time::Duration;

use super::daemon::free_address;
use super::wire::Certificate;
use crate::experiments::http::plan::{HttpCell, HttpPlan};
use crate::experiments::http::{Transport, Way};
use crate::experiments::turns::program::Endpoint;
use crate::run::Failure;

/// Why TLS is not to be had in this program, if so.
pub(super) const NO_TLS: Option<&str> = match cfg!(feature = "tls") {
    true => None,
    false => Some("this ntcopy was built without TLS; `make program` builds one with it"),
};

#[cfg(not(feature = "tls"))]
pub fn make_certificate(folder: &Path) -> Result<Certificate, Failure> {
    Err(Failure::Limit(format!("{}: {}", folder.display(), NO_TLS.unwrap_or_default())))
}

pub struct Setup<'a> {
    pub plan: &'a HttpPlan,
    /// The cell, of those with the same data.
    pub cell: &'a HttpCell,
    pub way: Way,
    pub folder: &'a Path,
    pub certificate: Option<&'a Certificate>,
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
