//! Which paths are passed on.

use httpd::Refusal;
use percent_encoding::percent_decode;

/// How often an encoding may be encoded again before a path is refused for it.
const ENCODED_MAX: usize = 3;

/// Whether a path, without its query, has one of these prefixes however often a backend decodes it,
/// and no reading of it leaves that prefix. No prefixes stand for all paths.
pub fn admit(prefixes: &[String], path: &str) -> Result<(), Refusal> {
    if prefixes.is_empty() || path == "*" {
        return Ok(());
    }
    let mut form = path.as_bytes().to_vec();
    for _ in 0..=ENCODED_MAX {
        if may_leave(&form) || !prefixes.iter().any(|one| is_below(&form, one.as_bytes())) {
            return Err(Refusal { status: 403, reason: "this path is not passed on here" });
        }
        let decoded: Vec<u8> = percent_decode(&form).collect();
        if decoded == form {
            return Ok(());
        }
        form = decoded;
    }
    Err(Refusal { status: 400, reason: "a path that is encoded several times over" })
}

/// What `--path` says. Another spelling would have no path below it that is [admitted](admit).
pub fn prefix(text: &str) -> Result<String, String> {
    let spelled = text.bytes().all(|byte| byte.is_ascii_graphic() && !b"%?#".contains(&byte));
    let prefix = [text.to_owned()];
    if spelled && text.starts_with('/') && admit(&prefix, text).is_ok() {
        return Ok(text.to_owned());
    }
    Err("write it as it comes in requests, with a slash in front, as /pub; without percent signs, \
         .., ? and #"
        .to_owned())
}

/// A prefix is of whole segments.
fn is_below(path: &[u8], prefix: &[u8]) -> bool {
    let rest = path.strip_prefix(prefix);
    rest.is_some_and(|rest| rest.is_empty() || rest[0] == b'/' || prefix.ends_with(b"/"))
}

/// Whether a backend may take a segment for the folder above. To some a backslash divides segments,
/// a semicolon ends one, and `?` and `#` that were decoded end the path; some drop control
/// characters, or end there.
fn may_leave(path: &[u8]) -> bool {
    path.iter().any(u8::is_ascii_control)
        || path
            .split(|byte| b"/\\".contains(byte))
            .any(|segment| segment.split(|byte| b";?#".contains(byte)).next() == Some(&b".."[..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(prefix: &str, path: &str) -> u16 {
        admit(&[prefix.to_owned()], path).map_or_else(|refusal| refusal.status, |()| 200)
    }

    #[test]
    fn what_is_elsewhere_is_not_to_be_had_by_another_spelling() {
        for path in [
            "/",
            "/a",
            "/public",
            "//pub/a",
            "/./pub/a",
            "/%70ub/a",
            "/pub%2fa",
            "/pub;x/a",
            "/pub/..",
            "/pub/../a",
            "/pub//../a",
            "/pub/../pub/a",
            "/pub/%2e%2e/a",
            "/pub/.%2E/a",
            "/pub/..%2fa",
            "/pub/%252e%252e/a",
            "/pub/%25252e%25252e/a",
            "/pub/%%32e./a",
            "/pub/..;x/a",
            "/pub/..%3b/a",
            "/pub/..%3f/a",
            "/pub/..%23/a",
            "/pub/..%00/a",
            "/pub/.%09./a",
            "/pub\\..\\a",
            "/pub/..\\a",
            "/pub/..%5ca",
            "/pub/b\\c/../../a",
        ] {
            assert_eq!(status("/pub", path), 403, "{path}");
            assert_eq!(admit(&[], path), Ok(()), "{path}");
        }
        assert_eq!(status("/pub", "/pub/%2525252e"), 400);
        for path in ["/pub", "/pub/", "/pub/a", "/pub/a%20b", "/pub/%", "/pub/..a", "*"] {
            assert_eq!(status("/pub", path), 200, "{path}");
        }
        assert_eq!((status("/pub/", "/pub/a"), status("/pub/", "/pub")), (200, 403));
    }

    #[test]
    fn a_prefix_that_would_admit_nothing_is_a_mistake() {
        for good in ["/", "/pub", "/pub/", "/a.b/c"] {
            assert_eq!(prefix(good).as_deref(), Ok(good));
        }
        for bad in ["", "pub", "pub/", "*", "/a%20b", "/a b", "/ä", "/a/..", "/a?b", "/a#b"] {
            assert!(prefix(bad).is_err(), "{bad:?}");
        }
    }
}
