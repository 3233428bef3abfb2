//! Requests: parsed, and refused where they could be taken for something else further on.

use httparse::{Error as ParseError, Header};

use crate::head::{HEADERS, Refusal, refuse};
use crate::headers::{Framing, Headers};
use crate::target::{Target, parse_authority, parse_target};

#[derive(Debug)]
pub struct Request<'b> {
    pub method: &'b str,
    pub target: Target<'b>,
    /// That of an absolute target, else that of the Host line; HTTP/1.0 may have neither.
    pub host: Option<&'b str>,
    /// The x of HTTP/1.x.
    pub minor: u8,
    pub headers: Headers<'b>,
    pub framing: Framing,
    /// Whether the client wants to keep the connection.
    pub keep_alive: bool,
    /// Whether the client waits for a 100 before it sends the body.
    pub expects_continue: bool,
}

impl Request<'_> {
    /// Method and target, for the log.
    pub fn name(&self) -> String {
        format!("{} {}{}", self.method, self.target.path, self.target.query)
    }
}

/// Parses a complete head, as [`Scanner`](crate::Scanner) has found it.
pub fn parse_request(head: &[u8]) -> Result<Request<'_>, Refusal> {
    let mut slots = [httparse::EMPTY_HEADER; HEADERS];
    let mut parsed = httparse::Request::new(&mut slots);
    match parsed.parse(head) {
        Ok(httparse::Status::Complete(len)) if len == head.len() => {}
        Ok(_) => return Err(refuse(400, "the head ends before its empty line")),
        Err(ParseError::TooManyHeaders) => return Err(refuse(431, "too many header lines")),
        Err(ParseError::Version) => return Err(refuse(505, "not HTTP/1.0 or HTTP/1.1")),
        Err(_) => return Err(refuse(400, "malformed head")),
    }
    let (Some(method), Some(target), Some(minor)) = (parsed.method, parsed.path, parsed.version)
    else {
        return Err(refuse(400, "malformed request line"));
    };
    let headers = Headers(parsed.headers.iter().map(|h| Header { ..*h }).collect());
    let framing = headers.framing(minor)?;
    headers.check_meaning()?;
    let target = parse_target(method, target).map_err(|reason| refuse(400, reason))?;
    Ok(Request {
        method,
        target,
        host: host(&target, minor, &headers)?,
        minor,
        framing,
        keep_alive: keeps(&headers, minor),
        expects_continue: expects_continue(&headers, minor)?,
        headers,
    })
}

/// Whether a head of that version with these lines leaves the connection open.
pub fn keeps(headers: &Headers<'_>, minor: u8) -> bool {
    !headers.has_word("connection", "close")
        && (minor > 0 || headers.has_word("connection", "keep-alive"))
}

fn expects_continue(headers: &Headers<'_>, minor: u8) -> Result<bool, Refusal> {
    let mut expects = false;
    for value in headers.all("expect") {
        if !value.eq_ignore_ascii_case(b"100-continue") {
            return Err(refuse(417, "an expectation besides 100-continue"));
        }
        expects = true;
    }
    // HTTP/1.0 has no interim answers to wait for.
    Ok(expects && minor > 0)
}

/// An absolute target wins over the Host line, as RFC 9112, 3.2.2, wants it. The loser has to be a
/// host all the same.
fn host<'b>(
    target: &Target<'b>,
    minor: u8,
    headers: &Headers<'b>,
) -> Result<Option<&'b str>, Refusal> {
    let line = headers.only("host")?;
    if line.is_none() && minor > 0 {
        return Err(refuse(400, "no Host line"));
    }
    let line = line.map(parse_authority).transpose().map_err(|reason| refuse(400, reason))?;
    Ok(target.authority.or(line))
}
