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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{Kind, Source};

    #[test]
    fn a_line_has_what_happened_and_no_quote_breaks_out() {
        let line = Line {
            client: Some("192.0.2.1".parse().unwrap()),
            request: "GET /a\"b\n",
            status: 200,
            body_bytes: 5,
            took: Duration::from_micros(12),
            backend: Some(&Address::Unix("/b".into())),
            spliced: true,
            error: None,
        };
        let text = |line: &Line<'_>| {
            let text = String::from_utf8(line.text()).unwrap();
            text.split_once(' ').unwrap().1.to_owned()
        };
        assert_eq!(text(&line), "192.0.2.1 \"GET /a%22b%0A\" 200 5 12us unix:/b spliced\n");
        let error = Error::new(Source::Downstream, Kind::Closed, "it is \"gone\"");
        let line = Line { client: None, backend: None, error: Some(&error), ..line };
        let end = " - spliced (client: closed too early: it is %22gone%22)\n";
        assert!(text(&line).starts_with("unix ") && text(&line).ends_with(end), "{}", text(&line));
    }
}
