//! Requests: what the proxy must know of one beyond what it means to any server.

use httpd::{Limits, Refusal};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Its answer has no body.
    Head,
    /// It changes nothing, so that a second time does no harm: GET, OPTIONS.
    Safe,
    /// All others.
    Other,
}

impl Method {
    /// Whether it changes nothing. A DELETE that was done and is done again is no harm to the
    /// backend, but the client would get a 404 for its own object.
    pub fn is_safe(self) -> bool {
        self != Method::Other
    }
}

#[derive(Debug)]
pub struct Request<'b> {
    pub http: httpd::Request<'b>,
    pub kind: Method,
    /// How often an OPTIONS may still be passed on, if it says so.
    pub forwards: Option<u32>,
}

/// Parses a complete head.
pub fn parse_request<'b>(head: &'b [u8], limits: &Limits) -> Result<Request<'b>, Refusal> {
    let http = httpd::parse_request(head, limits)?;
    let kind = match http.method {
        "HEAD" => Method::Head,
        "GET" | "OPTIONS" => Method::Safe,
        "CONNECT" | "TRACE" => {
            return Err(Refusal { status: 405, reason: "CONNECT and TRACE are not passed on" });
        }
        _ => Method::Other,
    };
    Ok(Request { kind, forwards: forwards(&http)?, http })
}

/// RFC 9110, 7.6.2: it counts for OPTIONS, and for TRACE, which is not passed on anyway. What is
/// beyond 32 bits is as much as they hold.
fn forwards(http: &httpd::Request<'_>) -> Result<Option<u32>, Refusal> {
    let line = http.headers.only("max-forwards").unwrap_or_default();
    let Some(value) = line.filter(|_| http.method == "OPTIONS") else { return Ok(None) };
    match str::from_utf8(value) {
        Ok(digits) if !digits.is_empty() && value.iter().all(u8::is_ascii_digit) => {
            Ok(Some(digits.parse().unwrap_or(u32::MAX)))
        }
        _ => Err(Refusal { status: 400, reason: "Max-Forwards is not a number" }),
    }
}
