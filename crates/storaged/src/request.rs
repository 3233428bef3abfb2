//! What a request asks of an object store.

use std::time::SystemTime;

use httpd::{Framing, Headers, Refusal, is_spelled};

use crate::condition::{Conditions, Tags};

/// Longest content type that is kept, in bytes.
const TYPE_BYTES_MAX: usize = 255;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    Get,
    Head,
    Put,
    Delete,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Method and target, for the log.
    pub name: String,
    pub method: Method,
    pub path: String,
    pub query: Option<String>,
    pub framing: Framing,
    pub keep_alive: bool,
    /// The client waits for a 100 before it sends the body.
    pub expects_continue: bool,
    pub conditions: Conditions,
    pub range: Option<String>,
    pub if_range: Option<String>,
    /// `Content-Type`; empty if there is none.
    pub content_type: String,
    /// A proxy says that a CPU here reads the body of the response, and right away.
    pub cpu_reads: bool,
}

fn refuse<T>(status: u16, reason: &'static str) -> Result<T, Refusal> {
    Err(Refusal { status, reason })
}

/// Reads a whole head.
pub fn parse(head: &[u8]) -> Result<Request, Refusal> {
    let head = httpd::parse_request(head)?;
    let method = match head.method {
        "GET" => Method::Get,
        "HEAD" => Method::Head,
        "PUT" => Method::Put,
        "DELETE" => Method::Delete,
        "POST" | "PATCH" | "OPTIONS" | "TRACE" | "CONNECT" => {
            return refuse(405, "only GET, HEAD, PUT and DELETE");
        }
        _ => return refuse(501, "no such method here"),
    };
    match (method, head.framing) {
        (Method::Put, Framing::None) => {
            return refuse(411, "a PUT needs Content-Length or Transfer-Encoding: chunked");
        }
        (Method::Put, _) | (_, Framing::None | Framing::Length(0)) => {}
        _ => return refuse(400, "only a PUT has a body here"),
    }
    let (path, query) = (head.target.path, head.target.query);
    // Another program on the way may take something else for a delimiter.
    if !is_spelled(path.as_bytes(), b":@/") || !is_spelled(query.as_bytes(), b":@/?") {
        return refuse(400, "the target has a character that RFC 3986 does not allow there");
    }
    let reads = matches!(method, Method::Get | Method::Head);
    check_meaning(&head.headers, reads)?;
    let conditions = Conditions {
        if_match: tags(&head.headers, "if-match")?,
        if_none_match: tags(&head.headers, "if-none-match")?,
        if_unmodified_since: date_of(&head.headers, "if-unmodified-since")?,
        if_modified_since: date_of(&head.headers, "if-modified-since")?.filter(|_| reads),
    };
    let content_type =
        if method == Method::Put { content_type(&head.headers)? } else { String::new() };
    Ok(Request {
        name: head.name(),
        method,
        path: path.to_owned(),
        query: query.strip_prefix('?').map(str::to_owned),
        framing: head.framing,
        // HTTP/1.0 clients get one answer.
        keep_alive: head.keep_alive && head.minor > 0,
        expects_continue: head.expects_continue,
        conditions,
        range: list(&head.headers, "range")?,
        if_range: list(&head.headers, "if-range")?,
        content_type,
        cpu_reads: head.headers.all("ntcopy-reader").any(|reader| reader == b"cpu"),
    })
}

/// The lines of this name as one list.
fn list(headers: &Headers<'_>, name: &str) -> Result<Option<String>, Refusal> {
    let mut list: Option<String> = None;
    for value in headers.all(name) {
        let Ok(value) = str::from_utf8(value) else {
            return refuse(400, "a header that matters here is not UTF-8");
        };
        match &mut list {
            None => list = Some(value.trim().to_owned()),
            Some(list) => {
                list.push_str(", ");
                list.push_str(value);
            }
        }
    }
    Ok(list)
}

/// Refuses what would make another request of this one; docs/reference/daemons.md has the list.
fn check_meaning(headers: &Headers<'_>, reads: bool) -> Result<(), Refusal> {
    let has = |name| headers.all(name).next().is_some();
    if has("content-range") {
        return refuse(400, "a part of an object can't be stored: there is a Content-Range");
    }
    if has("range") && !reads {
        return refuse(400, "only a GET has a Range");
    }
    let coding = list(headers, "content-encoding")?.unwrap_or_default();
    if !matches!(&*coding.to_ascii_lowercase(), "" | "identity") {
        return refuse(415, "an object is stored without Content-Encoding");
    }
    Ok(())
}

/// Seconds since 1970 of an HTTP-date in one of its three forms (RFC 9110, 5.6.7).
pub fn date(text: &str) -> Option<u64> {
    let at = httpdate::parse_http_date(text).ok()?;
    at.duration_since(SystemTime::UNIX_EPOCH).ok().map(|since| since.as_secs())
}

/// A date that is none says nothing (RFC 9110, 13.1.3 and 13.1.4).
fn date_of(headers: &Headers<'_>, name: &str) -> Result<Option<u64>, Refusal> {
    Ok(list(headers, name)?.and_then(|value| date(&value)))
}

fn tags(headers: &Headers<'_>, name: &str) -> Result<Option<Tags>, Refusal> {
    match list(headers, name)?.map(|value| Tags::parse(&value)) {
        None => Ok(None),
        Some(Some(tags)) => Ok(Some(tags)),
        Some(None) => refuse(400, "a condition is not a list of entity tags"),
    }
}

fn content_type(headers: &Headers<'_>) -> Result<String, Refusal> {
    let kind = list(headers, "content-type")?.unwrap_or_default();
    let essence = kind.split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case("multipart/byteranges") {
        return refuse(400, "parts of an object can't be stored: they are multipart/byteranges");
    }
    // Visible ASCII: it is sent back as it is.
    if !kind.bytes().all(|byte| (0x20..0x7f).contains(&byte)) {
        return refuse(400, "the Content-Type is not ASCII");
    }
    if kind.len() > TYPE_BYTES_MAX {
        return refuse(400, "the Content-Type is longer than 255 bytes");
    }
    Ok(kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(text: &str) -> Request {
        parse(text.as_bytes()).unwrap_or_else(|refusal| panic!("{text:?}: {refusal:?}"))
    }

    fn status(text: &str) -> u16 {
        parse(text.as_bytes()).expect_err(text).status
    }

    #[test]
    fn a_request_with_everything() {
        let request = whole(
            "GET http://h:80/a/b?x=1&y HTTP/1.1\r\nHost: h\r\nRange: bytes=0-1\r\n\
             If-Range: \"t\"\r\nIf-Match: \"a\"\r\nIf-Match: \"b\"\r\nNtcopy-Reader: cpu\r\n\
             Connection: x, Close\r\n\r\n",
        );
        assert_eq!(request.method, Method::Get);
        assert_eq!((&*request.path, request.query.as_deref()), ("/a/b", Some("x=1&y")));
        assert_eq!(request.conditions.if_match, Tags::parse("\"a\", \"b\""));
        assert_eq!(request.range.as_deref(), Some("bytes=0-1"));
        assert_eq!(request.if_range.as_deref(), Some("\"t\""));
        assert!(request.cpu_reads && !request.keep_alive && !request.expects_continue);
        assert!(!whole("GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").keep_alive);
    }

    #[test]
    fn what_a_put_may_say() {
        let put = |headers: &str| format!("PUT /a HTTP/1.1\r\nHost: h\r\n{headers}\r\n");
        assert_eq!(whole(&put("Transfer-Encoding: Chunked\r\n")).framing, Framing::Chunked);
        for (headers, expected) in [
            ("", 411),
            ("Content-Length: 1\r\nContent-Encoding: gzip\r\n", 415),
            ("Content-Length: 1\r\nContent-Encoding: identity\r\nContent-Encoding: br\r\n", 415),
            ("Content-Length: 1\r\nIf-Match: x\r\n", 400),
            ("Content-Length: 1\r\nContent-Range: \r\n", 400),
            ("Content-Length: 1\r\nContent-Type: Multipart/ByteRanges; boundary=x\r\n", 400),
            ("Content-Length: 1\r\nRange: bytes=0-1\r\n", 400),
        ] {
            assert_eq!(status(&put(headers)), expected, "{headers:?}");
        }
    }

    #[test]
    fn what_is_not_spoken_here() {
        for (text, expected) in [
            ("POST /a HTTP/1.1\r\nHost: h\r\n\r\n", 405),
            ("BREW /a HTTP/1.1\r\nHost: h\r\n\r\n", 501),
            ("GET /a HTTP/2.0\r\nHost: h\r\n\r\n", 505),
            ("GET /a HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\n", 400),
            ("GET /a%2 HTTP/1.1\r\nHost: h\r\n\r\n", 400),
            ("GET /a?%zz HTTP/1.1\r\nHost: h\r\n\r\n", 400),
            ("GET /a\\b HTTP/1.1\r\nHost: h\r\n\r\n", 400),
            ("DELETE /a HTTP/1.1\r\nHost: h\r\nRange: bytes=0-1\r\n\r\n", 400),
        ] {
            assert_eq!(status(text), expected, "{text:?}");
        }
    }

    #[test]
    fn dates_count_where_the_rfc_says_so() {
        let dates = "If-Modified-Since: Thu, 01 Jan 1970 00:00:09 GMT\r\n\
                     If-Unmodified-Since: Thu, 01 Jan 1970 00:00:07 GMT\r\n";
        let of = |request: &str| {
            let conditions = whole(&format!("{request}\r\n")).conditions;
            (conditions.if_modified_since, conditions.if_unmodified_since)
        };
        let get = "GET /a HTTP/1.1\r\nHost: h\r\n";
        assert_eq!(of(&format!("{get}{dates}")), (Some(9), Some(7)));
        // RFC 9110, 13.1.3: elsewhere it means nothing, and neither does what is no date.
        let put = "PUT /a HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n";
        assert_eq!(of(&format!("{put}{dates}")), (None, Some(7)));
        assert_eq!(of(&format!("{get}If-Unmodified-Since: 7\r\n")), (None, None));
    }
}
