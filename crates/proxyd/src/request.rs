//! Requests: what the proxy must know of one beyond what it means to any server.

use httpd::Refusal;

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
