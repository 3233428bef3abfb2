//! What is said over real sockets.

use std::io::Write;
use std::process::Command;
use std::time::Duration;

use crate::common::{Daemon, Peer, bytes, eventually, scratch};

fn daemon(args: &[&str]) -> (tempfile::TempDir, Daemon) {
    let dir = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(dir.path(), args);
    (dir, daemon)
}

/// The model has what is not said of each of these.
#[test]
fn ranges_and_conditions() {
    let (_dir, daemon) = daemon(&["--listen", "tcp:127.0.0.1:0", "--public-lists"]);
    let put = daemon.tcp_client().request(
        "PUT",
        "/a/b%20c",
        "Content-Type: text/x\r\n",
        &bytes(3, 200_000),
    );
    assert_eq!(put.status, 201);
    let right = format!("If-Match: {}\r\n", put.etag());
    let early = "If-Unmodified-Since: Sat, 29 Oct 1994 19:43:31 GMT\r\n";
    for (method, path, lines, status, range) in [
        ("GET", "/a/b%20c", "Range: bytes=6-9\r\n", 206, Some("bytes 6-9/200000")),
        ("GET", "/a/b%20c", "Range: bytes=200000-\r\n", 416, Some("bytes */200000")),
        // What a HEAD would be told of the whole (RFC 9110, 14.2).
        ("HEAD", "/a/b%20c", "Range: bytes=0-1\r\n", 200, None),
        ("HEAD", "/a/b%20c", early, 412, None),
        ("PUT", "/a/b%20c", early, 412, None),
        ("DELETE", "/a/b%20c", early, 412, None),
        ("DELETE", "/missing", "If-Match: *\r\n", 412, None),
        // A list has neither tag nor date.
        ("GET", "/", &right, 412, None),
        ("GET", "/", "If-None-Match: *\r\n", 304, None),
        // A tag goes before a date.
        ("PUT", "/a/b%20c", &format!("{right}{early}"), 204, None),
    ] {
        let got = daemon.tcp_client().request(method, path, lines, b"");
        let found = (got.status, got.header("content-range"));
        assert_eq!(found, (status, range), "{method} {path} {lines}");
        if matches!(status, 200 | 206) {
            assert_eq!((got.header("content-type"), got.etag()), (Some("text/x"), put.etag()));
        }
    }
    assert_eq!(daemon.client().get("/a/b%20c").body, b"");
}

#[test]
fn requests_in_a_row_are_answered_in_order() {
    let (_dir, daemon) = daemon(&[]);
    let mut client = daemon.client();
    let big = bytes(5, 1_000_000);
    client.put("/big", &big);
    client.put("/small", b"small");
    let mut all = Vec::new();
    for at in 0..50 {
        let path = ["/big", "/small", "/none"][at % 3];
        write!(all, "GET {path} HTTP/1.1\r\nHost: h\r\n\r\n").unwrap();
        write!(all, "PUT /p{at} HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n{at:02}").unwrap();
    }
    client.send(&all);
    for at in 0..50 {
        let got = client.answer().unwrap();
        match at % 3 {
            0 => assert!(got.body == big),
            1 => assert_eq!(got.body, b"small"),
            _ => assert_eq!(got.status, 404),
        }
        assert_eq!(client.answer().unwrap().status, 201);
    }
    assert_eq!(client.get("/p49").body, b"49");
}

#[test]
fn what_could_be_read_in_two_ways_ends_the_connection() {
    let (_dir, daemon) = daemon(&[]);
    let smuggled = "GET /victim HTTP/1.1\r\nHost: h\r\n\r\n";
    for (head, status) in [
        ("PUT /a HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n", 400),
        ("PUT /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: x, chunked\r\n\r\n", 501),
        ("PUT /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\n", 400),
        ("GET /a HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\n", 400),
        ("DELETE /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
        ("PUT /a/../b HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\n", 400),
        ("POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\n", 405),
        // A refused HEAD gets no body: it would be taken for the next answer.
        ("HEAD /a HTTP/1.1\r\n\r\n", 400),
        ("HEAD /a//b HTTP/1.1\r\nHost: h\r\n\r\n", 400),
        ("HEAD /a HTTP/1.1\r\nHost: h\nX: y\r\n\r\n", 400),
        ("HEAD /a HTTP/1.1\r\nHost: h\r\nExpect: tea\r\n\r\n", 417),
    ] {
        let mut client = daemon.client();
        client.send(format!("{head}{smuggled}").as_bytes());
        let (method, _) = head.split_once(' ').unwrap();
        let response = client.answer_to(method).unwrap();
        assert_eq!(response.status, status, "{head:?}");
        assert_eq!(response.header("connection"), Some("close"));
        assert_ne!(response.header("content-length"), Some("0"), "{head:?}");
        if method != "HEAD" {
            let json: serde_json::Value = serde_json::from_slice(&response.body).unwrap();
            assert_eq!(json["status"], status);
        }
        client.assert_ended();
    }
    assert_eq!(daemon.stat()["received_body_bytes_total"], 0);
}

#[test]
fn limits() {
    let (_dir, daemon) = daemon(&["--object-max", "100KiB"]);
    assert_eq!(daemon.client().put("/ok", &bytes(1, 100 << 10)).status, 201);
    assert_eq!(daemon.client().put("/big", &bytes(1, (100 << 10) + 1)).status, 413);
    let mut client = daemon.client();
    client.send(b"PUT /big HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n20000\r\n");
    client.try_send(bytes(1, 0x20000));
    assert_eq!(client.answer().unwrap().status, 413);
    let mut client = daemon.client();
    client.send(format!("GET /a HTTP/1.1\r\nX: {}", "x".repeat(20_000)).as_bytes());
    assert_eq!(client.answer().unwrap().status, 431);
    assert_eq!(daemon.client().get(&format!("/{}", "k".repeat(1025))).status, 400);
    assert_eq!(daemon.client().get("/big").status, 404);
    for (method, path) in [("PUT", "/q?uploads"), ("PUT", "/q?"), ("DELETE", "/ok?versionId=1")] {
        let body: &[u8] = if method == "PUT" { b"x" } else { b"" };
        assert_eq!(daemon.client().request(method, path, "", body).status, 400, "{method} {path}");
    }
    assert_eq!(daemon.client().get("/q").status, 404, "not stored as something else");
    assert_eq!(daemon.client().get("/ok?x").status, 200);
    for bad in ["limit=0", "limit=1001", "limit=x", "prefix=%ff", "delimiter=/"] {
        assert_eq!(daemon.client().get(&format!("/?{bad}")).status, 400, "{bad:?}");
    }
    daemon.wait_for_blobs(1, "what was refused leaves nothing");
    assert_eq!(daemon.list().len(), 1);
}

/// Whoever is in front of it, and whatever he says: but the process that started it.
#[test]
fn the_list_is_closed_unless_it_was_asked_to_be_open() {
    for (args, status) in [(&[][..], "403"), (&["--public-lists"], "200")] {
        let args = [args, &["--listen", "tcp:127.0.0.1:0"]].concat();
        let (_dir, daemon) = daemon(&args);
        for target in ["/", "/?prefix=a", "http://h"] {
            assert_eq!(daemon.client().get(target).status, 200);
            assert_eq!(daemon.tcp_client().get(target).status.to_string(), status, "{target}");
        }
        // Any other process of the same user.
        let code = Command::new("curl")
            .args(["-so", "/dev/null", "-w", "%{http_code}", "http://h/", "--unix-socket"])
            .arg(&daemon.unix)
            .output()
            .unwrap();
        assert_eq!(String::from_utf8_lossy(&code.stdout), status);
    }
}

#[test]
fn each_phase_has_its_time() {
    let times = ["head", "body", "idle", "send"].map(|phase| format!("--{phase}-timeout=0.3"));
    let (_dir, daemon) = daemon(&times.each_ref().map(String::as_str));
    daemon.client().put("/big", &bytes(1, 8 << 20));
    // Idle: hung up without a word.
    daemon.client().assert_ended();
    // A head that never ends, however steadily it comes.
    let mut client = daemon.client();
    client.send(b"GET /a HTTP/1.1\r\n");
    while client.try_send(b"X: y\r\n") {
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(client.answer().unwrap().status, 408);
    // A body that stops.
    let mut client = daemon.client();
    client.send(b"PUT /a HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nab");
    assert_eq!(client.answer().unwrap().status, 408);
    // A reader that stops.
    let mut client = daemon.client();
    client.send(b"GET /big HTTP/1.1\r\nHost: h\r\n\r\n");
    daemon.wait_for_stat(|stat| stat["aborted_responses_total"] == 1);
    assert!(client.rest().len() < 8 << 20);
    assert_eq!(daemon.client().get("/a").status, 404);
}

#[test]
fn requests_are_counted_and_logged() {
    let (_dir, daemon) = daemon(&[]);
    daemon.client().put("/o", b"0123456789");
    daemon.client().get("/o");
    // An answer is counted after its bytes.
    daemon.wait_for_stat(|stat| stat["responses_good_total"] == 2);
    let stat = daemon.stat();
    assert_eq!((stat["received_body_bytes_total"], stat["sent_copy_bytes_total"]), (10, 10));
    // Objects are not to be had there, nor measurements elsewhere.
    assert_eq!(Peer::connect(&daemon.metrics).get("/o").status, 404);
    assert_eq!(daemon.client().get("/metrics").status, 404);
    daemon.client().get("/%1b%22%0a");
    daemon.wait_for_stat(|stat| stat["responses_4xx_total"] == 2);
    // A line is written after the answer is counted.
    let is_line = |line: &str| {
        line.contains("request=\"GET /o\" status=200") && line.contains("body_bytes=10")
    };
    eventually("the request is logged", || daemon.log().lines().any(is_line));
}

/// RFC 9112, 2.2; but not for ever.
#[test]
fn empty_lines_before_a_request_are_ignored() {
    let (_dir, daemon) = daemon(&[]);
    let mut client = daemon.client();
    client.send("\r\nPUT /o HTTP/1.1\r\nHost: t\r\nContent-Length: 2\r\n\r\nok\r\n");
    assert_eq!(client.answer().unwrap().status, 201);
    client.send("\r\n\r\nHEAD /o HTTP/1.1\r\nHost: t\r\n\r\n");
    assert!(client.answer_to("HEAD").unwrap().header("content-length") == Some("2"));
    let mut client = Peer::connect(&daemon.metrics);
    client.send("\r\nGET /metrics HTTP/1.1\r\nHost: t\r\n\r\n");
    assert_eq!(client.answer().unwrap().status, 200);
    let mut client = daemon.client();
    client.send("\r\n".repeat(9) + "GET /o HTTP/1.1\r\nHost: t\r\n\r\n");
    assert_eq!(client.answer().unwrap().status, 400);
}

/// A client that reads nothing before all of its body is sent, as most do.
#[test]
fn a_refusal_reaches_a_client_that_is_still_sending() {
    let (_dir, daemon) = daemon(&["--object-max", "8MiB", "--listen", "tcp:127.0.0.1:0"]);
    assert_eq!(daemon.client().put("/o", b"").status, 201);
    let (body, allowed) = (vec![b'x'; 24 << 20], 8 << 20);
    let length = format!("Content-Length: {}\r\n", body.len());
    let chunked = format!("Transfer-Encoding: chunked\r\n\r\n{:x}\r\n", body.len());
    let fails = format!("If-None-Match: *\r\nContent-Length: {allowed}\r\n");
    for (request, status) in [
        (format!("PUT /new HTTP/1.1\r\nHost: t\r\n{length}\r\n"), 413),
        (format!("PUT /new HTTP/1.1\r\nHost: t\r\n{chunked}"), 413),
        ("PUT /new HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned(), 400),
        (format!("PUT /new HTTP/1.1\r\n{length}\r\n"), 400),
        (format!("PUT /o HTTP/1.1\r\nHost: t\r\n{fails}\r\n"), 412),
        (format!("POST /o HTTP/1.1\r\nHost: t\r\n{length}\r\n"), 405),
        (format!("PUT /new HTTP/1.0\r\n{length}\r\n"), 413),
    ] {
        for mut client in [daemon.client(), daemon.tcp_client()] {
            client.send(&request);
            client.send(&body[..if status == 412 { allowed } else { body.len() }]);
            let answer = client.answer();
            assert_eq!(answer.map(|answer| answer.status), Some(status), "{request}");
        }
    }
}

/// The others of a worker have their turns while it takes a body that never lets it wait, of crumbs too.
#[test]
fn a_large_body_keeps_nobody_waiting() {
    let dir = scratch();
    let args = ["--workers", "1", "--listen", "tcp:127.0.0.1:0"];
    let daemon = Daemon::start(dir.path(), &args);
    for (lines, piece, pieces, end) in [
        ("Content-Length: 536870912", vec![b'x'; 1 << 20], 512, ""),
        ("Transfer-Encoding: chunked", b"1\r\nx\r\n".repeat(1 << 17), 64, "0\r\n\r\n"),
    ] {
        let (mut large, mut small) = (daemon.tcp_client(), daemon.client());
        let (begun, begins) = std::sync::mpsc::channel();
        let sending = std::thread::spawn(move || {
            large.send(format!("PUT /o HTTP/1.1\r\nHost: t\r\n{lines}\r\n\r\n"));
            for at in 0..pieces {
                large.send(&piece);
                // What TCP holds of it is less.
                if at == 16 {
                    begun.send(()).unwrap();
                }
            }
            large.send(end);
            assert!(large.answer().unwrap().status < 300);
        });
        begins.recv().unwrap();
        assert_eq!(small.get("/?no=query").status, 400);
        assert!(!sending.is_finished(), "{lines}: it waited for all of the body");
        sending.join().unwrap();
    }
}

/// Who opened the old version slowly must not bring it back to those who ask after the change.
#[test]
#[cfg_attr(not(debug_assertions), ignore = "this build has no fault points")]
fn a_get_after_an_acknowledgement_never_has_what_was_before_it() {
    let dir = scratch();
    let daemon = Daemon::start_with_fault(dir.path(), "slow@get.opened");
    let (mut writer, mut reader) = (daemon.client(), daemon.client());
    let mut openers: Vec<_> = (0..4).map(|_| daemon.client()).collect();
    for trial in 0..600 {
        writer.put("/o", b"old");
        for opener in &mut openers {
            opener.send("GET /o HTTP/1.1\r\nHost: h\r\n\r\n");
        }
        std::thread::sleep(Duration::from_millis(2));
        if trial % 2 == 0 {
            assert_eq!(writer.put("/o", b"new").status, 204);
        } else {
            assert_eq!(writer.delete("/o").status, 204);
        }
        // Until all that the openers do is done.
        let mut left = openers.len();
        std::thread::scope(|scope| {
            let answers = scope.spawn(|| {
                for opener in &mut openers {
                    opener.answer().unwrap();
                }
            });
            while !answers.is_finished() || left > 0 {
                left -= usize::from(answers.is_finished() && left > 0);
                assert_ne!(reader.get("/o").body, b"old", "in trial {trial}");
            }
        });
    }
}
