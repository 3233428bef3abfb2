//! HTTP/1.1, as far as an object store speaks it. What names are is in `key`, conditions are in
//! `condition`.

pub mod body;
pub(crate) mod date;
pub mod request;
pub mod response;
mod target;

use std::ops::Range;

pub use self::body::{BadChunk, Framing, Piece};
pub use self::request::{HEAD_BYTES_MAX, Method, Parsed, Reader, Refusal, Request, parse};
pub use self::response::{Clock, Head, error_body, reason};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
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
pub fn part(header: Option<&str>, bytes: u64) -> Part {
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
