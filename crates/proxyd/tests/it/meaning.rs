//! Lines of a head that change what its method, its target or its body mean: each is obeyed, passed
//! on as it is, or refused. The table in docs/reference/daemons.md says which.

use crate::common::{Backend, Peer, connect, pattern, proxy};

/// What the backend got of a request with these lines, or the status that refused it.
fn passed_on(backend: &Backend, method: &str, target: &str, lines: &str) -> Result<String, u16> {
    let before = backend.heads().len();
    let server = proxy(backend, |_| {});
    let mut client = connect(&server);
    client.send(format!("{method} {target} HTTP/1.1\r\n{lines}Connection: close\r\n\r\n"));
    let answer = client.answer().unwrap();
    match backend.heads().get(before) {
        Some(head) => Ok(head.to_lowercase()),
        None => Err(answer.status),
    }
}

#[test]
fn a_host_that_is_none_is_refused_and_reaches_no_backend() {
    let backend = Backend::standard();
    for host in [
        "",
        "[::1",
        "a:b",
        "a:80:81",
        "a]b",
        "[zz]",
        "u@a",
        "a,b",
        ":80",
        "a:65536",
        "a:+1",
        "a%zz",
        "[::1]x",
        "::1",
        "[::1%25lo]",
        "a\r\nHost: a",
        "a\r\nHost: b",
    ] {
        let got = passed_on(&backend, "GET", "/x", &format!("Host: {host}\r\n"));
        assert_eq!(got, Err(400), "{host:?}");
        // Nor beside a target that has a good one.
        let got = passed_on(&backend, "GET", "http://h/x", &format!("Host: {host}\r\n"));
        assert_eq!(got, Err(400), "{host:?} beside http://h/x");
    }
    for target in ["http://:80/x", "http://[::1/x", "http://a:b/x", "http:///x", "http://u@h/x"] {
        assert_eq!(passed_on(&backend, "GET", target, "Host: h\r\n"), Err(400), "{target}");
    }
    for host in ["a", "a:80", "[::1]:80", "[::1]", "a:", "192.0.2.1:1"] {
        let got = passed_on(&backend, "GET", "/x", &format!("Host: {host}\r\n")).unwrap();
        assert!(got.contains(&format!("\r\nhost: {host}\r\n")), "{host}: {got}");
    }
    // RFC 9112, 3.2.2: the target's goes on in its place.
    let got = passed_on(&backend, "GET", "http://h:81/x", "Host: other\r\n").unwrap();
    assert!(got.contains("\r\nhost: h:81\r\n") && !got.contains("other"), "{got}");
}

#[test]
fn a_slash_in_the_query_of_an_absolute_target_begins_no_path() {
    let backend = Backend::standard();
    for (target, line) in [
        ("http://h?uploads=/secret", "put /?uploads=/secret http/1.1\r\n"),
        ("http://h", "put / http/1.1\r\n"),
        ("http://h/a?b/c?d", "put /a?b/c?d http/1.1\r\n"),
        ("/a?b=http://x/y", "put /a?b=http://x/y http/1.1\r\n"),
    ] {
        let got = passed_on(&backend, "PUT", target, "Host: h\r\nContent-Length: 0\r\n").unwrap();
        assert!(got.starts_with(line), "{target}: {got}");
    }
}

#[test]
fn lines_that_change_a_meaning_go_on_as_they_are() {
    let backend = Backend::standard();
    for line in [
        "content-range: bytes 6-9/10",
        "content-encoding: zstd",
        "content-type: a/b",
        "if-match: \"a\"",
        "if-none-match: *",
        "if-modified-since: sun, 06 nov 1994 08:49:37 gmt",
        "if-unmodified-since: sun, 06 nov 1994 08:49:37 gmt",
        "if-range: \"a\"",
        "range: bytes=0-1",
        "expect: 100-continue",
        "cache-control: no-cache",
        "authorization: basic a",
        "max-forwards: 5",
    ] {
        let lines = format!("Host: h\r\nContent-Length: 0\r\n{line}\r\n");
        let got = passed_on(&backend, "PUT", "/x", &lines).unwrap();
        assert!(got.contains(&format!("\r\n{line}\r\n")), "{line}: {got}");
    }
    for line in ["te: trailers", "trailer: a", "upgrade: h2c", "keep-alive: 5"] {
        let got = passed_on(&backend, "GET", "/x", &format!("Host: h\r\n{line}\r\n")).unwrap();
        assert!(!got.contains(line), "{line}: {got}");
    }
}

/// RFC 9110, 7.6.1: no option of Connection names a field that is for all recipients. Taken at its
/// word, the line would stay here, and the backend would take a piece for the whole.
#[test]
fn connection_takes_no_line_away_that_is_the_backends() {
    let backend = Backend::standard();
    for name in [
        "Content-Range",
        "content-encoding",
        "Content-Length",
        "Content-Type",
        "If-Match",
        "If-None-Match",
        "If-Modified-Since",
        "If-Unmodified-Since",
        "If-Range",
        "Range",
        "Expect",
        "Host",
        "Authorization",
        "Cookie",
        "Cache-Control",
        "Max-Forwards",
    ] {
        let lines = format!("Host: h\r\nConnection: x, {name}\r\nContent-Length: 0\r\n");
        assert_eq!(passed_on(&backend, "PUT", "/x", &lines), Err(400), "{name}");
    }
    let lines = "Host: h\r\nConnection: X-A\r\nX-A: 1\r\nX-B: 2\r\n";
    let got = passed_on(&backend, "GET", "/x", lines).unwrap();
    assert!(got.contains("x-b: 2") && !got.contains("x-a"), "{got}");
    let backend = Backend::new(|peer, _| {
        peer.head().unwrap();
        peer.send("HTTP/1.1 206 P\r\nConnection: Content-Range\r\nContent-Range: bytes 0-1/9\r\n");
        peer.send("Content-Length: 2\r\n\r\nok");
    });
    let server = proxy(&backend, |_| {});
    assert_eq!(connect(&server).get("/x").status, 502);
}

#[test]
fn one_of_two_lines_that_differ_is_not_chosen_for_the_backend() {
    let backend = Backend::standard();
    for (name, one, two) in [
        ("Content-Range", "bytes 0-1/9", "bytes 2-3/9"),
        ("Range", "bytes=0-1", "bytes=2-3"),
        ("If-Range", "\"a\"", "\"b\""),
        ("If-Modified-Since", "a", "b"),
        ("If-Unmodified-Since", "a", "b"),
    ] {
        let lines = format!("Host: h\r\n{name}: {one}\r\n{name}: {two}\r\n");
        assert_eq!(passed_on(&backend, "GET", "/x", &lines), Err(400), "{name}");
    }
}

#[test]
fn max_forwards_of_options_is_counted_down_and_ends_here() {
    let backend = Backend::standard();
    let ask = |target: &str, lines: &str| {
        passed_on(&backend, "OPTIONS", target, &format!("Host: h\r\n{lines}"))
    };
    for target in ["/x", "*", "http://h"] {
        assert_eq!(ask(target, "Max-Forwards: 0\r\n"), Err(200), "{target}");
        let got = ask(target, "Max-Forwards: 5\r\n").unwrap();
        assert!(got.contains("\r\nmax-forwards: 4\r\n"), "{target}: {got}");
    }
    assert!(ask("/x", "Max-Forwards: 1\r\n").unwrap().contains("\r\nmax-forwards: 0\r\n"));
    let got = ask("/x", "Max-Forwards: 99999999999999999999\r\n").unwrap();
    assert!(got.contains("\r\nmax-forwards: 4294967294\r\n"), "{got}");
    assert!(!ask("/x", "").unwrap().contains("max-forwards"));
    for bad in ["-1", "a", "", "5, 6", "5\r\nMax-Forwards: 5", "+5"] {
        assert_eq!(ask("/x", &format!("Max-Forwards: {bad}\r\n")), Err(400), "{bad:?}");
    }
    // TRACE is never passed on.
    assert_eq!(passed_on(&backend, "TRACE", "/x", "Host: h\r\nMax-Forwards: 0\r\n"), Err(405));
    let server = proxy(&backend, |_| {});
    let mut client = connect(&server);
    client.send("OPTIONS * HTTP/1.1\r\nHost: h\r\nMax-Forwards: 0\r\n\r\n");
    let allow = client.answer().unwrap().header("allow").map(str::to_owned);
    assert!(allow.is_some_and(|allow| allow.contains("GET, HEAD")));
}

#[test]
fn via_names_the_version_that_was_received() {
    let via = |version: &'static str| {
        let backend = Backend::new(move |peer: &mut Peer, _| {
            peer.head().unwrap();
            peer.send(format!("HTTP/{version} 200 OK\r\nContent-Length: 5\r\n\r\n"));
            peer.send(pattern(5));
        });
        let server = proxy(&backend, |_| {});
        connect(&server).get("/x").header("via").map(str::to_owned)
    };
    assert_eq!(via("1.0").as_deref(), Some("1.0 proxyd"));
    assert_eq!(via("1.1").as_deref(), Some("1.1 proxyd"));
}
