//! Requests: what the proxy must know of one beyond what it means to any server.

use httpd::{Refusal, Request, digits};

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
    pub fn of(name: &str) -> Result<Method, Refusal> {
        let reason = "CONNECT and TRACE are not passed on";
        match name {
            "HEAD" => Ok(Method::Head),
            "GET" | "OPTIONS" => Ok(Method::Safe),
            "CONNECT" | "TRACE" => Err(Refusal { status: 405, reason }),
            _ => Ok(Method::Other),
        }
    }

    /// Whether it changes nothing. A DELETE that was done and is done again is no harm to the
    /// backend, but the client would get a 404 for its own object.
    pub fn is_safe(self) -> bool {
        self != Method::Other
    }
}

/// How often an OPTIONS may still be passed on, if it says so: RFC 9110, 7.6.2. It counts for TRACE
/// too, which is not passed on anyway. What is beyond 32 bits is as much as they hold.
pub fn forwards(request: &Request<'_>) -> Result<Option<u32>, Refusal> {
    let line = request.headers.only("max-forwards").unwrap_or_default();
    let Some(value) = line.filter(|_| request.method == "OPTIONS") else { return Ok(None) };
    match digits(value) {
        Some(left) => Ok(Some(u32::try_from(left).unwrap_or(u32::MAX))),
        None => Err(Refusal { status: 400, reason: "Max-Forwards is not a number" }),
    }
}
