//! Between HTTP/3's fields and HTTP/1.1's lines.

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use crate::http::{Framing, Refusal, Response};

/// A request as the lines that a client of HTTP/1.1 would have sent, so that it goes through the
/// same parser, and is refused for the same reasons. `chunked` says that a body without a length
/// follows.
///
/// # Errors
///
/// It has fields that HTTP/3 forbids (RFC 9114, 4.2), or no host.
pub(super) fn as_lines(request: &http::Request<()>, chunked: bool) -> Result<Vec<u8>, Refusal> {
    let refuse = |reason| Refusal { status: 400, reason };
    let uri = request.uri();
    let path = match uri.path_and_query().map(http::uri::PathAndQuery::as_str) {
        None | Some("") => "/",
        Some(path) => path,
    };
    let host = request.headers().get(http::header::HOST);
    let host = match (uri.authority(), host) {
        (Some(authority), Some(host)) if host.as_bytes() != authority.as_str().as_bytes() => {
            return Err(refuse("two hosts"));
        }
        (Some(authority), _) => authority.as_str().as_bytes(),
        (None, Some(host)) => host.as_bytes(),
        (None, None) => return Err(refuse("no host")),
    };
    let mut lines = Vec::with_capacity(512);
    let mut line = |parts: &[&[u8]]| {
        parts.iter().for_each(|part| lines.extend_from_slice(part));
        lines.extend_from_slice(b"\r\n");
    };
    line(&[request.method().as_str().as_bytes(), b" ", path.as_bytes(), b" HTTP/1.1"]);
    line(&[b"Host: ", host]);
    let cookies: Vec<&[u8]> =
        request.headers().get_all(http::header::COOKIE).iter().map(HeaderValue::as_bytes).collect();
    if !cookies.is_empty() {
        // RFC 9114, 4.2.1: a cookie may come in crumbs, and goes on as one line.
        line(&[b"Cookie: ", &cookies.join(&b"; "[..])]);
    }
    for (name, value) in request.headers() {
        match name.as_str() {
            "connection" | "keep-alive" | "proxy-connection" | "transfer-encoding" | "upgrade" => {
                return Err(refuse("a field that HTTP/3 does not have"));
            }
            "host" | "cookie" | "te" => {}
            name => line(&[name.as_bytes(), b": ", value.as_bytes()]),
        }
    }
    if chunked {
        line(&[b"Transfer-Encoding: chunked"]);
    }
    line(&[]);
    Ok(lines)
}

/// A backend's response as HTTP/3 has it, without what concerns the backend's connection; `None`
/// if a line of it can't be a field.
pub(super) fn as_fields(response: &Response<'_>) -> Option<http::Response<()>> {
    let mut fields = http::Response::new(());
    *fields.status_mut() = StatusCode::from_u16(response.status).ok()?;
    let map: &mut HeaderMap = fields.headers_mut();
    for (name, value) in response.headers.iter() {
        let framing = name.eq_ignore_ascii_case("content-length");
        if !framing && !response.headers.is_hop_by_hop(name) {
            let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
            map.append(name, HeaderValue::from_bytes(value).ok()?);
        }
    }
    if let (Framing::Length(length), true) = (response.declared, response.status != 204) {
        map.insert(http::header::CONTENT_LENGTH, HeaderValue::from(length));
    }
    map.append(http::header::VIA, HeaderValue::from_static("1.1 proxyd"));
    Some(fields)
}

/// The head of the proxy's own answer; `allow` is for a 405.
pub(super) fn own(status: u16, allow: &str) -> http::Response<()> {
    let mut fields = http::Response::new(());
    *fields.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY);
    let text = HeaderValue::from_static("text/plain");
    fields.headers_mut().insert(http::header::CONTENT_TYPE, text);
    if let (405, Ok(allow)) = (status, HeaderValue::from_str(allow)) {
        fields.headers_mut().insert(http::header::ALLOW, allow);
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::{Limits, Method, parse_request, parse_response};

    fn request(
        build: impl FnOnce(http::request::Builder) -> http::request::Builder,
    ) -> http::Request<()> {
        build(http::Request::builder().uri("https://h:8443/p?q")).body(()).unwrap()
    }

    #[test]
    fn fields_become_lines_that_the_parser_takes() {
        let request =
            request(|r| r.header("cookie", "a=1").header("cookie", "b=2").header("x", "y"));
        let lines = as_lines(&request, true).unwrap();
        assert_eq!(
            String::from_utf8(lines.clone()).unwrap(),
            "GET /p?q HTTP/1.1\r\nHost: h:8443\r\nCookie: a=1; b=2\r\nx: y\r\n\
             Transfer-Encoding: chunked\r\n\r\n"
        );
        let parsed = parse_request(&lines, &Limits::default()).unwrap();
        assert_eq!((parsed.method, parsed.framing), ("GET", Framing::Chunked));
    }

    #[test]
    fn forbidden_fields_and_two_hosts_are_refused() {
        for name in ["connection", "transfer-encoding", "upgrade", "keep-alive"] {
            assert!(as_lines(&request(|r| r.header(name, "x")), false).is_err(), "{name}");
        }
        assert!(as_lines(&request(|r| r.header("host", "other")), false).is_err());
        assert!(as_lines(&request(|r| r.header("host", "h:8443")), false).is_ok());
    }

    #[test]
    fn a_response_loses_what_concerns_the_connection() {
        let head =
            "HTTP/1.1 200 OK\r\nConnection: X-A\r\nX-A: 1\r\nX-B: 2\r\nContent-Length: 5\r\n\r\n";
        let parsed = parse_response(head.as_bytes(), Method::Safe, &Limits::default()).unwrap();
        let fields = as_fields(&parsed).unwrap();
        let names: Vec<_> = fields.headers().keys().map(HeaderName::as_str).collect();
        assert_eq!(names.len(), 3, "{names:?}");
        assert_eq!(fields.headers()["content-length"], "5");
        assert_eq!(fields.headers()["via"], "1.1 proxyd");
    }
}
