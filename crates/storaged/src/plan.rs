//! What to answer for an object that is there.

use std::ops::Range;

use httpd::{digits, now};

use crate::condition::Verdict;
use crate::request::{Method, Request, date};
use crate::store::Meta;

/// The status, 200, 206, 304, 412 or 416, and what of the object to send: nothing with a status that
/// has no body. Conditions go first, in the order of RFC 9110, then the range.
pub fn plan(request: &Request, meta: &Meta) -> (u16, Range<u64>) {
    match request.conditions.judge(Some(&meta.current())) {
        Verdict::Fail => (412, 0..0),
        Verdict::Known => (304, 0..0),
        Verdict::Hold => {
            let gets = request.method == Method::Get;
            let wanted = request.range.as_deref().filter(|_| gets && is_same(request, meta));
            part(wanted, meta.bytes)
        }
    }
}

/// `If-Range`: whether the client has a part of this version.
fn is_same(request: &Request, meta: &Meta) -> bool {
    let Some(wanted) = &request.if_range else { return true };
    if wanted.starts_with('"') || wanted.starts_with("W/") {
        return *wanted == meta.etag();
    }
    // Two versions may have one second: while it lasts, the date is no strong validator.
    let stored_at = meta.stored_at().as_secs();
    date(wanted) == Some(stored_at) && now().as_secs() > stored_at
}

/// Which part of `bytes` a `Range` header asks for: 206, or 416 where it lies behind the end.
///
/// What is not understood gets the whole. Several ranges do so, too, which RFC 9110 allows: a
/// multipart answer would have to be taken apart by whoever reads it, and is not what the splicing
/// of bodies is for.
fn part(header: Option<&str>, bytes: u64) -> (u16, Range<u64>) {
    let (whole, beyond) = ((200, 0..bytes), (416, 0..0));
    let Some(spec) = header.and_then(|value| value.trim().strip_prefix("bytes=")) else {
        return whole;
    };
    let Some((first, last)) = spec.trim().split_once('-') else { return whole };
    let (first, last) = (first.trim(), last.trim());
    match (digits(first.as_bytes()), digits(last.as_bytes())) {
        (Some(first), Some(last)) if last < first => whole,
        (Some(first), Some(last)) if first < bytes => {
            (206, first..last.saturating_add(1).min(bytes))
        }
        (Some(first), None) if last.is_empty() && first < bytes => (206, first..bytes),
        (Some(_), Some(_)) => beyond,
        (Some(_), None) if last.is_empty() => beyond,
        (None, Some(suffix)) if first.is_empty() => match suffix.min(bytes) {
            0 => beyond,
            suffix => (206, bytes - suffix..bytes),
        },
        _ => whole,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::parse;

    const DIGEST: [u8; 32] = [0xab; 32];
    const EARLIER: &str = "Sun, 06 Nov 1994 08:49:36 GMT";
    const STORED: &str = "Sunday, 06-Nov-94 08:49:37 GMT";
    const LATER: &str = "Sun Nov  6 08:49:38 1994";

    fn meta() -> Meta {
        let (stored_at_ns, content_type) = (784_111_777_500_000_000, String::new());
        Meta { id: 1, bytes: 100, stored_at_ns, content_type, digest: DIGEST }
    }

    fn planned(headers: &str) -> (u16, Range<u64>) {
        let text = format!("GET /a HTTP/1.1\r\nHost: h\r\n{headers}\r\n");
        plan(&parse(text.as_bytes()).unwrap(), &meta())
    }

    #[test]
    fn headers_and_what_is_answered() {
        let tag = meta().etag();
        for (headers, status, range) in [
            (String::new(), 200, 0..100),
            ("If-Match: \"x\"\r\n".to_owned(), 412, 0..0),
            ("Range: bytes=5-9\r\n".to_owned(), 206, 5..10),
            ("Range: bytes=100-\r\n".to_owned(), 416, 0..0),
            (format!("Range: bytes=5-9\r\nIf-Range: {tag}\r\n"), 206, 5..10),
            (format!("Range: bytes=5-9\r\nIf-Range: W/{tag}\r\n"), 200, 0..100),
            (format!("Range: bytes=5-9\r\nIf-Range: {EARLIER}\r\n"), 200, 0..100),
            (format!("Range: bytes=5-9\r\nIf-Range: {STORED}\r\n"), 206, 5..10),
            (format!("Range: bytes=5-9\r\nIf-Range: {LATER}\r\n"), 200, 0..100),
            ("Range: bytes=5-9\r\nIf-Range: yesterday\r\n".to_owned(), 200, 0..100),
            (format!("If-Modified-Since: {STORED}, {STORED}\r\n"), 200, 0..100),
            (format!("Range: bytes=5-9\r\nIf-None-Match: {tag}\r\n"), 304, 0..0),
        ] {
            assert_eq!(planned(&headers), (status, range), "{headers:?}");
        }
    }

    #[test]
    fn ranges_of_ten_bytes() {
        for (header, expected) in [
            ("bytes=0-9", (206, 0..10)),
            ("bytes=0-0", (206, 0..1)),
            ("bytes=3-", (206, 3..10)),
            ("bytes=-3", (206, 7..10)),
            ("bytes=-30", (206, 0..10)),
            ("bytes=5-99999999999999999999999", (206, 5..10)),
            ("bytes=9-9", (206, 9..10)),
            (" bytes= 2 - 3 ", (206, 2..4)),
            ("bytes=10-", (416, 0..0)),
            ("bytes=10-20", (416, 0..0)),
            ("bytes=-0", (416, 0..0)),
            ("bytes=99999999999999999999999-", (416, 0..0)),
            ("bytes=3-2", (200, 0..10)),
            ("bytes=0-1,3-4", (200, 0..10)),
            ("bytes=-", (200, 0..10)),
            ("bytes=", (200, 0..10)),
            ("bytes=+1-2", (200, 0..10)),
            ("bytes=a-b", (200, 0..10)),
            ("bytes=--1", (200, 0..10)),
            ("items=0-1", (200, 0..10)),
        ] {
            assert_eq!(part(Some(header), 10), expected, "{header}");
        }
        assert_eq!(part(None, 10), (200, 0..10));
        assert_eq!(part(Some("bytes=0-"), 0), (416, 0..0));
        assert_eq!(part(Some("bytes=-1"), 0), (416, 0..0));
    }
}
