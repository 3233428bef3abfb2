//! Which paths are passed on.

use httpd::Refusal;

/// What makes another path of one for a backend that decodes it, or that resolves it: the folder above,
/// what divides segments, what ends one, and a percent sign, by which any of these could be encoded
/// twice.
const AMBIGUOUS: [&str; 7] = ["..", "\\", ";", "%2e", "%2f", "%5c", "%25"];

/// Whether a path, without its query, has one of these prefixes, and nothing by which a backend could
/// take it for one that has not. No prefixes stand for all paths.
pub fn admit(prefixes: &[String], path: &str) -> Result<(), Refusal> {
    if prefixes.is_empty() || path == "*" {
        return Ok(());
    }
    let lower = path.to_ascii_lowercase();
    let is_encoded = |rest: &str| {
        rest.as_bytes().iter().take(2).filter(|byte| byte.is_ascii_hexdigit()).count() == 2
    };
    let is_plain = !AMBIGUOUS.iter().any(|part| lower.contains(part))
        // One that encodes nothing may be taken for itself, which is as good as %25.
        && lower.split('%').skip(1).all(is_encoded);
    if is_plain && prefixes.iter().any(|prefix| is_below(path, prefix)) {
        return Ok(());
    }
    Err(Refusal { status: 403, reason: "this path is not passed on here" })
}

/// What `--path` says. Another spelling would have no path below it that is [admitted](admit).
pub fn prefix(text: &str) -> Result<String, String> {
    let spelled = text.bytes().all(|byte| byte.is_ascii_graphic() && !b"%?#".contains(&byte));
    let prefix = [text.to_owned()];
    if spelled && text.starts_with('/') && admit(&prefix, text).is_ok() {
        return Ok(text.to_owned());
    }
    Err("write it as it comes in requests, with a slash in front, as /pub; without percent \
         signs, .., ;, \\, ? and #"
        .to_owned())
}

/// A prefix is of whole segments.
fn is_below(path: &str, prefix: &str) -> bool {
    let rest = path.strip_prefix(prefix);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || prefix.ends_with('/'))
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
            "/pub/%2%65./a",
            "/pub/%",
            "/pub/%g0",
            "/pub/..;x/a",
            "/pub/..%3b/a",
            "/pub/..%3f/a",
            "/pub/..%23/a",
            "/pub/..%00/a",
            "/pub/..a",
            "/pub/a;b",
            "/pub/a%2Eb",
            "/pub/a%2Fb",
            "/pub/a%5Cb",
            "/pub/100%25",
            "/pub/%2525252e",
            "/pub\\..\\a",
            "/pub/..\\a",
            "/pub/..%5ca",
            "/pub/b\\c/../../a",
        ] {
            assert_eq!(status("/pub", path), 403, "{path}");
            assert_eq!(admit(&[], path), Ok(()), "{path}");
        }
        for path in ["/pub", "/pub/", "/pub/a", "/pub/a%20b", "/pub/.a/b.c", "*"] {
            assert_eq!(status("/pub", path), 200, "{path}");
        }
        assert_eq!((status("/pub/", "/pub/a"), status("/pub/", "/pub")), (200, 403));
    }

    #[test]
    fn a_prefix_that_would_admit_nothing_is_a_mistake() {
        for good in ["/", "/pub", "/pub/", "/a.b/c"] {
            assert_eq!(prefix(good).as_deref(), Ok(good));
        }
        for bad in [
            "", "pub", "pub/", "*", "/a%20b", "/a b", "/ä", "/a/..", "/a;b", "/a\\b", "/a?b",
            "/a#b",
        ] {
            assert!(prefix(bad).is_err(), "{bad:?}");
        }
    }
}
