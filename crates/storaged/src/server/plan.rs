//! What to answer for an object that is there.

use std::ops::Range;

use crate::http::{Method, Part, Request, part};
use crate::store::condition::etag;
use crate::store::format::{Coding, Meta};

/// An answer, before anything of the object was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// 200, 206, 304, 412 or 416.
    pub status: u16,
    /// Strong tag of the form that is sent.
    pub etag: String,
    /// Bytes of that form.
    pub total_bytes: u64,
    /// What of it to send; empty with a status that has no body.
    pub range: Range<u64>,
    /// It is sent compressed, as it is stored.
    pub packed: bool,
    /// It must be decoded first.
    pub decode: bool,
}

impl Plan {
    /// The stored bytes that the body is made of.
    pub fn stored(&self, meta: &Meta) -> Range<u64> {
        if self.decode { 0..meta.stored_bytes } else { self.range.clone() }
    }
}

/// Conditions first, in the order of RFC 9110, then the range.
pub fn plan(request: &Request, meta: &Meta) -> Plan {
    let zstd = meta.coding == Coding::Zstd;
    let packed = zstd && request.accepts_zstd;
    let total_bytes = if packed { meta.stored_bytes } else { meta.content_bytes };
    let tag = etag(&meta.digest, packed);
    let conditions = &request.conditions;
    let (status, range) = if conditions.if_match.as_ref().is_some_and(|t| !t.match_strongly(&tag)) {
        (412, 0..0)
    } else if conditions.if_none_match.as_ref().is_some_and(|tags| tags.match_weakly(&tag)) {
        (304, 0..0)
    } else {
        // A date is too coarse to tell two versions of one second apart, so only a tag will do.
        let same = request.if_range.as_ref().is_none_or(|wanted| *wanted == tag);
        let wanted = request.range.as_deref().filter(|_| same && request.method == Method::Get);
        match part(wanted, total_bytes) {
            Part::Whole => (200, 0..total_bytes),
            Part::Of(range) => (206, range),
            Part::Unsatisfiable => (416, 0..0),
        }
    };
    let body = request.method == Method::Get && !range.is_empty();
    Plan { status, etag: tag, total_bytes, range, packed, decode: body && zstd && !packed }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::{Parsed, parse};

    const DIGEST: [u8; 32] = [0xab; 32];

    fn planned(headers: &str, coding: Coding) -> Plan {
        let text = format!("GET /a HTTP/1.1\r\nHost: h\r\n{headers}\r\n");
        let Ok(Parsed::Whole(request, _)) = parse(text.as_bytes()) else { panic!("{text:?}") };
        let meta = Meta {
            key: "a".to_owned(),
            content_type: String::new(),
            coding,
            stored_bytes: if coding == Coding::Zstd { 30 } else { 100 },
            content_bytes: 100,
            stored_at_ns: 0,
            digest: DIGEST,
        };
        plan(&request, &meta)
    }

    #[test]
    fn headers_and_what_is_answered() {
        let tag = etag(&DIGEST, false);
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
            let plan = planned(&headers, Coding::Identity);
            assert_eq!((plan.status, plan.range), (status, range), "{headers:?}");
            assert!(!plan.packed && !plan.decode);
        }
    }

    #[test]
    fn two_forms_of_one_content_are_never_mixed() {
        let decoded = planned("", Coding::Zstd);
        assert!(decoded.decode && !decoded.packed);
        assert_eq!((decoded.total_bytes, decoded.range), (100, 0..100));
        let packed = planned("Accept-Encoding: zstd\r\n", Coding::Zstd);
        assert!(packed.packed && !packed.decode);
        assert_eq!((packed.total_bytes, packed.range), (30, 0..30));
        assert_ne!(decoded.etag, packed.etag);
        // The tag of one form does not continue the other.
        let headers = format!("Range: bytes=5-9\r\nIf-Range: {}\r\n", packed.etag);
        assert_eq!(planned(&headers, Coding::Zstd).status, 200);
    }
}
