//! Bodies of every framing and size, spliced and copied, both ways, and whose they are.

use httpd::Place;
use proxyd::config::Mode;

use crate::common::{Backend, Peer, connect, counters, in_chunks, pattern, proxy};

/// Around the sizes at which something changes: a read, the least splice, a buffer, a pipe.
const SIZES: [usize; 17] = [
    0, 1, 511, 512, 513, 1000, 1024, 16_383, 16_384, 16_385, 65_535, 65_536, 65_537, 262_144,
    1_048_575, 1_048_577, 5_000_000,
];

/// Request and answer of that size in every framing; what is in the answer's chunks is as it came.
fn exchange(client: &mut Peer, size: usize) {
    assert!(client.get(&format!("/length/{size}")).body == pattern(size), "{size}");
    client.send(format!("PUT /echo HTTP/1.1\r\nHost: t\r\nContent-Length: {size}\r\n\r\n"));
    client.send(pattern(size));
    assert!(client.answer().unwrap().body == pattern(size), "{size}");
    client.send("POST /echo HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n");
    client.send(in_chunks(&pattern(size), 30_000));
    assert!(client.answer().unwrap().body == pattern(size), "{size}");
    for chunk in [7, 512, 16_384, 20_000, 65_536, 3_000_000] {
        // Crumbs are dear, and a thousand of them say no less than a million.
        let size = size.min(chunk * 1000);
        client.send(format!("GET /chunked/{size}/{chunk} HTTP/1.1\r\nHost: t\r\n\r\n"));
        let head = client.head().unwrap();
        assert!(head.contains("Transfer-Encoding: chunked\r\n"), "{head}");
        let (body, sizes) = client.chunked();
        assert!(body == pattern(size), "{size} in {chunk}");
        let whole = std::iter::repeat_n(chunk, size / chunk);
        let last = Some(size % chunk).filter(|last| *last > 0);
        assert!(sizes == whole.chain(last).collect::<Vec<_>>(), "{size} in {chunk}");
    }
}

#[test]
fn bodies_arrive_whole_in_every_framing_both_ways() {
    let backend = Backend::standard();
    for (pipes, mode) in [(1024, Mode::Nt), (0, Mode::Nt)] {
        let server = proxy(&backend, |config| (config.pipes, config.mode) = (pipes, mode));
        let mut client = connect(&server);
        client.get("/length/10000");
        assert_eq!(counters(&server)["spliced_bytes_total"], 0, "what is small is copied");
        for size in SIZES {
            exchange(&mut client, size);
            let mut other = connect(&server);
            assert!(other.get(&format!("/close/{size}")).body == pattern(size), "{size}");
        }
        assert_eq!(counters(&server)["spliced_bytes_total"] > 0, pipes > 0);
    }
    // A TCP backend, which the proxy itself is.
    let inner = proxy(&backend, |_| {});
    let at = inner.http.addresses[0].clone();
    let outer = proxy(&backend, |config| config.backend = Place::At(vec![at]));
    exchange(&mut connect(&outer), 1_048_577);
}

#[test]
fn crumbs_arrive_as_they_were_sent_in_their_plainest_spelling() {
    let (mut sent, mut plain) = (Vec::new(), Vec::new());
    for at in 0..100_000_usize {
        let (size, inside) = (at % 37 + 1, "x".repeat(at % 37 + 1));
        let spelled = match at % 50 {
            3 => format!("{size:X};a=b"),
            9 => format!("0{size:x}"),
            _ => format!("{size:x}"),
        };
        sent.extend(format!("{spelled}\r\n{inside}\r\n").as_bytes());
        plain.extend(format!("{size:x}\r\n{inside}\r\n").as_bytes());
    }
    sent.extend(b"0\r\nX: y\r\n\r\n");
    plain.extend(b"0\r\n\r\n");
    let backend = Backend::new(move |peer, _| {
        peer.head().unwrap();
        assert!(peer.bytes(plain.len()) == plain);
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    });
    let server = proxy(&backend, |_| {});
    let mut client = connect(&server);
    client.send("PUT / HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n");
    client.send(&sent);
    assert_eq!(client.answer().unwrap().body, b"ok");
}

#[test]
fn pipelined_requests_are_answered_in_order_and_none_is_taken_for_a_body() {
    let backend = Backend::standard();
    let server = proxy(&backend, |_| {});
    let mut client = connect(&server);
    let lens: Vec<usize> = (0..60).map(|at| (at * 7919) % 50_000).collect();
    let get = |len: &usize| format!("\r\nGET /length/{len} HTTP/1.1\r\nHost: test\r\n\r\n");
    client.send(lens.iter().map(get).collect::<String>());
    for len in lens {
        assert_eq!(client.answer().unwrap().body, pattern(len));
    }
    client.send(
        "POST /echo HTTP/1.1\r\nHost: test\r\nContent-Length: 5\r\n\r\nhello\
         POST /echo HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n\
         3\r\none\r\n3;x=y\r\ntwo\r\n0\r\nT: x\r\n\r\nHEAD /length/9 HTTP/1.1\r\nHost: test\r\n\r\n\
         GET /status/304 HTTP/1.1\r\nHost: t\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n\
         GET /status/204 HTTP/1.1\r\nHost: t\r\n\r\nGET /length/3 HTTP/1.1\r\nHost: test\r\n\r\n",
    );
    assert_eq!(client.answer().unwrap().body, b"hello");
    assert_eq!(client.answer().unwrap().body, b"onetwo");
    assert!(client.head().unwrap().contains("Content-Length: 9\r\n"));
    assert_eq!(client.answer().unwrap().status, 304);
    // It says nothing of a length (RFC 9110, 8.6), though the backend does.
    assert!(!client.head().unwrap().contains("Content-Length"));
    assert_eq!(client.answer().unwrap().body, pattern(3));
    assert_eq!((backend.heads().len(), backend.connections()), (66, 1));
}

#[test]
fn a_waiting_client_gets_the_backends_100_or_its_refusal() {
    let backend = Backend::new(|peer, number| {
        let head = peer.head().unwrap();
        assert!(head.contains("Expect: 100-continue\r\n"), "{head}");
        if number == 1 {
            peer.send("HTTP/1.1 417 No\r\nContent-Length: 0\r\n\r\n");
            peer.rest();
            return;
        }
        peer.send("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n");
        assert_eq!(peer.bytes(5), b"hello");
        peer.send("HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n");
    });
    let server = proxy(&backend, |config| config.backend_idle = 0);
    let put = "PUT /x HTTP/1.1\r\nHost: test\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n";
    let mut client = connect(&server);
    client.send(put);
    let hints = client.answer().unwrap();
    assert_eq!((hints.status, hints.header("link")), (103, Some("x")));
    assert_eq!(client.answer().unwrap().status, 100);
    client.send("hello");
    let answer = client.answer().unwrap();
    assert_eq!((answer.status, answer.header("connection")), (201, None));
    client.send(put);
    let answer = client.answer().unwrap();
    assert_eq!((answer.status, answer.header("connection")), (417, Some("close")));
    assert_eq!(client.rest(), b"");
}

#[test]
fn a_client_of_http_1_0_gets_what_it_understands() {
    let backend = Backend::standard();
    let server = proxy(&backend, |_| {});
    let mut client = connect(&server);
    for _ in 0..2 {
        client.send("GET /length/5 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
        let answer = client.answer().unwrap();
        assert_eq!((answer.header("connection"), &answer.body), (Some("keep-alive"), &pattern(5)));
    }
    client.send("GET /chunked/100000/30000 HTTP/1.0\r\n\r\n");
    let answer = client.answer().unwrap();
    assert_eq!(answer.header("transfer-encoding"), None);
    assert_eq!((answer.header("connection"), &answer.body), (Some("close"), &pattern(100_000)));
}
