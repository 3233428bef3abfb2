//! The parser against a model: RFC 3986's grammar written down a second time, as its appendices
//! have it.

use std::net::Ipv6Addr;

use proptest::prelude::*;

use super::*;

/// RFC 3986, appendix A: h16s and perhaps an IPv4 address, with at most one `::`.
fn model_ipv6(text: &str) -> bool {
    let h16 = |part: &str| {
        (1..=4).contains(&part.len()) && part.chars().all(|digit| digit.is_ascii_hexdigit())
    };
    let dec_octet = |part: &str| {
        part.chars().all(|digit| digit.is_ascii_digit())
            && (part == "0" || !part.starts_with('0'))
            && part.parse::<u32>().is_ok_and(|octet| octet <= 255)
    };
    let ipv4 = |part: &str| part.split('.').count() == 4 && part.split('.').all(dec_octet);
    // Groups of 16 bits; `last` is whether these are the address's last.
    let groups = |text: &str, last: bool| -> Option<usize> {
        if text.is_empty() {
            return Some(0);
        }
        let parts: Vec<&str> = text.split(':').collect();
        parts.iter().enumerate().try_fold(0, |sum, (at, part)| match part {
            part if h16(part) => Some(sum + 1),
            part if last && at + 1 == parts.len() && ipv4(part) => Some(sum + 2),
            _ => None,
        })
    };
    match text.split_once("::") {
        None => groups(text, true) == Some(8),
        Some((left, right)) => {
            let sum =
                groups(left, false).zip(groups(right, true)).map(|(left, right)| left + right);
            sum.is_some_and(|sum| sum <= 7)
        }
    }
}

/// RFC 3986, 3.2, without a user, without a comma, with a host.
fn model_authority(text: &str) -> bool {
    let in_set =
        |set: &str, character: char| character.is_ascii_alphanumeric() || set.contains(character);
    let (host, port) = match text.rfind(']') {
        Some(end) => (&text[..=end], &text[end + 1..]),
        None => text.split_at(text.find(':').unwrap_or(text.len())),
    };
    let port_fits = match port.strip_prefix(':') {
        None => port.is_empty(),
        Some(digits) => {
            digits.chars().all(|digit| digit.is_ascii_digit())
                && digits.trim_start_matches('0').len() <= 5
                && digits.parse::<u64>().unwrap_or(0) <= 65535
        }
    };
    let host_fits = match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        Some(inside) if inside.starts_with(['v', 'V']) => {
            let (version, address) = inside[1..].split_once('.').unwrap_or_default();
            !version.is_empty()
                && version.chars().all(|digit| digit.is_ascii_hexdigit())
                && !address.is_empty()
                && address.chars().all(|character| in_set("-._~!$&'()*+,;=:", character))
        }
        Some(inside) => model_ipv6(inside),
        None => {
            let plain: String = host
                .split('%')
                .enumerate()
                .map(|(at, part)| match part.get(..2).filter(|_| at > 0) {
                    _ if at == 0 => part.to_owned(),
                    Some(two) if two.chars().all(|digit| digit.is_ascii_hexdigit()) => {
                        format!("x{}", &part[2..])
                    }
                    _ => "]".to_owned(),
                })
                .collect();
            !plain.is_empty() && plain.chars().all(|one| in_set("-._~!$&'()*+;=", one))
        }
    };
    port_fits && host_fits
}

/// RFC 3986, appendix B: `^(([^:/?#]+):)?(//([^/?#]*))?([^?#]*)(\?([^#]*))?`.
fn model_parts(text: &str) -> (Option<&str>, Option<&str>, &str, &str) {
    let till = |text: &str, ends: &[char]| text.find(ends).unwrap_or(text.len());
    let end = till(text, &[':', '/', '?', '#']);
    let (scheme, rest) = match text[end..].strip_prefix(':') {
        Some(rest) if end > 0 => (Some(&text[..end]), rest),
        _ => (None, text),
    };
    let (authority, rest) = match rest.strip_prefix("//") {
        Some(rest) => {
            let (authority, rest) = rest.split_at(till(rest, &['/', '?', '#']));
            (Some(authority), rest)
        }
        None => (None, rest),
    };
    let (path, query) = rest.split_at(till(rest, &['?', '#']));
    (scheme, authority, path, query)
}

/// What RFC 9112, 3.2, makes of a target.
fn model_target(method: &str, text: &str) -> Option<(Option<String>, String, String)> {
    if text.chars().any(|character| !character.is_ascii_graphic() || character == '#') {
        return None;
    }
    if method == "CONNECT" {
        let has_port = text.rsplit_once(':').is_some_and(|(host, port)| {
            !port.is_empty()
                && port.chars().all(|digit| digit.is_ascii_digit())
                && model_authority(host)
        });
        return (has_port && model_authority(text))
            .then(|| (Some(text.to_owned()), String::new(), String::new()));
    }
    if text == "*" {
        return (method == "OPTIONS").then(|| (None, "*".to_owned(), String::new()));
    }
    // An origin form is a path, though appendix B takes `//a/b` for an authority.
    if text.starts_with('/') {
        let (path, query) = match text.split_once('?') {
            Some((path, query)) => (path, format!("?{query}")),
            None => (text, String::new()),
        };
        return Some((None, path.to_owned(), query));
    }
    let (scheme, authority, path, query) = model_parts(text);
    let scheme = scheme?.to_ascii_lowercase();
    let authority = authority.filter(|authority| model_authority(authority))?;
    let path = match path {
        "" if method == "OPTIONS" && query.is_empty() => "*",
        "" => "/",
        path => path,
    };
    matches!(scheme.as_str(), "http" | "https")
        .then(|| (Some(authority.to_owned()), path.to_owned(), query.to_owned()))
}

fn parsed(method: &str, text: &str) -> Option<(Option<String>, String, String)> {
    parse_target(method, text).ok().map(|target| {
        (target.authority.map(str::to_owned), target.path.to_owned(), target.query.to_owned())
    })
}

fn good_authority() -> impl Strategy<Value = String> {
    let host = prop_oneof![
        "([a-zA-Z0-9._~!$&'()*+;=-]|%[0-9a-fA-F]{2}){1,12}",
        any::<u128>().prop_map(|bits| format!("[{}]", Ipv6Addr::from_bits(bits))),
        "\\[(::|[0-9a-f]{1,4}::[0-9A-F]{0,4}|::ffff:192\\.0\\.2\\.[1-9])\\]",
        "\\[[vV][0-9a-fA-F]{1,3}\\.[a-z0-9:!,~-]{1,8}\\]",
    ];
    (host, "(:[0-9]{0,4})?").prop_map(|(host, port)| host + &port)
}

/// Often nearly an authority.
fn any_authority() -> impl Strategy<Value = String> {
    let broken = (good_authority(), any::<prop::sample::Index>(), "[\\[\\]:@%,a1./?#\\\\ ]{0,2}");
    prop_oneof![
        "[\\[\\]:@%,a1.vg+ -]{0,8}",
        "\\[[0-9a-fg:.]{0,24}\\](:[0-9+-]{0,6})?",
        broken.prop_map(|(mut text, at, with)| {
            text.insert_str(at.index(text.len() + 1), &with);
            text
        }),
    ]
}

fn method() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["GET", "PUT", "OPTIONS", "CONNECT"])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn an_authority_is_taken_as_the_grammar_takes_it(text in any_authority()) {
        prop_assert_eq!(parse_authority(text.as_bytes()).is_ok(), model_authority(&text));
    }

    #[test]
    fn a_good_authority_is_taken_whole(text in good_authority()) {
        prop_assert!(model_authority(&text));
        prop_assert_eq!(parse_authority(text.as_bytes()), Ok(text.as_str()));
    }

    #[test]
    fn a_target_has_the_parts_that_the_grammar_gives_it(
        method in method(),
        scheme in prop::sample::select(vec!["http", "HTTPS", "ftp", "h", ""]),
        between in prop::sample::select(vec!["://", ":", "//", ":/", ""]),
        authority in prop_oneof![good_authority(), any_authority()],
        path in "(/[a-z.%20:@/?]{0,6}|\\*)?",
        query in "(\\?[a-z/=?:@%]{0,8})?",
    ) {
        let text = [scheme, between, &authority, &path, &query].concat();
        prop_assert_eq!(parsed(method, &text), model_target(method, &text), "{} {}", method, text);
    }

    #[test]
    fn any_text_is_taken_as_the_grammar_takes_it(
        method in method(),
        text in "(http|HTTP)?(://)?[-a:/?@.*\\[\\]%#1 ]{0,12}",
    ) {
        prop_assert_eq!(parsed(method, &text), model_target(method, &text), "{} {}", method, text);
    }
}

#[test]
fn hosts_and_ports_that_are_none_are_refused() {
    for bad in [
        "",
        ":80",
        "[::1",
        "::1",
        "a:b",
        "a:80:81",
        "a]b",
        "[a",
        "[zz]",
        "[::1]x",
        "[]",
        "[1:2:3]",
        "[::1%25eth0]",
        "[v.x]",
        "[v1.]",
        "u@a",
        "u:p@a",
        "a b",
        "a/b",
        "a,b",
        "a\\b",
        "a%",
        "a%2",
        "a%zz",
        "a:+80",
        "a:65536",
        "a:99999999999999999999",
        "\u{e4}",
        "<x>",
    ] {
        assert!(parse_authority(bad.as_bytes()).is_err(), "{bad}");
    }
    for good in
        ["a", "a:80", "a:", "[::1]:", "[::1]:80", "[::1]", "a_b.c", "a%2e", "192.0.2.1:65535"]
    {
        assert_eq!(parse_authority(good.as_bytes()), Ok(good));
    }
}

#[test]
fn a_slash_of_the_query_begins_no_path() {
    let target = |text| parsed("PUT", text).unwrap();
    let is = |path: &str, query: &str| (Some("h".to_owned()), path.to_owned(), query.to_owned());
    assert_eq!(target("http://h?uploads=/secret"), is("/", "?uploads=/secret"));
    assert_eq!(target("http://h"), is("/", ""));
    assert_eq!(target("http://h/?/a?b"), is("/", "?/a?b"));
    assert_eq!(parsed("OPTIONS", "http://h").unwrap(), is("*", ""));
    assert_eq!(parsed("OPTIONS", "http://h?").unwrap(), is("/", "?"));
    let connect = (Some("h:1".to_owned()), String::new(), String::new());
    assert_eq!(parsed("CONNECT", "h:1"), Some(connect));
    for (method, bad) in [
        ("GET", "*"),
        ("GET", "h:80"),
        ("GET", "http:///p"),
        ("GET", "http:/p"),
        ("GET", "?q"),
        ("GET", "/a#b"),
        ("GET", "http:"),
        ("CONNECT", "/"),
        ("CONNECT", "h"),
        ("CONNECT", "h:"),
        ("CONNECT", "[::1]"),
        ("OPTIONS", "*?"),
        ("GET", "http://u@h/"),
        ("GET", ""),
    ] {
        assert_eq!(parsed(method, bad), None, "{method} {bad}");
    }
}
