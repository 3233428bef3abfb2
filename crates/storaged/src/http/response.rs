//! The head of a response, and the bodies of errors.

use std::fmt::Write;
use std::time::{Duration, SystemTime};

/// The `Date` of responses, formatted once a second.
#[derive(Debug)]
pub struct Clock {
    second: u64,
    text: String,
}

impl Clock {
    pub fn new() -> Clock {
        Clock { second: 0, text: String::new() }
    }

    /// The time now, as `Date` has it.
    pub fn date(&mut self) -> &str {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        if since.as_secs() != self.second || self.text.is_empty() {
            self.second = since.as_secs();
            self.text = http_date(Duration::from_secs(self.second));
        }
        &self.text
    }
}

impl Default for Clock {
    fn default() -> Clock {
        Clock::new()
    }
}

/// A moment after 1970, as headers have it.
pub fn http_date(since: Duration) -> String {
    // A year beyond 9999 has no such form, and no file has such a time but by hand.
    let latest = Duration::from_secs(253_402_300_799);
    httpdate::fmt_http_date(SystemTime::UNIX_EPOCH + since.min(latest))
}

/// The head of a response, as it is sent.
#[derive(Debug)]
pub struct Head(Vec<u8>);

impl Head {
    /// Status line, `Date`, and `Connection: close` where this answer is the last.
    pub fn new(status: u16, keep_alive: bool, clock: &mut Clock) -> Head {
        let mut head = Head(Vec::with_capacity(320));
        head.text(format_args!("HTTP/1.1 {status} {}\r\n", reason(status)));
        head.field("Date", clock.date());
        if !keep_alive {
            head.field("Connection", "close");
        }
        head
    }

    pub fn field(&mut self, name: &str, value: impl std::fmt::Display) {
        self.text(format_args!("{name}: {value}\r\n"));
    }

    /// The empty line, and what is sent with the head.
    pub fn end(mut self, body: &[u8]) -> Vec<u8> {
        self.0.extend_from_slice(b"\r\n");
        self.0.extend_from_slice(body);
        self.0
    }

    fn text(&mut self, text: std::fmt::Arguments<'_>) {
        let mut line = String::new();
        let _ = line.write_fmt(text);
        self.0.extend_from_slice(line.as_bytes());
    }
}

/// The words of a status.
pub fn reason(status: u16) -> &'static str {
    match status {
        100 => "Continue",
        200 => "OK",
        201 => "Created",
        204 => "No Content",
        206 => "Partial Content",
        304 => "Not Modified",
        400 => "Bad Request",
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
        503 => "Service Unavailable",
        505 => "HTTP Version Not Supported",
        507 => "Insufficient Storage",
        _ => "Unknown",
    }
}

/// `{"status": 404, "error": "…"}` and a line feed.
pub fn error_body(status: u16, why: &str) -> Vec<u8> {
    let mut body = serde_json::json!({ "status": status, "error": why }).to_string().into_bytes();
    body.push(b'\n');
    body
}
