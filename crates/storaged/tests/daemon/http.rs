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

    // Made only if there is none; replaced and deleted only if it is still that one.
    assert_eq!(client.request("PUT", "/n", "If-None-Match: *\r\n", b"1").status, 201);
    let taken = daemon.client().request("PUT", "/n", "If-None-Match: *\r\n", b"2");
    assert_eq!(taken.status, 412);
    let stale = format!("If-Match: {tag}\r\n");
    assert_eq!(daemon.client().request("PUT", "/n", &stale, b"2").status, 412);
    assert_eq!(client.request("DELETE", "/n", &stale, b"").status, 412);
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
fn a_part_of_an_object_does_not_replace_it() {
    let (_dir, daemon) = daemon(&[]);
    assert_eq!(daemon.client().put("/o", b"0123456789").status, 201);
    for (method, headers) in [
        ("PUT", "Content-Range: bytes 6-9/10\r\n"),
        ("PUT", "Content-Encoding: gzip\r\n"),
        ("DELETE", "Range: bytes=0-1\r\n"),
    ] {
        let body: &[u8] = if method == "PUT" { b"6789" } else { b"" };
        let refused = daemon.client().request(method, "/o", headers, body);
        assert!(matches!(refused.status, 400 | 415), "{headers}: {}", refused.status);
        assert_eq!(daemon.client().get("/o").body, b"0123456789", "{headers}");
    }
    // What a HEAD would be told of the whole (RFC 9110, 14.2).
    assert_eq!(daemon.client().request("HEAD", "/o", "Range: bytes=0-1\r\n", b"").status, 200);
}

/// The first slash behind a host may stand in the query.
#[test]
fn an_absolute_target_is_split_where_its_parts_end() {
    let (_dir, daemon) = daemon(&[]);
    let put = daemon.client().put("/secret", b"sec");
    assert_eq!(put.status, 201);
    let ask = |method, target, body| daemon.client().request(method, target, "", body);
    for (method, target, status) in [
        ("PUT", "http://h?uploads=/secret", 400),
        ("PUT", "http://h/secret#x", 400),
        ("DELETE", "http://h?x=/secret", 400),
        ("DELETE", "http://[::1/secret", 400),
        ("GET", "http://h/none", 404),
        ("GET", "http://[::1]:80/secret", 200),
    ] {
        let body: &[u8] = if method == "PUT" { b"xxx" } else { b"" };
        assert_eq!(ask(method, target, body).status, status, "{method} {target}");
        assert_eq!(daemon.client().get("/secret").etag(), put.etag(), "{method} {target}");
    }
    for root in ["http://h", "http://h?prefix=/secret", "http://h/?prefix=/secret"] {
        let list = ask("GET", root, b"");
        assert!(list.status == 200 && list.text().contains("\"objects\""), "{root}");
    }
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
    for (prefix, count) in [("a", 5), ("a/", 2), ("a/b/", 1), ("b", 2), ("c", 0)] {
        let json = client.get(&format!("/?prefix={prefix}"));
        let json: serde_json::Value = serde_json::from_slice(&json.body).unwrap();
        assert_eq!(json["objects"].as_array().unwrap().len(), count, "{prefix}");
    }
    // Who comes through a proxy gets none, and may ask on.
    for target in ["/", "/?prefix=a", "http://h"] {
        assert_eq!(client.request("GET", target, "Via: 1.1 p\r\n", b"").status, 403, "{target}");
    }
    assert_eq!(client.get("/?limit=0").status, 400);
}

/// One that will not be taken is not asked for.
#[test]
fn a_body_that_is_waited_for_is_asked_for() {
    let (_dir, daemon) = daemon(&[]);
    let put = "PUT /e HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nExpect: 100-continue\r\n";
    let mut client = daemon.client();
    client.send(format!("{put}\r\n"));
    assert_eq!(client.answer().unwrap().status, 100);
    client.send(b"hello");
    assert_eq!(client.answer().unwrap().status, 201);
    client.send(format!("{put}If-None-Match: *\r\n\r\n"));
    assert_eq!(client.answer().unwrap().status, 412);
    client.assert_ended();
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
    ] {
        let mut client = daemon.client();
        client.send(format!("{head}{smuggled}").as_bytes());
        let response = client.answer().unwrap();
        assert_eq!(response.status, status, "{head:?}");
        assert_eq!(response.header("connection"), Some("close"));
        let json: serde_json::Value = serde_json::from_slice(&response.body).unwrap();
        assert_eq!(json["status"], status);
        client.assert_ended();
    }
    assert_eq!(daemon.stat()["received_body_bytes_total"], 0);
}

#[test]
fn a_refused_head_gets_no_body() {
    let (_dir, daemon) = daemon(&[]);
    for (head, status) in [
        ("HEAD /a HTTP/1.1\r\n\r\n", 400),
        ("HEAD /a//b HTTP/1.1\r\nHost: h\r\n\r\n", 400),
        ("HEAD /a HTTP/1.1\r\nHost: h\nX: y\r\n\r\n", 400),
        ("HEAD /a HTTP/1.1\r\nHost: h\r\nExpect: tea\r\n\r\n", 417),
    ] {
        let mut client = daemon.client();
        client.send(head.as_bytes());
        let response = client.answer_to("HEAD").unwrap();
        assert_eq!(response.status, status, "{head:?}");
        assert_ne!(response.header("content-length"), Some("0"), "{head:?}");
        client.assert_ended();
    }
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
    let (_dir, daemon) = daemon(&[
        "--head-timeout",
        "0.3",
        "--body-timeout",
        "0.3",
        "--idle-timeout",
        "0.3",
        "--send-timeout",
        "0.3",
    ]);
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
    let mut stream = std::os::unix::net::UnixStream::connect(&daemon.unix).unwrap();
    stream.write_all(b"GET /o HTTP/1.1\r\nHost: h\r\n\r\n").unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let mut got = Vec::new();
    std::io::Read::read_to_end(&mut stream, &mut got).unwrap();
    assert!(got.ends_with(&content));
}

#[test]
fn requests_are_counted_and_logged() {
    let (_dir, daemon) = daemon(&[]);
    daemon.client().put("/o", b"0123456789");
    daemon.client().get("/o");
    daemon.wait_for_stat(|stat| stat["sent_copy_bytes_total"] == 10);
    let stat = daemon.stat();
    assert_eq!((stat["received_body_bytes_total"], stat["responses_good_total"]), (10, 2));
    // Objects are not to be had there, nor measurements elsewhere.
    assert_eq!(Peer::connect(&daemon.metrics).get("/o").status, 404);
    assert_eq!(daemon.client().get("/metrics").status, 404);
    daemon.client().get("/%1b%22%0a");
    daemon.wait_for_stat(|stat| stat["responses_4xx_total"] == 2);
    let log = daemon.log();
    let line = log.lines().find(|line| line.contains("method=\"GET\" path=\"/o\" status=200"));
    assert!(line.is_some_and(|line| line.contains("body_bytes=10")), "{log}");
}
