//! What is too large, and what takes too long. Deadlines are short here, patience is not.

use std::time::Duration;

use crate::common::{Backend, connect, counters, eventually, pattern, proxy};

#[test]
fn heads_beyond_the_limits_are_refused() {
    let backend = Backend::standard();
    let server = proxy(&backend, |config| {
        config.limits.head_bytes = 2048;
        config.limits.line_bytes = 512;
        config.limits.headers = 10;
    });
    let long = "a".repeat(600);
    for (request, status) in [
        (format!("GET /{long} HTTP/1.1\r\nHost: t\r\n\r\n"), 414),
        (format!("GET / HTTP/1.1\r\nHost: t\r\nX: {long}\r\n\r\n"), 431),
        (format!("GET / HTTP/1.1\r\nHost: t\r\n{}\r\n", "X: y\r\n".repeat(10)), 431),
        (
            format!(
                "GET / HTTP/1.1\r\nHost: t\r\n{}",
                format!("X: {}\r\n", &long[..400]).repeat(6)
            ),
            431,
        ),
        (long, 414),
    ] {
        let mut client = connect(&server);
        client.send(&request);
        assert_eq!(client.answer().unwrap().status, status, "{request}");
        assert_eq!(client.rest(), b"");
    }
    let mut client = connect(&server);
    client.send(format!("GET /length/3 HTTP/1.1\r\nHost: t\r\n{}\r\n", "X: y\r\n".repeat(9)));
    assert_eq!(client.answer().unwrap().body, pattern(3));
}

#[test]
fn bodies_beyond_the_limit_are_refused_in_both_framings() {
    let backend = Backend::standard();
    let server = proxy(&backend, |config| config.limits.body_bytes = 1000);
    let mut client = connect(&server);
    client.send("PUT /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 1001\r\n\r\n");
    assert_eq!(client.answer().unwrap().status, 413);
    let mut client = connect(&server);
    client.send("PUT /echo HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n");
    client.send(format!("300\r\n{0}\r\n300\r\n{0}\r\n", "x".repeat(0x300)));
    assert_eq!(client.answer().unwrap().status, 413);
    let mut client = connect(&server);
    client.send("PUT /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 1000\r\n\r\n");
    client.send(pattern(1000));
    assert_eq!(client.answer().unwrap().body, pattern(1000));
}

#[test]
fn an_oversized_answer_head_is_a_bad_gateway() {
    let backend = Backend::new(|peer, _| {
        peer.head().unwrap();
        peer.send("HTTP/1.1 200 OK\r\n");
        while peer.try_send("X: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n") {}
    });
    let server = proxy(&backend, |_| {});
    assert_eq!(connect(&server).get("/").status, 502);
}

#[test]
fn a_head_that_drips_in_is_cut_off() {
    let backend = Backend::standard();
    let server = proxy(&backend, |config| config.timeouts.header_ms = 300);
    let mut client = connect(&server);
    for byte in "GET / HTTP/1.1\r\nHost: t\r\n".bytes().chain(std::iter::repeat(b'x')) {
        if !client.try_send([byte]) {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
        if counters(&server)["proxyd_timeouts_total"] > 0 {
            break;
        }
    }
    let answer = client.answer().unwrap();
    assert_eq!((answer.status, answer.header("connection")), (408, Some("close")));
    assert_eq!(backend.connections(), 0);
}

#[test]
fn empty_lines_do_not_keep_an_idle_connection() {
    let backend = Backend::standard();
    let server = proxy(&backend, |config| config.timeouts.keep_alive_ms = 200);
    let mut client = connect(&server);
    for _ in 0..1000 {
        std::thread::sleep(Duration::from_millis(10));
        if !client.try_send("\r\n") {
            return;
        }
    }
    panic!("still open");
}

#[test]
fn a_body_that_stops_is_cut_off_in_both_directions() {
    let backend = Backend::new(|peer, _| {
        let head = peer.head().unwrap();
        if head.starts_with("GET") {
            peer.send("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n");
            peer.send(pattern(50_000));
        }
        peer.rest();
    });
    let server = proxy(&backend, |config| config.timeouts.body_idle_ms = 200);
    let mut client = connect(&server);
    client.send("PUT / HTTP/1.1\r\nHost: t\r\nContent-Length: 10\r\n\r\nhello");
    assert_eq!(client.answer().unwrap().status, 408);
    let mut client = connect(&server);
    client.send("GET / HTTP/1.1\r\nHost: t\r\n\r\n");
    let head = client.head().unwrap();
    assert!(head.contains("Content-Length: 100000"), "{head}");
    assert_eq!(client.rest(), pattern(50_000), "cut off, not padded");
}

#[test]
fn a_backend_that_does_not_answer_is_a_gateway_timeout() {
    let backend = Backend::new(|peer, _| {
        peer.rest();
    });
    let server = proxy(&backend, |config| config.timeouts.backend_header_ms = 200);
    let answer = connect(&server).get("/");
    assert_eq!(answer.status, 504);
    assert!(String::from_utf8(answer.body).unwrap().contains("no answer"));
}

#[test]
fn idle_connections_are_closed_on_both_sides() {
    let backend = Backend::standard();
    let server = proxy(&backend, |config| {
        config.timeouts.keep_alive_ms = 200;
        config.timeouts.backend_idle_ms = 200;
    });
    let mut client = connect(&server);
    client.get("/length/1");
    assert_eq!(client.rest(), b"");
    eventually("no idle backend connection", || counters(&server)["proxyd_backend_idle"] == 0);
}

#[test]
fn beyond_the_limit_connections_wait_to_be_accepted() {
    let backend = Backend::standard();
    let server = proxy(&backend, |config| config.limits.connections = 2);
    let (mut one, mut two) = (connect(&server), connect(&server));
    // Not idle: a connection in the middle of a request makes no room.
    one.send("GET /length/1");
    two.send("GET /length/2");
    let accepted = || counters(&server)["proxyd_connections_accepted_total"];
    eventually("both are in", || accepted() == 2);
    std::thread::sleep(Duration::from_millis(100));
    let mut three = connect(&server);
    three.send("GET /length/3 HTTP/1.1\r\nHost: t\r\n\r\n");
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(counters(&server)["proxyd_connections_accepted_total"], 2);
    drop(one);
    assert_eq!(three.answer().unwrap().body, pattern(3));
    two.send(" HTTP/1.1\r\nHost: t\r\n\r\n");
    assert_eq!(two.answer().unwrap().body, pattern(2));
}

#[test]
fn idle_backend_connections_are_bounded() {
    let backend = Backend::standard();
    let server = proxy(&backend, |config| config.limits.backend_idle = 3);
    let mut clients: Vec<_> = (0..8).map(|_| connect(&server)).collect();
    for client in &mut clients {
        // All at once, so that each needs a connection of its own.
        client.send("GET /length/2000000 HTTP/1.1\r\nHost: t\r\n\r\n");
    }
    for client in &mut clients {
        assert!(client.answer().unwrap().body == pattern(2_000_000));
    }
    eventually("three are kept", || counters(&server)["proxyd_backend_idle"] == 3);
}

/// A byte now and then is no progress, however steadily it comes.
#[test]
fn a_body_that_drips_in_is_cut_off() {
    let backend = Backend::standard();
    let server = proxy(&backend, |config| config.timeouts.body_idle_ms = 500);
    for (at, framing) in ["Content-Length: 1000", "Transfer-Encoding: chunked"].iter().enumerate() {
        let mut client = connect(&server);
        client.send(format!("PUT /echo HTTP/1.1\r\nHost: t\r\n{framing}\r\n\r\n"));
        let mut cut = false;
        for _ in 0..1000 {
            let piece = if framing.starts_with('C') { "x" } else { "1\r\nx\r\n" };
            cut = !client.try_send(piece) || counters(&server)["proxyd_timeouts_total"] > at as u64;
            if cut {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        assert!(cut, "{framing}: it went on for ever");
    }
    eventually("both are counted", || counters(&server)["proxyd_timeouts_total"] == 2);
}

/// A reader that is slow, but not too slow, gets all of it, though no event ever says that its
/// socket has much room; and the backend, which wants to see progress, sees some.
#[test]
fn a_slow_reader_gets_all_of_it_and_the_backend_sees_that_it_reads() {
    const BYTES: usize = 6 << 20;
    let stuck = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(0));
    let longest = std::sync::Arc::clone(&stuck);
    let backend = Backend::new(move |peer, _| {
        peer.head().unwrap();
        peer.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {BYTES}\r\n\r\n"));
        for piece in pattern(BYTES).chunks(16 << 10) {
            let began = std::time::Instant::now();
            if !peer.try_send(piece) {
                return;
            }
            let took = began.elapsed().as_millis() as u64;
            longest.fetch_max(took, std::sync::atomic::Ordering::SeqCst);
        }
        peer.rest();
    });
    for splice in [true, false] {
        let server = proxy(&backend, |config| {
            config.splice = splice;
            config.timeouts.body_idle_ms = 1000;
        });
        let mut client = connect(&server);
        client.send("GET / HTTP/1.1\r\nHost: t\r\n\r\n");
        let head = client.head().unwrap();
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        let mut got = Vec::new();
        // 200 KB/s, in pieces, for some seconds; then the rest.
        while got.len() < 2 << 20 {
            got.extend(client.bytes(20 << 10));
            std::thread::sleep(Duration::from_millis(100));
        }
        got.extend(client.bytes(BYTES - got.len()));
        assert!(got == pattern(BYTES), "{} bytes", got.len());
        println!("the backend was stuck for {stuck:?} ms at most");
    }
}

/// A client whose system tells by large steps that it reads: what it took covers a pause. One that
/// takes nothing any more is cut off all the same.
#[test]
fn what_a_client_took_covers_a_pause_and_a_pause_has_an_end() {
    const BYTES: usize = 24 << 20;
    let backend = Backend::standard();
    let server = proxy(&backend, |config| config.timeouts.body_idle_ms = 1000);
    let ask = |client: &mut crate::common::Peer| {
        client.send(format!("GET /length/{BYTES} HTTP/1.1\r\nHost: t\r\n\r\n"));
        let head = client.head().unwrap();
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        client.bytes(2 << 20)
    };
    let mut client = connect(&server);
    let mut got = ask(&mut client);
    std::thread::sleep(Duration::from_secs(3));
    got.extend(client.bytes(BYTES - got.len()));
    assert!(got == pattern(BYTES), "{} bytes", got.len());
    let server = proxy(&backend, |config| config.timeouts.body_idle_ms = 50);
    let mut client = connect(&server);
    ask(&mut client);
    eventually("it is cut off", || counters(&server)["proxyd_exchanges_aborted_total"] == 1);
}
