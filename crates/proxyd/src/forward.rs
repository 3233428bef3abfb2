//! What is passed on of a head, and what is added to it.

use std::io::Write;
use std::net::IpAddr;

use httpd::{Framing, Request, reason};

use crate::response::Response;

/// What the request says to the backend about the client and about what becomes of its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    /// The client's address; a unix socket has none.
    pub client: Option<IpAddr>,
    pub scheme: &'static str,
    /// Who reads the answer's body next, so that the backend knows how to copy: `splice`, no program
    /// on this machine; or `cpu`, right away: it is encrypted, or copied.
    pub reader: &'static str,
}

/// Lines of a request that the proxy writes itself.
const OWN: [&str; 3] = ["host", "content-length", "ntcopy-reader"];

/// Whether a line stays here: those that the proxy writes itself, `X-Forwarded-*` among them, for a
/// client may say anything. CGI makes an underscore of a hyphen, so that a name with one is read as
/// another line by whoever is behind; and `Proxy` as `HTTP_PROXY`, which programs obey.
fn is_kept_back(name: &str) -> bool {
    let begins =
        |with: &str| name.get(..with.len()).is_some_and(|start| start.eq_ignore_ascii_case(with));
    OWN.iter().any(|own| name.eq_ignore_ascii_case(own))
        || begins("x-forwarded-")
        || name.eq_ignore_ascii_case("proxy")
        || name.contains('_')
}

/// Appends the head that the backend gets.
pub fn write_request(request: &Request<'_>, facts: &Facts, out: &mut Vec<u8>) {
    let target = &request.target;
    line(out, &[request.method, " ", target.path, target.query, " HTTP/1.1"]);
    line(out, &["Host: ", request.host.unwrap_or("localhost")]);
    for (name, value) in request.headers.iter() {
        let unwaited = request.minor == 0 && name.eq_ignore_ascii_case("expect");
        if !is_kept_back(name) && !unwaited && !request.headers.is_hop_by_hop(name) {
            header(out, name, value);
        }
    }
    if let Some(client) = facts.client {
        let _ = write!(out, "X-Forwarded-For: {client}\r\n");
    }
    line(out, &["X-Forwarded-Proto: ", facts.scheme]);
    write_via(request.minor, out);
    line(out, &["Ntcopy-Reader: ", facts.reader]);
    write_framing(request.framing, out);
    out.extend_from_slice(b"\r\n");
}

fn write_via(minor: u8, out: &mut Vec<u8>) {
    line(out, &["Via: ", if minor == 0 { "1.0" } else { "1.1" }, " proxyd"]);
}

fn write_framing(framing: Framing, out: &mut Vec<u8>) {
    match framing {
        Framing::Length(length) => {
            let _ = write!(out, "Content-Length: {length}\r\n");
        }
        Framing::Chunked => line(out, &["Transfer-Encoding: chunked"]),
        Framing::None | Framing::UntilClose => {}
    }
}

/// Appends the head of the response that a client of HTTP/1.`minor` gets. `keep` says whether its
/// connection stays open; an interim response says nothing about that.
pub fn write_response(response: &Response<'_>, minor: u8, keep: bool, out: &mut Vec<u8>) {
    let reason = if response.reason.is_empty() { reason(response.status) } else { response.reason };
    let _ = write!(out, "HTTP/1.1 {} {reason}\r\n", response.status);
    let mut dated = response.is_interim();
    for (name, value) in response.headers.iter() {
        dated |= name.eq_ignore_ascii_case("date");
        let framing = name.eq_ignore_ascii_case("content-length");
        if !framing && !response.headers.is_hop_by_hop(name) {
            header(out, name, value);
        }
    }
    // RFC 9110, 8.6: neither 1xx nor 204 may say how long nothing is.
    let framed = !response.is_interim() && response.status != 204;
    if framed && !(minor == 0 && response.declared == Framing::Chunked) {
        write_framing(response.declared, out);
    }
    if !dated {
        line(out, &["Date: ", &httpd::date()]);
    }
    write_via(response.minor, out);
    if !response.is_interim() {
        match (keep, minor) {
            (false, _) => line(out, &["Connection: close"]),
            (true, 0) => line(out, &["Connection: keep-alive"]),
            (true, _) => {}
        }
    }
    out.extend_from_slice(b"\r\n");
}

fn header(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    for part in [name.as_bytes(), b": ", value, b"\r\n"] {
        out.extend_from_slice(part);
    }
}

fn line(out: &mut Vec<u8>, parts: &[&str]) {
    for part in parts {
        out.extend_from_slice(part.as_bytes());
    }
    out.extend_from_slice(b"\r\n");
}
