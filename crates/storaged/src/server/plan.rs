//! What to answer for an object that is there.

use std::ops::Range;

use crate::http::{Method, Part, Request, part};
use crate::store::condition::etag;
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
    let conditions = &request.conditions;
    let (status, range) = if conditions.if_match.as_ref().is_some_and(|t| !t.match_strongly(&tag)) {
        (412, 0..0)
    } else if conditions.if_none_match.as_ref().is_some_and(|tags| tags.match_weakly(&tag)) {
        (304, 0..0)
    } else {
        // A date is too coarse to tell two versions of one second apart, so only a tag will do.
        let same = request.if_range.as_ref().is_none_or(|wanted| *wanted == tag);
        let wanted = request.range.as_deref().filter(|_| same && request.method == Method::Get);
        match part(wanted, meta.bytes) {
            Part::Whole => (200, 0..meta.bytes),
            Part::Of(range) => (206, range),
            Part::Unsatisfiable => (416, 0..0),
        }
    };
    Plan { status, etag: tag, range }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::{Parsed, parse};

    const DIGEST: [u8; 32] = [0xab; 32];

    fn planned(headers: &str) -> Plan {
        let text = format!("GET /a HTTP/1.1\r\nHost: h\r\n{headers}\r\n");
        let Ok(Parsed::Whole(request, _)) = parse(text.as_bytes()) else { panic!("{text:?}") };
        let meta = Meta {
            key: "a".to_owned(),
            content_type: String::new(),
            bytes: 100,
            stored_at_ns: 0,
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
            (
                "Range: bytes=5-9\r\nIf-Range: Sat, 21 Nov 2026 10:00:00 GMT\r\n".to_owned(),
                200,
                0..100,
            ),
            (format!("Range: bytes=5-9\r\nIf-None-Match: {tag}\r\n"), 304, 0..0),
        ] {
            let plan = planned(&headers);
            assert_eq!((plan.status, plan.range), (status, range), "{headers:?}");
        }
    }
}
