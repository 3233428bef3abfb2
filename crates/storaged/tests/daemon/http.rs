//! What is said over real sockets.

use std::io::Write;
use std::time::Duration;

use crate::common::{Daemon, Peer, bytes};

fn daemon(args: &[&str]) -> (tempfile::TempDir, Daemon) {
    let dir = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(dir.path(), args);
    (dir, daemon)
}

#[test]
fn an_object_s_life_on_both_kinds_of_socket() {
    let (_dir, daemon) = daemon(&["--listen", "tcp:127.0.0.1:0"]);
    for mut client in [daemon.client(), daemon.tcp_client()] {
        for size in [0, 1, 15_000, 16_384, 65_536, 65_537, 3_000_000] {
            let (first, second) = (bytes(1, size), bytes(2, size + 1));
            let put = client.request("PUT", "/a/b%20c", "Content-Type: text/x\r\n", &first);
            assert_eq!(put.status, 201);
            let get = client.get("/a/b%20c");
            assert_eq!((get.status, get.etag()), (200, put.etag()));
            assert_eq!(get.header("content-type"), Some("text/x"));
            assert!(get.body == first, "{size}");
            let head = client.request("HEAD", "/a/b%20c", "", b"");
            assert_eq!((head.status, head.etag()), (200, put.etag()));
            assert_eq!(head.header("content-length"), Some(&*size.to_string()));
            let again = client.put("/a/b%20c", &second);
            assert_eq!(again.status, 204);
            assert_ne!(again.etag(), put.etag());
            assert!(client.get("/a/b%20c").body == second);
            assert_eq!(client.delete("/a/b%20c").status, 204);
            assert_eq!(client.get("/a/b%20c").status, 404);
            assert_eq!(client.delete("/a/b%20c").status, 404);
        }
    }
    assert_eq!(daemon.blobs(), 0);
    daemon.stop();
}

#[test]
fn ranges_and_conditions() {
    let (_dir, daemon) = daemon(&[]);
    let mut client = daemon.client();
    let content = bytes(3, 200_000);
    let put = client.put("/o", &content);
    let tag = put.etag().to_owned();
    let part = client.request("GET", "/o", "Range: bytes=65535-65536\r\n", b"");
    let said = part.header("content-range");
    assert_eq!((part.status, said), (206, Some("bytes 65535-65536/200000")));
    assert!(part.body == content[65_535..65_537]);
    let beyond = client.request("GET", "/o", "Range: bytes=200000-\r\n", b"");
    assert_eq!((beyond.status, beyond.header("content-range")), (416, Some("bytes */200000")));
    let same = client.request("GET", "/o", &format!("If-None-Match: {tag}\r\n"), b"");
    assert_eq!((same.status, same.etag(), same.body.len()), (304, &*tag, 0));
    let unlike = client.request("GET", "/o", "If-Match: \"x\"\r\n", b"");
    assert_eq!(unlike.status, 412);
    // What a HEAD would be told of the whole (RFC 9110, 14.2).
    assert_eq!(client.request("HEAD", "/o", "Range: bytes=0-1\r\n", b"").status, 200);

    // The model has the others.
    assert_eq!(client.put("/n", b"1").status, 201);
    let stale = format!("If-Match: {tag}\r\n");
    assert_eq!(client.request("DELETE", "/missing", "If-Match: *\r\n", b"").status, 412);
    let right = format!("If-Match: {}\r\n", client.get("/n").etag());
    assert_eq!(client.get("/n").body, b"1");
    let old = "If-Unmodified-Since: Sat, 29 Oct 1994 19:43:31 GMT\r\n";
    for (method, body) in [("PUT", &b"2"[..]), ("DELETE", b""), ("GET", b""), ("HEAD", b"")] {
        assert_eq!(daemon.client().request(method, "/n", old, body).status, 412, "{method}");
    }
    // A tag goes before a date, and a list has neither.
    assert_eq!(client.request("PUT", "/n", &(right + old), b"2").status, 204);
    assert_eq!(client.request("GET", "/", &stale, b"").status, 412);
    assert_eq!(client.request("GET", "/", "If-None-Match: *\r\n", b"").status, 304);
    assert_eq!(client.get("/n").body, b"2");
}

#[test]
fn lists_are_in_order_and_in_pages() {
    let (_dir, daemon) = daemon(&[]);
    let mut client = daemon.client();
    let mut keys = vec!["a", "a-b", "a/b", "a/b/c", "a0", "b/ä", "b/x y", "z"];
    for key in &keys {
        let encoded: String = key
            .bytes()
            .map(|byte| match byte {
                b'/' => "/".to_owned(),
                byte => format!("%{byte:02X}"),
            })
            .collect();
        assert_eq!(client.put(&format!("/{encoded}"), key.as_bytes()).status, 201);
    }
    keys.sort_unstable();
    for limit in 1..=keys.len() + 1 {
        let (mut found, mut after) = (Vec::new(), String::new());
        loop {
            let page = client.get(&format!("/?limit={limit}&after={after}"));
            let json: serde_json::Value = serde_json::from_slice(&page.body).unwrap();
            for object in json["objects"].as_array().unwrap() {
                let key = object["key"].as_str().unwrap().to_owned();
                assert_eq!(object["bytes"], key.len());
                found.push(key);
            }
            let Some(next) = json["next"].as_str() else { break };
            after = next.bytes().map(|byte| format!("%{byte:02x}")).collect();
        }
        assert_eq!(found, keys, "limit {limit}");
    }
    // Who comes through a proxy gets none, and may ask on.
    for target in ["/", "/?prefix=a", "http://h"] {
        assert_eq!(client.request("GET", target, "Via: 1.1 p\r\n", b"").status, 403, "{target}");
    }
    assert_eq!(client.get("/?limit=0").status, 400);
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
    assert_eq!((daemon.list().len(), daemon.blobs()), (1, 1));
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
fn a_client_that_closes_its_side_is_still_answered() {
    let (_dir, daemon) = daemon(&[]);
    let content = bytes(6, 2_000_000);
    daemon.client().put("/o", &content);
    let mut client = daemon.client();
    client.send("GET /o HTTP/1.1\r\nHost: h\r\n\r\n");
    client.half_close();
    assert!(client.answer().unwrap().body == content);
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
    let log = daemon.log();
    let line = log.lines().find(|line| line.contains("request=\"GET /o\" status=200"));
    assert!(line.is_some_and(|line| line.contains("body_bytes=10")), "{log}");
}
