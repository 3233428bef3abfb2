//! The head of a request.

use httparse::{Header, Status};

use super::body::Framing;
use super::{date, target};
use crate::store::condition::{Conditions, Tags};

pub const HEAD_BYTES_MAX: usize = 16 << 10;
const HEADERS_MAX: usize = 64;
/// Longest request target: a key with every byte encoded, and a query.
const TARGET_BYTES_MAX: usize = 4 << 10;

/// Says who reads the body of the response next (docs/reference/daemons.md).
pub const READER_HEADER: &str = "Ntcopy-Reader";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    Get,
    Head,
    Put,
    Delete,
}

impl Method {
    pub fn name(self) -> &'static str {
        match self {
            Method::Get => "GET",
            Method::Head => "HEAD",
            Method::Put => "PUT",
            Method::Delete => "DELETE",
        }
    }
}

/// Who reads the body of a response next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reader {
    /// It isn't known.
    #[default]
    Unknown,
    /// No program here: the peer splices it on.
    Splice,
    /// The peer's CPU, right away.
    Cpu,
}

/// A request, as far as it matters here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    pub method: Method,
    /// The target's path, as it was sent.
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
    pub reader: Reader,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Parsed {
    /// The start of a head.
    Partial,
    /// A head, and its length in bytes.
    Whole(Box<Request>, usize),
}

/// A request that is answered with an error. If it came from [`parse`], where it ends is not
/// known, and the connection with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    pub status: u16,
    /// What was wrong, for people.
    pub why: &'static str,
}

fn refuse<T>(status: u16, why: &'static str) -> Result<T, Refusal> {
    Err(Refusal { status, why })
}

/// Reads the head at the start of `input`.
pub fn parse(input: &[u8]) -> Result<Parsed, Refusal> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut head = httparse::Request::new(&mut headers);
    let head_bytes = match head.parse(input) {
        Ok(Status::Complete(bytes)) if bytes <= HEAD_BYTES_MAX => bytes,
        Ok(Status::Partial) if input.len() <= HEAD_BYTES_MAX => return Ok(Parsed::Partial),
        Ok(_) => return refuse(431, "the head is longer than 16 KiB"),
        Err(httparse::Error::TooManyHeaders) => return refuse(431, "more than 64 header lines"),
        Err(httparse::Error::Version) => return refuse(505, "only HTTP/1.1 and 1.0 are spoken"),
        Err(_) => return refuse(400, "the head is not HTTP/1.1"),
    };
    if has_bare_line_feed(&input[..head_bytes]) {
        return refuse(400, "a line of the head ends without a carriage return");
    }
    let (Some(method), Some(target), Some(version)) = (head.method, head.path, head.version) else {
        return refuse(400, "the request line is not whole");
    };
    if target.len() > TARGET_BYTES_MAX {
        return refuse(414, "the target is longer than 4 KiB");
    }
    let fields = Fields { headers: head.headers };
    let http_11 = version == 1;
    fields.check_host(http_11)?;
    let framing = fields.framing(http_11)?;
    let method = match method {
        "GET" => Method::Get,
        "HEAD" => Method::Head,
        "PUT" => Method::Put,
        "DELETE" => Method::Delete,
        "POST" | "PATCH" | "OPTIONS" | "TRACE" | "CONNECT" => {
            return refuse(405, "only GET, HEAD, PUT and DELETE");
        }
        _ => return refuse(501, "no such method here"),
    };
    let Some(framing) = framing.or((method != Method::Put).then_some(Framing::Length(0))) else {
        return refuse(411, "a PUT needs Content-Length or Transfer-Encoding: chunked");
    };
    let Some((path, query)) = target::split(target) else {
        return refuse(400, "the target is neither a path nor an http URL (RFC 9112, 3.2)");
    };
    let reads = matches!(method, Method::Get | Method::Head);
    fields.check_meaning(reads)?;
    let request = Request {
        method,
        path: path.to_owned(),
        query: query.map(str::to_owned),
        framing,
        keep_alive: http_11 && !fields.has_token("connection", "close")?,
        expects_continue: fields.expects_continue(http_11)?,
        conditions: Conditions {
            if_match: fields.tags("if-match")?,
            if_none_match: fields.tags("if-none-match")?,
            if_unmodified_since: fields.date("if-unmodified-since")?,
            if_modified_since: fields.date("if-modified-since")?.filter(|_| reads),
        },
        range: fields.list("range")?,
        if_range: fields.list("if-range")?,
        content_type: fields.content_type(method)?,
        reader: fields.reader()?,
    };
    Ok(Parsed::Whole(Box::new(request), head_bytes))
}

/// httparse takes a line feed alone for a line's end (RFC 9112, 2.2, allows it); another program
/// on the way may not.
fn has_bare_line_feed(head: &[u8]) -> bool {
    head.iter().enumerate().any(|(at, byte)| *byte == b'\n' && (at == 0 || head[at - 1] != b'\r'))
}

struct Fields<'a, 'b> {
    headers: &'a [Header<'b>],
}

impl Fields<'_, '_> {
    fn values(&self, name: &str) -> impl Iterator<Item = &[u8]> {
        self.headers.iter().filter(move |h| h.name.eq_ignore_ascii_case(name)).map(|h| h.value)
    }

    /// The lines of this name as one list.
    fn list(&self, name: &str) -> Result<Option<String>, Refusal> {
        let mut list: Option<String> = None;
        for value in self.values(name) {
            let Ok(value) = std::str::from_utf8(value) else {
                return refuse(400, "a header that matters here is not UTF-8");
            };
            match &mut list {
                None => list = Some(value.to_owned()),
                Some(list) => {
                    list.push_str(", ");
                    list.push_str(value);
                }
            }
        }
        Ok(list)
    }

    fn has_token(&self, name: &str, token: &str) -> Result<bool, Refusal> {
        let list = self.list(name)?.unwrap_or_default();
        Ok(list.split(',').any(|one| one.trim().eq_ignore_ascii_case(token)))
    }

    fn check_host(&self, http_11: bool) -> Result<(), Refusal> {
        let mut hosts = self.values("host");
        match (hosts.next(), hosts.next()) {
            (Some(host), None) if str::from_utf8(host).is_ok_and(target::is_host) => Ok(()),
            (Some(_), None) => refuse(400, "the Host header is no host with a port"),
            (None, None) if !http_11 => Ok(()),
            _ => refuse(400, "a request has one Host header"),
        }
    }

    /// `None`: nothing is said about a body. Whatever another program on the way could read
    /// differently is refused.
    fn framing(&self, http_11: bool) -> Result<Option<Framing>, Refusal> {
        let coding = self.list("transfer-encoding")?;
        let mut lengths = self.values("content-length");
        let (length, again) = (lengths.next(), lengths.next());
        match (coding, length, again) {
            (Some(_), Some(_), _) => refuse(400, "both Transfer-Encoding and Content-Length"),
            (Some(_), ..) if !http_11 => refuse(400, "Transfer-Encoding is not HTTP/1.0"),
            (Some(coding), ..) if coding.trim().eq_ignore_ascii_case("chunked") => {
                Ok(Some(Framing::chunked()))
            }
            (Some(_), ..) => refuse(501, "the only transfer coding here is chunked"),
            (None, Some(_), Some(_)) => refuse(400, "more than one Content-Length"),
            (None, Some(digits), None) => {
                let all = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
                let text = std::str::from_utf8(digits).unwrap_or_default();
                match (all, text.parse()) {
                    (true, Ok(length)) => Ok(Some(Framing::Length(length))),
                    _ => refuse(400, "Content-Length is not a number"),
                }
            }
            (None, None, _) => Ok(None),
        }
    }

    fn expects_continue(&self, http_11: bool) -> Result<bool, Refusal> {
        match self.list("expect")? {
            None => Ok(false),
            Some(value) if value.trim().eq_ignore_ascii_case("100-continue") => Ok(http_11),
            Some(_) => refuse(417, "the only expectation met here is 100-continue"),
        }
    }

    /// Refuses what would make another request of this one; docs/reference/daemons.md has the list.
    fn check_meaning(&self, reads: bool) -> Result<(), Refusal> {
        let has = |name| self.values(name).next().is_some();
        if has("content-range") {
            return refuse(400, "a part of an object can't be stored: there is a Content-Range");
        }
        if has("range") && !reads {
            return refuse(400, "only a GET has a Range");
        }
        let coding = self.list("content-encoding")?.unwrap_or_default();
        if !matches!(&*coding.trim().to_ascii_lowercase(), "" | "identity") {
            return refuse(415, "an object is stored without Content-Encoding");
        }
        Ok(())
    }

    /// A date that is none, or several, says nothing (RFC 9110, 13.1.3 and 13.1.4).
    fn date(&self, name: &str) -> Result<Option<i64>, Refusal> {
        Ok(self.list(name)?.and_then(|value| date::parse(value.trim())))
    }

    fn tags(&self, name: &str) -> Result<Option<Tags>, Refusal> {
        match self.list(name)?.map(|value| Tags::parse(&value)) {
            None => Ok(None),
            Some(Some(tags)) => Ok(Some(tags)),
            Some(None) => refuse(400, "a condition is not a list of entity tags"),
        }
    }

    fn content_type(&self, method: Method) -> Result<String, Refusal> {
        if method != Method::Put {
            return Ok(String::new());
        }
        let kind = self.list("content-type")?.unwrap_or_default();
        let essence = kind.split(';').next().unwrap_or_default().trim();
        if essence.eq_ignore_ascii_case("multipart/byteranges") {
            return refuse(
                400,
                "parts of an object can't be stored: they are multipart/byteranges",
            );
        }
        // Visible ASCII: it is sent back as it is.
        if !kind.bytes().all(|byte| (0x20..0x7f).contains(&byte)) {
            return refuse(400, "the Content-Type is not ASCII");
        }
        if kind.len() > crate::store::format::TYPE_BYTES_MAX {
            return refuse(400, "the Content-Type is longer than 255 bytes");
        }
        Ok(kind.trim().to_owned())
    }

    fn reader(&self) -> Result<Reader, Refusal> {
        let value = self.list(READER_HEADER)?.unwrap_or_default();
        Ok(match value.trim() {
            "splice" => Reader::Splice,
            "cpu" => Reader::Cpu,
            _ => Reader::Unknown,
        })
    }
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
