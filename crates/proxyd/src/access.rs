//! The access log: a line an exchange, gathered in memory and written in whole lines.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::net::IpAddr;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Lines are written once this number of bytes has gathered, and at least once a second.
const GATHER_BYTES: usize = 32 << 10;

/// What is logged of an exchange.
#[derive(Debug)]
pub struct Line<'a> {
    /// The client; a unix socket has none.
    pub client: Option<IpAddr>,
    /// Method and target.
    pub request: &'a str,
    /// What the client was answered with; 499 if it was gone before.
    pub status: u16,
    /// Bytes of the response's body that were passed on.
    pub body_bytes: u64,
    /// The time from the head's first byte to the answer's last.
    pub took: Duration,
    /// Where the answer came from; empty if from the proxy.
    pub backend: &'a str,
    /// Whether any byte of the body went through a pipe.
    pub spliced: bool,
    /// Why the exchange failed, if it did.
    pub error: Option<&'a crate::error::Error>,
}

/// A worker's log.
#[derive(Debug, Default)]
pub struct AccessLog {
    file: Option<File>,
    gathered: Vec<u8>,
}

impl AccessLog {
    /// Opens the file to append; `-` stands for standard output, `None` for no log.
    ///
    /// # Errors
    ///
    /// The file can't be opened.
    pub fn open(path: Option<&Path>) -> io::Result<AccessLog> {
        let file = match path {
            None => None,
            Some(path) if path == Path::new("-") => {
                Some(File::from(rustix::io::dup(io::stdout())?))
            }
            Some(path) => Some(OpenOptions::new().append(true).create(true).open(path)?),
        };
        Ok(AccessLog { file, gathered: Vec::new() })
    }

    /// Whether there is one.
    pub fn is_on(&self) -> bool {
        self.file.is_some()
    }

    /// Adds a line.
    pub fn write(&mut self, line: &Line<'_>) {
        if self.file.is_none() {
            return;
        }
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let out = &mut self.gathered;
        let _ = write!(out, "{}.{:06} ", since.as_secs(), since.subsec_micros());
        let _ = match line.client {
            Some(client) => write!(out, "{client}"),
            None => write!(out, "unix"),
        };
        let _ = write!(
            out,
            " \"{}\" {} {} {}us {} {}",
            escape(line.request),
            line.status,
            line.body_bytes,
            line.took.as_micros(),
            if line.backend.is_empty() { "-" } else { line.backend },
            if line.spliced { "spliced" } else { "copied" },
        );
        let _ = match line.error {
            Some(error) => writeln!(out, " ({})", escape(&error.to_string())),
            None => writeln!(out),
        };
        if out.len() >= GATHER_BYTES {
            self.flush();
        }
    }

    /// Whether lines wait to be written.
    pub fn has_lines(&self) -> bool {
        !self.gathered.is_empty()
    }

    /// Writes what has gathered. A log that can't be written to is no reason to stop serving.
    pub fn flush(&mut self) {
        if let Some(file) = &mut self.file {
            let _ = file.write_all(&self.gathered);
        }
        self.gathered.clear();
    }
}

/// A text in which nothing ends the line or the quotes, and no terminal finds an order: whatever
/// is not visible ASCII or a blank is percent-encoded, and so are quotes and backslashes.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' | 0..0x20 | 0x7f.. => {
                let _ = std::fmt::Write::write_fmt(&mut out, format_args!("%{byte:02X}"));
            }
            plain => out.push(char::from(plain)),
        }
    }
    out
}

impl Drop for AccessLog {
    fn drop(&mut self) {
        self.flush();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_what_happened_and_no_quote_breaks_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut log = AccessLog::open(Some(&path)).unwrap();
        log.write(&Line {
            client: Some("192.0.2.1".parse().unwrap()),
            request: "GET /a\"b\\\n\u{85}\u{9b}\u{2028}\u{1b}",
            status: 200,
            body_bytes: 5,
            took: Duration::from_micros(12),
            backend: "unix:/b",
            spliced: true,
            error: None,
        });
        assert_eq!(std::fs::read(&path).unwrap(), b"", "gathered, not written");
        drop(log);
        let text = std::fs::read_to_string(&path).unwrap();
        let (_time, rest) = text.split_once(' ').unwrap();
        assert_eq!(
            rest,
            "192.0.2.1 \"GET /a%22b%5C%0A%C2%85%C2%9B%E2%80%A8%1B\" 200 5 12us unix:/b spliced\n"
        );
    }
}
