//! Heads: what a listener lets in, what goes on as it is, what stays here, and what is added. The
//! table in docs/reference/daemons.md says which line is which.

use httpd::{Address, Place};

use crate::common::{Backend, Peer, connect, pattern, proxy};

/// What the backend got of a request, in lower case, or the status that refused it.
fn passed_on(backend: &Backend, request: &str) -> Result<String, u16> {
    let before = backend.heads().len();
    let server = proxy(backend, |_| {});
    let mut client = connect(&server);
    client.send(format!("{request}\r\nConnection: close\r\n\r\n"));
    let answer = client.answer().unwrap();
    match backend.heads().get(before) {
        Some(head) => Ok(head.to_lowercase()),
        None => Err(answer.status),
    }
}

#[test]
fn what_changes_a_meaning_goes_on_or_is_refused() {
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
    ] {
        let put = "PUT /x HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n";
        let got = passed_on(&backend, &format!("{put}{line}")).unwrap();
        assert!(got.contains(&format!("\r\n{line}\r\n")), "{line}: {got}");
        // RFC 9110, 7.6.1: no option of Connection names a field that is for all recipients.
        let name = line.split(':').next().unwrap();
        let option = format!("{put}Connection: x, {name}");
        assert_eq!(passed_on(&backend, &option), Err(400), "{name}");
    }
    for line in ["te: trailers", "trailer: a", "upgrade: h2c", "keep-alive: 5", "proxy: p:1"] {
        let got = passed_on(&backend, &format!("GET /x HTTP/1.1\r\nHost: h\r\n{line}")).unwrap();
        assert!(!got.contains(line), "{line}: {got}");
    }
    for name in ["Content-Range", "Range", "If-Range", "If-Modified-Since", "If-Unmodified-Since"] {
        let two = format!("GET /x HTTP/1.1\r\nHost: h\r\n{name}: a\r\n{name}: b");
        assert_eq!(passed_on(&backend, &two), Err(400), "{name}");
    }
    let got =
        passed_on(&backend, "GET /x HTTP/1.1\r\nHost: h\r\nConnection: X-A\r\nX-A: 1\r\nX-B: 2");
    assert!(
        got.as_ref().is_ok_and(|got| got.contains("x-b: 2") && !got.contains("x-a")),
        "{got:?}"
    );
}

#[test]
fn the_backend_is_told_who_asks_and_who_reads_and_nobody_is_believed() {
    let backend = Backend::standard();
    for (pipes, reader) in [(1, "splice"), (0, "cpu")] {
        let server = proxy(&backend, |config| config.pipes = pipes);
        let mut client = connect(&server);
        client.send(
            "GET /headers HTTP/1.1\r\nHost: test:80\r\nX-Kept: 2\r\nNtcopy-Reader: forged\r\n\
             X-Forwarded-For: 6.6.6.6\r\nX-Forwarded-Host: evil\r\nX_Forwarded_For: 6.6.6.6\r\n\
             x-forwarded-proto: https\r\nPROXY: http://evil/\r\n\r\n",
        );
        let head = String::from_utf8(client.answer().unwrap().body).unwrap();
        assert_eq!(
            head,
            format!(
                "GET /headers HTTP/1.1\r\nHost: test:80\r\nX-Kept: 2\r\nX-Forwarded-For: 127.0.0.1\r\n\
                 X-Forwarded-Proto: http\r\n\
                 Via: 1.1 proxyd\r\nNtcopy-Reader: {reader}\r\n\r\n"
            )
        );
    }
}

#[test]
fn listeners_let_in_what_they_are_told_to() {
    let backend = Backend::standard();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.sock");
    let server = proxy(&backend, |config| {
        config.method = vec!["GET".to_owned(), "HEAD".to_owned()];
        config.path = vec!["/length/".to_owned(), "/headers".to_owned()];
        config.options.listen.push(Place::At(vec![Address::Unix(path.clone())]));
    });
    assert_eq!(connect(&server).get("/length/3").body, pattern(3));
    let came = backend.heads().len();
    for path in ["/headers2", "/length/%2e%2e/status/200", "http://h/status/200"] {
        let answer = connect(&server).get(path);
        assert_eq!((answer.status, answer.header("connection")), (403, Some("close")), "{path}");
    }
    assert_eq!(backend.heads().len(), came);
    let mut client = connect(&server);
    client.send("PUT /length/3 HTTP/1.1\r\nHost: t\r\nContent-Length: 5\r\n\r\nhello");
    let answer = client.answer().unwrap();
    assert_eq!((answer.status, answer.header("allow")), (405, Some("GET, HEAD")));
    let mut unix = Peer::connect(&Address::Unix(path.clone()));
    let head = String::from_utf8(unix.get("/headers").body).unwrap();
    assert!(!head.contains("X-Forwarded-For"), "{head}");
    drop(server);
    assert!(!path.exists());
}

/// Its length is said, and a body would be taken for the next answer.
#[test]
fn a_refused_head_gets_no_body() {
    let backend = Backend::standard();
    let server = proxy(&backend, |config| {
        config.backend = "/nonexistent/b".parse().unwrap();
        config.path = vec!["/x".to_owned()];
    });
    for (request, status) in [
        ("HEAD / HTTP/1.1\r\nHost: t\r\n\r\n", 403),
        ("HEAD http://h/x HTTP/1.1\r\nHost: u@t\r\n\r\n", 400),
        ("HEAD /x HTTP/1.1\r\nHost: t\r\nX: \0\r\n\r\n", 400),
        ("HEAD /x HTTP/1.1\r\nHost: t\r\n\r\n", 503),
    ] {
        let mut client = connect(&server);
        client.send(request);
        let head = client.head().unwrap();
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{request}: {head}");
        assert!(!head.contains("Content-Length: 0\r\n"), "{head}");
        assert_eq!(client.rest(), b"", "{request}");
    }
}

#[test]
fn an_answer_with_two_readings_is_not_passed_on_and_via_names_its_version() {
    for (head, expected) in [
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", Err(502)),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n", Err(502)),
        ("HTTP/1.1 200 OK\nContent-Length: 5\n\n", Err(502)),
        ("HTTP/1.1 200 OK\r\nContent-Length : 5\r\n\r\n", Err(502)),
        ("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", Err(502)),
        ("HTTP/1.1 206 P\r\nConnection: Content-Range\r\nContent-Length: 5\r\n\r\n", Err(502)),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", Err(502)),
        ("HTTP/1.1 200 OK\r\nA: b\r\n folded\r\n\r\n", Err(502)),
        ("HTTP/1.1 099 Low\r\n\r\n", Err(502)),
        ("HTTP/2 200 OK\r\n\r\n", Err(502)),
        ("hello\r\n\r\n", Err(502)),
        ("HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\n", Ok("1.0 proxyd")),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", Ok("1.1 proxyd")),
    ] {
        let backend = Backend::new(move |peer, _| {
            peer.head().unwrap();
            peer.send(head);
            peer.try_send("hello");
            peer.rest();
        });
        let server = proxy(&backend, |_| {});
        let answer = connect(&server).get("/x");
        match expected {
            Err(status) => assert_eq!(answer.status, status, "{head:?}"),
            Ok(via) => assert_eq!(answer.header("via"), Some(via), "{head:?}"),
        }
        assert_eq!(answer.body == b"hello", expected.is_ok(), "{head:?}");
    }
}
