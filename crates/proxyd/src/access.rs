//! Lines of the access log, one for each exchange.

use std::io::Write;
use std::net::IpAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use httpd::Address;
use httpd::log::escape;

use crate::error::Error;

/// What is logged of an exchange.
#[derive(Debug)]
pub(crate) struct Line<'a> {
    /// The client; a unix socket has none.
    pub(crate) client: Option<IpAddr>,
    /// Method and target.
    pub(crate) request: &'a str,
    /// What the client was answered with; 499 if it was gone before.
    pub(crate) status: u16,
    /// Bytes of the response's body that were passed on.
    pub(crate) body_bytes: u64,
    /// The time from the head to the answer's last byte.
    pub(crate) took: Duration,
    /// Where the answer came from, unless from the proxy.
    pub(crate) backend: Option<&'a Address>,
    /// Whether any byte of the body went through a pipe.
    pub(crate) spliced: bool,
    /// Why the exchange failed, if it did.
    pub(crate) error: Option<&'a Error>,
}

impl Line<'_> {
    pub(crate) fn text(&self) -> Vec<u8> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut out = Vec::with_capacity(128);
        let _ = write!(out, "{}.{:06} ", since.as_secs(), since.subsec_micros());
        let _ = match self.client {
            Some(client) => write!(out, "{client}"),
            None => write!(out, "unix"),
        };
        let (request, status, bytes) = (escape(self.request), self.status, self.body_bytes);
        let _ = write!(out, " \"{request}\" {status} {bytes} {}us ", self.took.as_micros());
        let _ = match self.backend {
            Some(backend) => write!(out, "{backend}"),
            None => write!(out, "-"),
        };
        let _ = write!(out, " {}", if self.spliced { "spliced" } else { "copied" });
        let _ = match self.error {
            Some(error) => writeln!(out, " ({})", escape(&error.to_string())),
            None => writeln!(out),
        };
        out
    }
}
