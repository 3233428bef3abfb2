//! Answers: their heads, and whole ones that are short.

use std::fmt::{Display, Write};
use std::time::{Duration, SystemTime};

/// The words that stand behind a status.
pub fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        201 => "Created",
        204 => "No Content",
        206 => "Partial Content",
        304 => "Not Modified",
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        411 => "Length Required",
        412 => "Precondition Failed",
        413 => "Content Too Large",
        414 => "URI Too Long",
        415 => "Unsupported Media Type",
        416 => "Range Not Satisfiable",
        417 => "Expectation Failed",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        505 => "HTTP Version Not Supported",
        507 => "Insufficient Storage",
        _ => "",
    }
}

/// A moment after 1970, as headers have it.
pub fn http_date(since: Duration) -> String {
    httpdate::fmt_http_date(SystemTime::UNIX_EPOCH + since)
}

/// The time now, since 1970.
pub fn now() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

/// The same as `Date` has it.
pub fn date() -> String {
    http_date(now())
}

/// The head of an answer, and after it a short body.
#[derive(Debug)]
pub struct Reply(String);

impl Reply {
    /// Status line and `Date`; and `Connection: close` where this answer is the last.
    pub fn new(status: u16, keep_alive: bool) -> Reply {
        let mut reply = Reply(String::with_capacity(320));
        let _ = write!(reply.0, "HTTP/1.1 {status} {}\r\n", reason(status));
        reply.field("Date", date());
        if !keep_alive {
            reply.field("Connection", "close");
        }
        reply
    }

    pub fn field(&mut self, name: &str, value: impl Display) {
        let _ = write!(self.0, "{name}: {value}\r\n");
    }

    /// The empty line.
    pub fn end(mut self) -> Vec<u8> {
        self.0.push_str("\r\n");
        self.0.into_bytes()
    }

    /// The length of a body, the empty line, and the body unless the request was a HEAD.
    pub fn end_with(mut self, body: &[u8], is_head: bool) -> Vec<u8> {
        self.field("Content-Length", body.len());
        let mut all = self.end();
        if !is_head {
            all.extend_from_slice(body);
        }
        all
    }
}
