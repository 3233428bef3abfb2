//! What to answer for an object that is there.

use std::ops::Range;
use std::time::SystemTime;

use crate::condition::Verdict;
use crate::request::{Method, Request, date};
use crate::store::Meta;

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
    let tag = meta.etag();
    let (status, range) = match request.conditions.judge(&meta.current()) {
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
    date(wanted) == Some(stored_at) && now.as_secs() > stored_at
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    /// All of it: there was no range, or none that is understood, or several.
    Whole,
    Of(Range<u64>),
    /// The range lies behind its end.
    Unsatisfiable,
}

/// Which part of `bytes` a `Range` header asks for.
///
/// Several ranges get the whole, which RFC 9110 allows: a multipart answer would have to be
/// taken apart by whoever reads it, and is not what the splicing of bodies is for.
fn part(header: Option<&str>, bytes: u64) -> Part {
    let Some(spec) = header.and_then(|value| value.trim().strip_prefix("bytes=")) else {
        return Part::Whole;
    };
    let Some((first, last)) = spec.trim().split_once('-') else { return Part::Whole };
    let (first, last) = (first.trim(), last.trim());
    match (number(first), number(last)) {
        (Some(first), Some(last)) if last < first => Part::Whole,
        (Some(first), Some(last)) if first < bytes => {
            Part::Of(first..last.saturating_add(1).min(bytes))
        }
        (Some(first), None) if last.is_empty() && first < bytes => Part::Of(first..bytes),
        (Some(_), Some(_)) => Part::Unsatisfiable,
        (Some(_), None) if last.is_empty() => Part::Unsatisfiable,
        (None, Some(suffix)) if first.is_empty() => match suffix.min(bytes) {
            0 => Part::Unsatisfiable,
            suffix => Part::Of(bytes - suffix..bytes),
        },
        _ => Part::Whole,
    }
}

/// Digits, and only digits; more than 64 bits is as far as one can count.
fn number(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().unwrap_or(u64::MAX))
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

    fn planned(headers: &str) -> Plan {
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
            let plan = planned(&headers);
            assert_eq!((plan.status, plan.range), (status, range), "{headers:?}");
        }
    }

    #[test]
    fn ranges_of_ten_bytes() {
        for (header, expected) in [
            ("bytes=0-9", Part::Of(0..10)),
            ("bytes=0-0", Part::Of(0..1)),
            ("bytes=3-", Part::Of(3..10)),
            ("bytes=-3", Part::Of(7..10)),
            ("bytes=-30", Part::Of(0..10)),
            ("bytes=5-99999999999999999999999", Part::Of(5..10)),
            ("bytes=9-9", Part::Of(9..10)),
            (" bytes= 2 - 3 ", Part::Of(2..4)),
            ("bytes=10-", Part::Unsatisfiable),
            ("bytes=10-20", Part::Unsatisfiable),
            ("bytes=-0", Part::Unsatisfiable),
            ("bytes=99999999999999999999999-", Part::Unsatisfiable),
            ("bytes=3-2", Part::Whole),
            ("bytes=0-1,3-4", Part::Whole),
            ("bytes=-", Part::Whole),
            ("bytes=", Part::Whole),
            ("bytes=+1-2", Part::Whole),
            ("bytes=a-b", Part::Whole),
            ("bytes=--1", Part::Whole),
            ("items=0-1", Part::Whole),
        ] {
            assert_eq!(part(Some(header), 10), expected, "{header}");
        }
        assert_eq!(part(None, 10), Part::Whole);
        assert_eq!(part(Some("bytes=0-"), 0), Part::Unsatisfiable);
        assert_eq!(part(Some("bytes=-1"), 0), Part::Unsatisfiable);
    }
}
