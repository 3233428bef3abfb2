use super::*;

fn whole(text: &str) -> Request {
    match parse(text.as_bytes()) {
        Ok(Parsed::Whole(request, bytes)) => {
            assert_eq!(bytes, text.len());
            *request
        }
        other => panic!("{text:?}: {other:?}"),
    }
}

fn status(text: &str) -> u16 {
    match parse(text.as_bytes()) {
        Err(refusal) => refusal.status,
        other => panic!("{text:?}: {other:?}"),
    }
}

#[test]
fn a_request_with_everything() {
    let request = whole(
        "GET http://h:80/a/b?x=1&y HTTP/1.1\r\nHost: h\r\nRange: bytes=0-1\r\nIf-Range: \"t\"\r\n\
         If-Match: \"a\"\r\nIf-Match: \"b\"\r\nAccept-Encoding: gzip, ZSTD;q=0.5\r\n\
         Ntcopy-Reader: splice\r\nConnection: x, Close\r\n\r\n",
    );
    assert_eq!(request.method, Method::Get);
    assert_eq!((&*request.path, request.query.as_deref()), ("/a/b", Some("x=1&y")));
    assert_eq!(request.framing, Framing::Length(0));
    assert_eq!(request.conditions.if_match, Tags::parse("\"a\", \"b\""));
    assert_eq!(request.range.as_deref(), Some("bytes=0-1"));
    assert_eq!(request.if_range.as_deref(), Some("\"t\""));
    assert_eq!(request.reader, Reader::Splice);
    assert!(!request.keep_alive && !request.expects_continue);
}

#[test]
fn every_start_of_a_head_is_partial() {
    let text = "PUT /a HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n";
    for end in 0..text.len() {
        assert_eq!(parse(&text.as_bytes()[..end]), Ok(Parsed::Partial), "{end}");
    }
    let request = whole(text);
    assert_eq!(request.framing, Framing::Length(3));
    assert!(request.expects_continue && request.keep_alive);
}

#[test]
fn the_end_of_a_body_is_never_a_matter_of_opinion() {
    let put = |headers: &str| format!("PUT /a HTTP/1.1\r\nHost: h\r\n{headers}\r\n");
    assert_eq!(whole(&put("Transfer-Encoding: Chunked\r\n")).framing, Framing::chunked());
    for (headers, expected) in [
        ("", 411),
        ("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n", 400),
        ("Content-Length: 3\r\nContent-Length: 3\r\n", 400),
        ("Content-Length: 3, 3\r\n", 400),
        ("Content-Length: +3\r\n", 400),
        ("Content-Length: 0x3\r\n", 400),
        ("Content-Length: 99999999999999999999\r\n", 400),
        ("Content-Length:\r\n", 400),
        ("Content-Length : 3\r\n", 400),
        ("Content-Length: 3\r\n continued\r\n", 400),
        ("Transfer-Encoding: gzip, chunked\r\n", 501),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", 501),
        ("Transfer-Encoding: identity\r\n", 501),
        ("Transfer-Encoding: xchunked\r\n", 501),
        ("Content-Length: 1\r\nExpect: tea\r\n", 417),
        ("Content-Length: 1\r\nContent-Encoding: gzip\r\n", 415),
        ("Content-Length: 1\r\nIf-Match: x\r\n", 400),
        ("Content-Length: 1\r\nHost: other\r\n", 400),
        ("Content-Length: 1\r\nContent-Range: bytes 6-9/10\r\n", 400),
        ("Transfer-Encoding: chunked\r\nContent-Range: bytes 6-9/*\r\n", 400),
        ("Content-Length: 1\r\nContent-Range: \r\n", 400),
        ("Content-Length: 1\r\nContent-Type: Multipart/ByteRanges; boundary=x\r\n", 400),
        ("Content-Length: 1\r\nRange: bytes=0-1\r\n", 400),
        ("Content-Length: 1\r\nContent-Encoding: identity\r\nContent-Encoding: br\r\n", 415),
    ] {
        assert_eq!(status(&put(headers)), expected, "{headers:?}");
    }
    assert_eq!(status("PUT /a HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), 400);
}

#[test]
fn every_line_ends_with_both_characters() {
    let good = "\r\nPUT /a HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\n";
    whole(good);
    for (at, _) in good.match_indices('\r') {
        let bare = [&good[..at], &good[at + 1..]].concat();
        assert_eq!(status(&bare), 400, "{bare:?}");
    }
    let body = format!("{good}a\nb");
    assert!(matches!(parse(body.as_bytes()), Ok(Parsed::Whole(_, bytes)) if bytes == good.len()));
}

#[test]
fn what_is_not_spoken_here() {
    for (text, expected) in [
        ("GET /a HTTP/1.1\r\n\r\n", 400),
        ("POST /a HTTP/1.1\r\nHost: h\r\n\r\n", 405),
        ("BREW /a HTTP/1.1\r\nHost: h\r\n\r\n", 501),
        ("GET /a HTTP/2.0\r\nHost: h\r\n\r\n", 505),
        ("GET a HTTP/1.1\r\nHost: h\r\n\r\n", 400),
        ("GET https://h HTTP/1.1\r\nHost: h\r\n\r\n", 400),
        ("GET /a\0 HTTP/1.1\r\nHost: h\r\n\r\n", 400),
        ("\u{16}\u{3}\u{1}", 400),
    ] {
        assert_eq!(status(text), expected, "{text:?}");
    }
    let long = "x".repeat(TARGET_BYTES_MAX);
    assert_eq!(status(&format!("GET /{long} HTTP/1.1\r\nHost: h\r\n\r\n")), 414);
    assert_eq!(status(&format!("GET / HTTP/1.1\r\nA: {}", long.repeat(4))), 431);
    let many = "A: b\r\n".repeat(HEADERS_MAX + 1);
    assert_eq!(status(&format!("GET / HTTP/1.1\r\n{many}\r\n")), 431);
}

#[test]
fn a_header_that_changes_the_meaning_is_obeyed_or_refused() {
    let get = |headers: &str| format!("GET /a HTTP/1.1\r\nHost: h\r\n{headers}\r\n");
    for (text, expected) in [
        (get("Content-Range: bytes 0-1/2\r\n"), 400),
        (get("Content-Encoding: gzip\r\n"), 415),
        (get("Expect: 200-ok\r\n"), 417),
        ("DELETE /a HTTP/1.1\r\nHost: h\r\nRange: bytes=0-1\r\n\r\n".to_owned(), 400),
    ] {
        assert_eq!(status(&text), expected, "{text:?}");
    }
    let dates = "If-Modified-Since: Thu, 01 Jan 1970 00:00:09 GMT\r\n\
                 If-Unmodified-Since: Thu, 01 Jan 1970 00:00:07 GMT\r\n";
    let conditions = whole(&get(dates)).conditions;
    assert_eq!(conditions.if_modified_since, Some(9));
    assert_eq!(conditions.if_unmodified_since, Some(7));
    // RFC 9110, 13.1.3: elsewhere it means nothing, and neither does what is no date.
    let put = "PUT /a HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n";
    let conditions = whole(&format!("{put}{dates}\r\n")).conditions;
    assert_eq!((conditions.if_modified_since, conditions.if_unmodified_since), (None, Some(7)));
    assert!(whole(&get("If-Unmodified-Since: 7\r\n")).conditions.is_empty());
}

#[test]
fn hosts() {
    for host in ["a", "a:80", "[::1]:80", "a:"] {
        whole(&format!("GET /a HTTP/1.1\r\nHost: {host}\r\n\r\n"));
    }
    for host in ["", "[::1", "a:b", "a b", "a/b", "a@b", "<x>", "a, b"] {
        for version in ["1.0", "1.1"] {
            let text = format!("GET /a HTTP/{version}\r\nHost: {host}\r\n\r\n");
            assert_eq!(status(&text), 400, "{host:?}");
        }
    }
    assert_eq!(status("GET /a HTTP/1.0\r\nHost: h\r\nHost: h\r\n\r\n"), 400);
}

#[test]
fn an_old_client_gets_one_answer() {
    let request = whole("GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    assert!(!request.keep_alive);
}
