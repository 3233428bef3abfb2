//! Responses of backends. What a backend says is doubted as much as what a client says.

use httparse::Header;
use httpd::{Framing, HEADERS, Headers, keeps};

use crate::request::Method;

#[derive(Debug)]
pub struct Response<'b> {
    pub status: u16,
    /// The x of HTTP/1.x.
    pub minor: u8,
    /// The words behind the status; may be empty.
    pub reason: &'b str,
    pub headers: Headers<'b>,
    /// What the lines say about the body, whether or not there is one.
    pub declared: Framing,
    /// How the body ends that follows.
    pub framing: Framing,
    pub keep_alive: bool,
}

impl Response<'_> {
    pub fn is_interim(&self) -> bool {
        self.status < 200
    }
}

/// Parses the complete head of the answer to a request with that method.
pub fn parse_response(head: &[u8], method: Method) -> Result<Response<'_>, &'static str> {
    let mut slots = [httparse::EMPTY_HEADER; HEADERS];
    let mut parsed = httparse::Response::new(&mut slots);
    match parsed.parse(head) {
        Ok(httparse::Status::Complete(len)) if len == head.len() => {}
        Ok(_) => return Err("the head ends before its empty line"),
        Err(_) => return Err("malformed head"),
    }
    let (Some(status), Some(minor)) = (parsed.code, parsed.version) else {
        return Err("malformed status line");
    };
    if status < 100 || status == 101 {
        return Err("a status that was not asked for");
    }
    let headers = Headers(parsed.headers.iter().map(|h| Header { ..*h }).collect());
    headers.check_meaning().map_err(|refusal| refusal.reason)?;
    let declared = headers.framing(minor).map_err(|refusal| refusal.reason)?;
    let bodiless = status < 200 || status == 204 || status == 304 || method == Method::Head;
    let framing = match declared {
        _ if bodiless => Framing::None,
        Framing::None => Framing::UntilClose,
        declared => declared,
    };
    let keep_alive = keeps(&headers, minor) && framing != Framing::UntilClose;
    let reason = parsed.reason.unwrap_or_default();
    Ok(Response { status, minor, reason, headers, declared, framing, keep_alive })
}
