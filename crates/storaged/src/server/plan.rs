//! What to answer for an object that is there.

use std::ops::Range;
use std::time::SystemTime;

use crate::http::{Method, Part, Request, date, part};
use crate::store::condition::{Current, Verdict, etag};
use crate::store::format::Meta;

/// An answer, before anything of the object was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// 200, 206, 304, 412 or 416.
    pub status: u16,
    pub etag: String,
    /// What of it to send; empty with a status that has no body.
    pub range: Range<u64>,
}

/// Conditions first, in the order of RFC 9110, then the range.
pub fn plan(request: &Request, meta: &Meta) -> Plan {
    let tag = etag(&meta.digest);
    let (status, range) = match request.conditions.judge(&Current::from(meta)) {
        Verdict::Fail => (412, 0..0),
        Verdict::Known => (304, 0..0),
        Verdict::Hold => {
            let gets = request.method == Method::Get;
            let wanted = request.range.as_deref().filter(|_| gets && is_same(request, meta, &tag));
            match part(wanted, meta.bytes) {
                Part::Whole => (200, 0..meta.bytes),
                Part::Of(range) => (206, range),
                Part::Unsatisfiable => (416, 0..0),
            }
        }
    };
    Plan { status, etag: tag, range }
}

/// `If-Range`: whether the client has a part of this version.
fn is_same(request: &Request, meta: &Meta, tag: &str) -> bool {
    let Some(wanted) = &request.if_range else { return true };
    if wanted.starts_with('"') || wanted.starts_with("W/") {
        return wanted == tag;
    }
    // Two versions may have one second: while it lasts, the date is no strong validator.
    let stored_at = meta.stored_at().as_secs();
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    date::parse(wanted) == Some(stored_at as i64) && now.as_secs() > stored_at
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::{Parsed, parse};

    const DIGEST: [u8; 32] = [0xab; 32];
    const EARLIER: &str = "Sun, 06 Nov 1994 08:49:36 GMT";
    const STORED: &str = "Sunday, 06-Nov-94 08:49:37 GMT";
    const LATER: &str = "Sun Nov  6 08:49:38 1994";

    fn planned(headers: &str) -> Plan {
        let text = format!("GET /a HTTP/1.1\r\nHost: h\r\n{headers}\r\n");
        let Ok(Parsed::Whole(request, _)) = parse(text.as_bytes()) else { panic!("{text:?}") };
        let meta = Meta {
            key: "a".to_owned(),
            content_type: String::new(),
            bytes: 100,
            stored_at_ns: 784_111_777_500_000_000,
            digest: DIGEST,
        };
        plan(&request, &meta)
    }

    #[test]
    fn headers_and_what_is_answered() {
        let tag = etag(&DIGEST);
        for (headers, status, range) in [
            (String::new(), 200, 0..100),
            (format!("If-Match: {tag}\r\n"), 200, 0..100),
            ("If-Match: \"x\"\r\n".to_owned(), 412, 0..0),
            (format!("If-Match: W/{tag}\r\n"), 412, 0..0),
            (format!("If-None-Match: W/{tag}\r\n"), 304, 0..0),
            ("If-None-Match: \"x\"\r\n".to_owned(), 200, 0..100),
            ("If-None-Match: *\r\n".to_owned(), 304, 0..0),
            (format!("If-Match: \"x\"\r\nIf-None-Match: {tag}\r\n"), 412, 0..0),
            ("Range: bytes=5-9\r\n".to_owned(), 206, 5..10),
            ("Range: bytes=100-\r\n".to_owned(), 416, 0..0),
            ("Range: bytes=0-1,3-4\r\n".to_owned(), 200, 0..100),
            (format!("Range: bytes=5-9\r\nIf-Range: {tag}\r\n"), 206, 5..10),
            (format!("Range: bytes=5-9\r\nIf-Range: W/{tag}\r\n"), 200, 0..100),
            ("Range: bytes=5-9\r\nIf-Range: \"x\"\r\n".to_owned(), 200, 0..100),
            (format!("Range: bytes=5-9\r\nIf-Range: {EARLIER}\r\n"), 200, 0..100),
            (format!("Range: bytes=5-9\r\nIf-Range: {STORED}\r\n"), 206, 5..10),
            (format!("Range: bytes=5-9\r\nIf-Range: {LATER}\r\n"), 200, 0..100),
            ("Range: bytes=5-9\r\nIf-Range: yesterday\r\n".to_owned(), 200, 0..100),
            (format!("If-Range: {EARLIER}\r\n"), 200, 0..100),
            (format!("If-Modified-Since: {EARLIER}\r\n"), 200, 0..100),
            (format!("If-Modified-Since: {STORED}\r\n"), 304, 0..0),
            (format!("If-Modified-Since: {STORED}\r\nIf-None-Match: \"x\"\r\n"), 200, 0..100),
            ("If-Modified-Since: yesterday\r\n".to_owned(), 200, 0..100),
            (format!("If-Modified-Since: {STORED}, {STORED}\r\n"), 200, 0..100),
            (format!("If-Unmodified-Since: {EARLIER}\r\n"), 412, 0..0),
            (format!("If-Unmodified-Since: {STORED}\r\n"), 200, 0..100),
            (format!("If-Unmodified-Since: {EARLIER}\r\nIf-Match: {tag}\r\n"), 200, 0..100),
            (format!("Range: bytes=5-9\r\nIf-None-Match: {tag}\r\n"), 304, 0..0),
        ] {
            let plan = planned(&headers);
            assert_eq!((plan.status, plan.range), (status, range), "{headers:?}");
        }
    }
}
