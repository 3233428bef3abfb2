use proptest::prelude::*;

use super::*;

#[test]
fn targets_and_where_their_parts_end() {
    for (target, expected) in [
        ("/a/b?x=1&y", Some(("/a/b", Some("x=1&y")))),
        ("/", Some(("/", None))),
        ("//h/secret", Some(("//h/secret", None))),
        ("/a?", Some(("/a", Some("")))),
        ("/a?b?/c", Some(("/a", Some("b?/c")))),
        ("HTTP://h:80/a", Some(("/a", None))),
        ("http://h", Some(("/", None))),
        ("http://h?uploads=/secret", Some(("/", Some("uploads=/secret")))),
        ("http://[::1]:80?x=/secret", Some(("/", Some("x=/secret")))),
        ("http:///secret", None),
        ("http://:80/secret", None),
        ("http://?x=/secret", None),
        ("http://h#/secret", None),
        ("http://u@h/secret", None),
        ("http://u:p@h/secret", None),
        ("http://h@/secret", None),
        ("http://a:b/secret", None),
        ("http://[::1/secret", None),
        ("http://h\\@g/secret", None),
        ("http:/secret", None),
        ("http:secret", None),
        ("https://h/secret", None),
        ("h/secret", None),
        ("h:80", None),
        ("*", None),
        ("", None),
        ("/a#b", None),
        ("/a b", None),
        ("/a%2", None),
        ("/a?%zz", None),
        ("/a\\b", None),
        ("/\u{e9}", None),
    ] {
        assert_eq!(split(target), expected, "{target:?}");
    }
}

#[test]
fn hosts_and_what_is_none() {
    for good in [
        "a",
        "a:80",
        "a:",
        "a:00080",
        "a_b.c",
        "127.0.0.1:1",
        "[::1]",
        "[::1]:80",
        "[::1]:",
        "[::ffff:1.2.3.4]",
        "[v1f.a:b]",
        "%41",
        "a,b",
        "a:65535",
    ] {
        assert!(is_host(good), "{good:?}");
    }
    for bad in [
        "",
        ":80",
        "[::1",
        "a:b",
        "a:80:81",
        "a]b",
        "[zz]",
        "[]",
        "[::1]80",
        "[::1]a",
        "u@a",
        "a b",
        "a/b",
        "a?b",
        "a#b",
        "<x>",
        "a:+80",
        "a:65536",
        "a\\b",
        "%4",
        "%zz",
        "[fe80::1%25eth0]",
        "[v.a]",
        "[v1.]",
        "a\tb",
        "\u{e9}",
        "::1",
        "[::1]:80:81",
        "a:-1",
        "\"a\"",
    ] {
        assert!(!is_host(bad), "{bad:?}");
    }
}

/// The parts of a URI as appendix B of RFC 3986 takes them apart: scheme, authority, path, query,
/// fragment.
type Uri<'a> = (Option<&'a str>, Option<&'a str>, &'a str, Option<&'a str>, Option<&'a str>);

fn appendix_b(uri: &str) -> Uri<'_> {
    let (uri, fragment) = uri.split_once('#').map_or((uri, None), |(a, b)| (a, Some(b)));
    let (uri, query) = uri.split_once('?').map_or((uri, None), |(a, b)| (a, Some(b)));
    let (scheme, rest) = match uri.split_once(':') {
        Some((scheme, rest)) if !scheme.is_empty() && !scheme.contains('/') => (Some(scheme), rest),
        _ => (None, uri),
    };
    let Some(rest) = rest.strip_prefix("//") else { return (scheme, None, rest, query, fragment) };
    let at = rest.find('/').unwrap_or(rest.len());
    (scheme, Some(&rest[..at]), &rest[at..], query, fragment)
}

const UNRESERVED: &str = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~";
const SUB_DELIMS: &str = "!$&'()*+,;=";

fn model_text(text: &str, more: &str) -> bool {
    let mut pieces = text.split('%');
    let plain = |piece: &str| {
        piece.chars().all(|c| [UNRESERVED, SUB_DELIMS, more].iter().any(|set| set.contains(c)))
    };
    plain(pieces.next().unwrap_or_default())
        && pieces.all(|piece| {
            let digits: Vec<char> = piece.chars().take(2).collect();
            digits.len() == 2 && digits.iter().all(char::is_ascii_hexdigit) && plain(&piece[2..])
        })
}

fn model_host(authority: &str) -> bool {
    let (host, port) = match authority.rfind(':') {
        Some(at) if !authority[at..].contains(']') => (&authority[..at], &authority[at + 1..]),
        _ => (authority, ""),
    };
    let literal = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let is_host = match literal {
        Some(address) if !address.starts_with('v') => address.parse::<Ipv6Addr>().is_ok(),
        Some(_) => return false,
        None => !host.is_empty() && model_text(host, ""),
    };
    is_host && port.chars().all(|c| c.is_ascii_digit()) && port.parse::<u32>().unwrap_or(0) < 65536
}

fn model(target: &str) -> Option<(String, Option<String>)> {
    let (scheme, authority, path, query, fragment) = if target.starts_with('/') {
        // The origin form has no authority: two slashes are a path.
        let (path, query) = target.split_once('?').map_or((target, None), |(a, b)| (a, Some(b)));
        (Some("http"), Some("h"), path, query, None)
    } else {
        appendix_b(target)
    };
    let is_good = scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case("http"))
        && authority.is_some_and(model_host)
        && model_text(path, ":@/")
        && query.is_none_or(|query| model_text(query, ":@/?"))
        && fragment.is_none();
    let path = if path.is_empty() { "/" } else { path };
    is_good.then(|| (path.to_owned(), query.map(str::to_owned)))
}

const PIECES: [&str; 24] = [
    "http://", "HTTP:", "https://", "//", "/", "?", "#", ":", "@", "[", "]", "::1", "[::1]", "h",
    "secret", "x=", "80", "%41", "%", "\\", "..", "*", " ", "\u{e9}",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]
    #[test]
    fn the_parser_and_the_grammar_agree(
        first in prop::sample::select(&["", "/", "http://", "http://h", "http://h/"][..]),
        rest in prop::collection::vec(prop::sample::select(&PIECES[..]), 0..7),
    ) {
        let target = format!("{first}{}", rest.concat());
        let got = split(&target).map(|(path, query)| (path.to_owned(), query.map(str::to_owned)));
        prop_assert_eq!(got, model(&target), "{:?}", target);
    }

    #[test]
    fn what_was_put_together_comes_apart(
        authority in "[a-z]{1,5}(:[0-9]{0,4})?|\\[::[0-9a-f]{1,4}\\]",
        path in "(/[a-zA-Z0-9:@!$&'()*+,;=._~-]{0,4}|/%[0-9a-fA-F]{2}){0,4}",
        query in prop::option::of("[a-z0-9=&/?:@]{0,8}"),
    ) {
        let end = query.as_ref().map_or(String::new(), |query| format!("?{query}"));
        let path_or_root = if path.is_empty() { "/" } else { &path };
        let expected = Some((path_or_root, query.as_deref()));
        let (absolute, origin) = (format!("http://{authority}{path}{end}"), format!("{path_or_root}{end}"));
        prop_assert_eq!(split(&absolute), expected);
        prop_assert_eq!(split(&origin), expected);
    }
}
