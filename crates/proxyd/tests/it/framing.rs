//! Bodies of every framing and size, spliced and copied, both ways.

use std::thread;
use std::time::Duration;

use crate::common::{Backend, config, connect, counters, eventually, pattern, proxy};

/// Around the sizes at which something changes: a read, the least splice, a buffer, a pipe.
const SIZES: [usize; 17] = [
    0, 1, 511, 512, 513, 1000, 1024, 16_383, 16_384, 16_385, 65_535, 65_536, 65_537, 262_144,
    1_048_575, 1_048_577, 5_000_000,
];

#[test]
fn responses_arrive_whole_in_every_framing() {
    let backend = Backend::standard();
    for splice in [true, false] {
        let server = proxy(&backend, |config| config.splice = splice);
        let mut client = connect(&server);
        for size in SIZES {
            assert!(client.get(&format!("/length/{size}")).body == pattern(size), "{size}");
            let mut other = connect(&server);
            assert!(other.get(&format!("/close/{size}")).body == pattern(size), "{size}");
        }
        let sent = 2 * SIZES.iter().sum::<usize>() as u64;
        eventually("all is counted", || {
            counters(&server)["proxyd_response_body_bytes_total"] == sent
        });
        let counted = counters(&server);
        let spliced = counted["proxyd_spliced_bytes_total"];
        assert_eq!(spliced + counted["proxyd_copied_bytes_total"], sent);
        let expected = if splice { sent / 10 * 9..sent } else { 0..1 };
        assert!(expected.contains(&spliced), "{spliced} of {sent}");
    }
}

#[test]
fn chunks_arrive_as_chunks_and_large_ones_are_spliced() {
    let backend = Backend::standard();
    for splice in [true, false] {
        let server = proxy(&backend, |config| config.splice = splice);
        let mut client = connect(&server);
        for size in SIZES {
            for chunk in [7, 512, 16_384, 20_000, 65_536, 3_000_000] {
                // Crumbs are dear, and a thousand of them say no less than a million.
                let size = size.min(chunk * 1000);
                client.send(format!("GET /chunked/{size}/{chunk} HTTP/1.1\r\nHost: t\r\n\r\n"));
                let head = client.head().unwrap();
                assert!(head.contains("Transfer-Encoding: chunked\r\n"), "{head}");
                let (body, sizes) = client.chunked();
                assert!(body == pattern(size), "{size} in {chunk}");
                let last = size % chunk;
                let whole = std::iter::repeat_n(chunk, size / chunk);
                let expected: Vec<usize> = whole.chain((last > 0).then_some(last)).collect();
                assert!(sizes == expected, "{size} in {chunk}");
            }
        }
        let spliced = counters(&server)["proxyd_spliced_bytes_total"];
        assert_eq!(spliced > 0, splice);
    }
    assert_eq!(backend.connections(), 2, "what follows a chunked body is a response again");
}

#[test]
fn small_bodies_are_copied_and_large_ones_spliced() {
    let backend = Backend::standard();
    let server = proxy(&backend, |_| {});
    let mut client = connect(&server);
    client.get("/length/10000");
    assert_eq!(counters(&server)["proxyd_spliced_bytes_total"], 0);
    client.get("/length/1000000");
    // Copied are what came with the head, 1 KiB at most, and a rest that is too small for a splice
    // of its own. It is counted after the client has it.
    let least = 1_000_000 - 1024 - config(&backend).limits.splice_min_bytes;
    eventually("it is counted", || {
        (least..=1_000_000).contains(&counters(&server)["proxyd_spliced_bytes_total"])
    });
}

#[test]
fn answers_without_a_body_are_followed_by_the_next() {
    let backend = Backend::standard();
    let server = proxy(&backend, |_| {});
    let mut client = connect(&server);
    for (path, line) in [
        ("/length/100000", "Content-Length: 100000\r\n"),
        ("/chunked/100000/1000", "Transfer-Encoding: chunked\r\n"),
    ] {
        client.send(format!("HEAD {path} HTTP/1.1\r\nHost: test\r\n\r\n"));
        let head = client.head().unwrap();
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && head.contains(line), "{head}");
    }
    for status in [204, 304] {
        assert_eq!(client.get(&format!("/status/{status}")).status, status);
    }
    assert_eq!(client.get("/length/5").body, pattern(5));
    assert_eq!(backend.connections(), 1);
}

#[test]
fn request_bodies_arrive_whole_in_both_framings() {
    let backend = Backend::standard();
    for splice in [true, false] {
        let server = proxy(&backend, |config| config.splice = splice);
        let mut client = connect(&server);
        for size in SIZES {
            client.send(format!("PUT /echo HTTP/1.1\r\nHost: t\r\nContent-Length: {size}\r\n\r\n"));
            client.send(pattern(size));
            assert!(client.answer().unwrap().body == pattern(size), "{size}");
            client.send("POST /echo HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n");
            for piece in pattern(size).chunks(30_000) {
                client.send(format!("{:x}\r\n", piece.len()));
                client.send(piece);
                client.send("\r\n");
            }
            client.send("0\r\n\r\n");
            assert!(client.answer().unwrap().body == pattern(size), "{size}");
        }
        assert_eq!(counters(&server)["proxyd_spliced_bytes_total"] > 0, splice);
    }
}

#[test]
fn a_slow_reader_holds_the_backend_back() {
    let backend = Backend::standard();
    let server = proxy(&backend, |_| {});
    let mut client = connect(&server);
    let len = 40_000_000;
    client.send(format!("GET /length/{len} HTTP/1.1\r\nHost: test\r\n\r\n"));
    let head = client.head().unwrap();
    thread::sleep(Duration::from_millis(300));
    // Another is served meanwhile, and what is kept for the first is what sockets and a pipe hold.
    assert_eq!(connect(&server).get("/length/5").body, pattern(5));
    assert!(client.body(&head) == pattern(len));
}

#[test]
fn without_pipes_bodies_are_copied() {
    let backend = Backend::standard();
    let server = proxy(&backend, |config| config.limits.pipes = 0);
    let mut client = connect(&server);
    assert_eq!(client.get("/length/1000000").body, pattern(1_000_000));
    assert_eq!(client.get("/chunked/1000000/300000").body, pattern(1_000_000));
    assert_eq!(counters(&server)["proxyd_spliced_bytes_total"], 0);
}
