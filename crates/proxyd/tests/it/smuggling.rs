//! Requests in which two parsers could see different things: none of them reaches the backend.

use crate::common::{Backend, connect, pattern, proxy};

/// What would be smuggled.
const HIDDEN: &str = "GET /smuggled HTTP/1.1\r\nHost: test\r\n\r\n";

/// Each is refused with that status, closes the connection, and hides nothing.
#[test]
fn ambiguous_requests_are_refused_and_nothing_behind_them_is_served() {
    let backend = Backend::standard();
    let server = proxy(&backend, |_| {});
    let post = "POST /p HTTP/1.1\r\nHost: test\r\n";
    for (request, status) in [
        // Content-Length and Transfer-Encoding.
        (format!("{post}Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), 400),
        (format!("{post}Transfer-Encoding: chunked\r\nContent-Length: 6\r\n\r\n0\r\n\r\n"), 400),
        // Two lengths, alike or not.
        (format!("{post}Content-Length: 6\r\nContent-Length: 5\r\n\r\nhello"), 400),
        (format!("{post}Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello"), 400),
        (format!("{post}Content-Length: 5, 5\r\n\r\nhello"), 400),
        (format!("{post}Content-Length: +5\r\n\r\nhello"), 400),
        (format!("{post}Content-Length: 0x5\r\n\r\nhello"), 400),
        (format!("{post}Content-Length: 18446744073709551621\r\n\r\nhello"), 400),
        (format!("{post}Content-Length:\r\n\r\n"), 400),
        // Codings.
        (format!("{post}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"), 501),
        (format!("{post}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n"), 501),
        (format!("{post}Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n0\r\n\r\n"), 400),
        (format!("{post}Transfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n"), 400),
        ("POST /p HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n".to_owned(), 400),
        // Folding, bare line ends, blanks before the colon, no name.
        (format!("{post}X: a\r\n Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), 400),
        (format!("{post}Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n"), 400),
        (format!("{post}X: a\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), 400),
        (format!("{post}X: a\rTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), 400),
        (format!("{post}Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n"), 400),
        (format!("{post}Transfer-Encoding\t: chunked\r\n\r\n0\r\n\r\n"), 400),
        (format!("{post}: chunked\r\n\r\n0\r\n\r\n"), 400),
        (format!("{post}X: a\0b\r\n\r\n"), 400),
        ("POST /p HTTP/1.1\n\nHost: test\n\n".to_owned(), 400),
        ("\nGET /p HTTP/1.1\r\nHost: test\r\n\r\n".to_owned(), 400),
        // Hosts and targets.
        (format!("{post}Host: other\r\n\r\n"), 400),
        ("GET /p HTTP/1.1\r\n\r\n".to_owned(), 400),
        ("GET http://a@b/ HTTP/1.1\r\nHost: test\r\n\r\n".to_owned(), 400),
        ("GET /p\tHTTP/1.1\r\nHost: test\r\n\r\n".to_owned(), 400),
        ("GET  /p HTTP/1.1\r\nHost: test\r\n\r\n".to_owned(), 400),
        ("GET /a b HTTP/1.1\r\nHost: test\r\n\r\n".to_owned(), 505),
        ("GET /p HTTP/1.2\r\nHost: test\r\n\r\n".to_owned(), 505),
        ("GET /p\r\n\r\n".to_owned(), 400),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(), 505),
    ] {
        let mut client = connect(&server);
        client.send(format!("{request}{HIDDEN}"));
        let answer = client.answer().expect(&request);
        // Both are refusals; which of the two depends on which mistake is seen first.
        let expected = if status == 505 { [400, 505] } else { [status; 2] };
        assert!(expected.contains(&answer.status), "{request:?}: {}", answer.head);
        assert_eq!(answer.header("connection"), Some("close"), "{request:?}");
        assert_eq!(client.rest(), b"", "{request:?}");
    }
    assert_eq!(backend.heads(), [""; 0]);
}

#[test]
fn tricks_with_chunks_end_the_exchange() {
    let backend = Backend::standard();
    let server = proxy(&backend, |_| {});
    for body in [
        "5 \r\nhello\r\n0\r\n\r\n",
        " 5\r\nhello\r\n0\r\n\r\n",
        "+5\r\nhello\r\n0\r\n\r\n",
        "0x5\r\nhello\r\n0\r\n\r\n",
        "5\nhello\r\n0\r\n\r\n",
        "5\r\nhello0\r\n\r\n",
        "5\r\nhello\n0\r\n\r\n",
        "5;\nx\r\nhello\r\n0\r\n\r\n",
        "10000000000000005\r\nhello\r\n0\r\n\r\n",
        "\r\n0\r\n\r\n",
        "0\r\nX\r\n\r\n",
        "0\r\n X: y\r\n\r\n",
        "5;a=\"b\r\nhello\r\n0\r\n\r\n",
        "5;a=\"\\\"\r\nhello\r\n0\r\n\r\n",
        "5; a\r\nhello\r\n0\r\n\r\n",
    ] {
        let mut client = connect(&server);
        client.send(format!(
            "POST /echo HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n{body}{HIDDEN}"
        ));
        let answer = client.answer().expect(body);
        assert_eq!((answer.status, answer.header("connection")), (400, Some("close")), "{body:?}");
        assert_eq!(client.rest(), b"", "{body:?}");
    }
    assert!(backend.heads().iter().all(|head| !head.contains("smuggled")));
}

#[test]
fn an_answer_with_two_readings_is_not_passed_on() {
    for head in [
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
        "HTTP/1.1 200 OK\nContent-Length: 5\n\n",
        "HTTP/1.1 200 OK\r\nContent-Length : 5\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
        "hello\r\n\r\n",
    ] {
        let backend = Backend::new(move |peer, _| {
            peer.head().unwrap();
            peer.send(head);
            peer.try_send("hello");
            peer.rest();
        });
        let server = proxy(&backend, |_| {});
        let mut client = connect(&server);
        let answer = client.get("/");
        assert_eq!(answer.status, 502, "{head:?}");
        assert!(!answer.body.starts_with(b"hello"));
    }
}

#[test]
fn what_a_backend_says_beyond_its_answer_reaches_nobody() {
    let backend = Backend::new(|peer, _| {
        while peer.head().is_some() {
            let body = pattern(5);
            peer.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n");
            peer.send(body);
            peer.send("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged");
        }
    });
    let server = proxy(&backend, |_| {});
    let mut client = connect(&server);
    for _ in 0..5 {
        assert_eq!(client.get("/").body, pattern(5));
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}
