//! What a proxy and its backend are started for.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::daemon::free_address;
use super::wire::Handshake;
use crate::experiments::http::plan::{HttpCell, HttpPlan};
use crate::experiments::http::{Transport, Way};
use crate::experiments::turns::program::Endpoint;
use crate::run::Failure;

/// Why TLS is not to be had in this program, if so.
pub(super) const NO_TLS: Option<&str> = match cfg!(feature = "tls") {
    true => None,
    false => Some("this ntcopy was built without TLS; `make program` builds one with it"),
};

/// A certificate that signs itself, its key, and clients that believe it.
#[derive(Debug, Clone)]
pub struct Certificate {
    /// The certificate's file, PEM.
    pub certificate: PathBuf,
    /// Its key's file, PEM.
    pub key: PathBuf,
    /// Both in one file, as HAProxy wants them.
    pub both: PathBuf,
    pub client: Arc<dyn Handshake>,
}

impl Certificate {
    /// Makes one, with its files in the folder.
    #[cfg(feature = "tls")]
    pub fn make(folder: &Path) -> Result<Certificate, Failure> {
        let signed = super::tls::sign()?;
        let write = |name: &str, text: &str| {
            let path = folder.join(name);
            let written = std::fs::write(&path, text);
            written.map_err(Failure::io(format!("cannot write {}", path.display())))?;
            Ok::<PathBuf, Failure>(path)
        };
        Ok(Certificate {
            certificate: write("certificate.pem", &signed.certificate)?,
            key: write("key.pem", &signed.key)?,
            both: write("both.pem", &format!("{}{}", signed.certificate, signed.key))?,
            client: signed.client,
        })
    }

    #[cfg(not(feature = "tls"))]
    pub fn make(folder: &Path) -> Result<Certificate, Failure> {
        Err(Failure::Limit(format!("{}: {}", folder.display(), NO_TLS.unwrap_or_default())))
    }
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

#[cfg(all(test, feature = "tls"))]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_certificate_lies_in_files_and_its_key_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let made = Certificate::make(folder.path()).unwrap();
        let read = |path: &Path| fs::read_to_string(path).unwrap();
        assert!(read(&made.certificate).contains("BEGIN CERTIFICATE"));
        assert!(read(&made.key).contains("PRIVATE KEY"));
        assert_eq!(read(&made.both), read(&made.certificate) + &read(&made.key));
    }
}
