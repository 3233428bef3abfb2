//! Clients and backends that go away, at every point of an exchange.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};

use proxyd::net::{Address, Place};

use crate::common::{Backend, connect, counters, eventually, pattern, proxy};

#[test]
fn a_client_that_half_closes_is_still_answered() {
    let backend = Backend::standard();
    let server = proxy(&backend, |_| {});
    let mut client = connect(&server);
    client.send("GET /length/3000000 HTTP/1.1\r\nHost: t\r\n\r\n");
    client.half_close();
    assert!(client.answer().unwrap().body == pattern(3_000_000));
    assert_eq!(client.rest(), b"");
}

#[test]
fn a_client_that_half_closes_within_its_request_is_told() {
    let backend = Backend::standard();
    let server = proxy(&backend, |_| {});
    let mut client = connect(&server);
    client.send("PUT /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 10\r\n\r\nhello");
    client.half_close();
    assert_eq!(client.answer().unwrap().status, 400);
    let mut client = connect(&server);
    client.send("GET / HTTP/1.1\r\nHo");
    client.half_close();
    assert_eq!(client.rest(), b"");
}

#[test]
fn a_client_that_goes_away_takes_its_backend_connection_along() {
    let (told, ended) = mpsc::channel();
    let backend = Backend::new(move |peer, _| {
        peer.head().unwrap();
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n");
        while peer.try_send(pattern(100_000)) {}
        told.send(()).unwrap();
    });
    let server = proxy(&backend, |_| {});
    let mut client = connect(&server);
    client.send("GET / HTTP/1.1\r\nHost: t\r\n\r\n");
    client.head().unwrap();
    client.bytes(200_000);
    drop(client);
    ended.recv().unwrap();
    eventually("it is counted", || counters(&server)["proxyd_clients_gone_total"] == 1);
    eventually("it is gone", || counters(&server)["proxyd_connections_open"] == 0);
}

#[test]
fn a_client_that_goes_away_before_the_answer_is_noticed() {
    let (told, ended) = mpsc::channel();
    let backend = Backend::new(move |peer, _| {
        peer.head().unwrap();
        assert_eq!(peer.rest(), b"");
        told.send(()).unwrap();
    });
    // A socket that closes with unread bytes resets; one that is merely closed could be a
    // half-close, and its owner still wait.
    let server = proxy(&backend, |config| config.listen = vec![config.listen[0].clone()]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.sock");
    let unix = proxy(&backend, |config| config.listen = vec![Address::Unix(path.clone()).into()]);
    let mut client =
        crate::common::Peer::new(std::os::unix::net::UnixStream::connect(&path).unwrap());
    client.send("GET / HTTP/1.1\r\nHost: t\r\n\r\n");
    eventually("the backend has it", || backend.connections() == 1);
    drop(client);
    ended.recv().unwrap();
    drop((server, unix));
}

#[test]
fn a_body_that_breaks_off_is_cut_off_and_never_padded() {
    for (head, body) in [
        ("Content-Length: 100000\r\n", pattern(60_000)),
        ("Content-Length: 100000\r\n", pattern(10)),
        ("Transfer-Encoding: chunked\r\n", [&b"186A0\r\n"[..], &pattern(60_000)].concat()),
        ("Transfer-Encoding: chunked\r\n", b"5\r\nhello\r\n".to_vec()),
    ] {
        let backend = Backend::new(move |peer, _| {
            peer.head().unwrap();
            peer.send(format!("HTTP/1.1 200 OK\r\n{head}\r\n"));
            peer.send(&body);
        });
        for splice in [true, false] {
            let server = proxy(&backend, |config| config.splice = splice);
            let mut client = connect(&server);
            client.send("GET / HTTP/1.1\r\nHost: t\r\n\r\n");
            let answer = client.head();
            let got = client.rest();
            match answer {
                // Where the end came with the beginning, nothing was sent yet, and an error is
                // the better answer.
                Some(answer) if answer.starts_with("HTTP/1.1 502") => {}
                Some(answer) => {
                    assert!(answer.contains(head), "{answer}");
                    assert!(got.len() <= 60_010, "{}", got.len());
                    assert!(!got.ends_with(b"0\r\n\r\n"), "a last chunk was made up");
                    let payload = got.strip_prefix(b"186a0\r\n").unwrap_or(&got);
                    assert!(payload.starts_with(b"5\r\n") || pattern(60_000).starts_with(payload));
                }
                None => panic!("closed without an answer"),
            }
        }
    }
}

#[test]
fn an_answer_whose_end_only_the_close_tells_is_reset_when_it_breaks() {
    let backend = Backend::new(|peer, _| {
        peer.head().unwrap();
        peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n186A0\r\n");
        peer.send(pattern(60_000));
    });
    let server = proxy(&backend, |_| {});
    let Address::Tcp(address) = server.addresses().plain[0] else { panic!() };
    let mut client = std::net::TcpStream::connect(address).unwrap();
    std::io::Write::write_all(&mut client, b"GET / HTTP/1.0\r\n\r\n").unwrap();
    let mut got = Vec::new();
    let error = std::io::Read::read_to_end(&mut client, &mut got).expect_err("a reset");
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
}

#[test]
fn a_backend_may_answer_before_it_has_the_whole_request() {
    let backend = Backend::new(|peer, _| {
        peer.head().unwrap();
        peer.bytes(1000);
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nearly");
        peer.rest();
    });
    let server = proxy(&backend, |_| {});
    let mut client = connect(&server);
    client.send("PUT / HTTP/1.1\r\nHost: t\r\nContent-Length: 100000\r\n\r\n");
    client.send(pattern(1000));
    let answer = client.answer().unwrap();
    assert_eq!((answer.status, answer.body.as_slice()), (200, &b"early"[..]));
    assert_eq!(answer.header("connection"), Some("close"));
    assert_eq!(client.rest(), b"");
}

#[test]
fn a_backend_may_answer_and_close_before_it_has_the_whole_request() {
    let backend = Backend::new(|peer, _| {
        peer.head().unwrap();
        peer.send("HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno");
    });
    let server = proxy(&backend, |_| {});
    for _ in 0..20 {
        let mut client = connect(&server);
        client.send("PUT / HTTP/1.1\r\nHost: t\r\nContent-Length: 10000000\r\n\r\n");
        // The answer comes while this is being sent, and the rest is thrown away or refused.
        for piece in pattern(10_000_000).chunks(100_000) {
            if !client.try_send(piece) {
                break;
            }
        }
        if let Some(head) = client.head() {
            assert!(head.starts_with("HTTP/1.1 413") || head.starts_with("HTTP/1.1 502"), "{head}");
        }
    }
}

#[test]
fn a_kept_connection_that_turns_out_closed_costs_nothing() {
    // Every connection serves one request and closes, saying nothing about it.
    let backend = Backend::new(|peer, _| {
        let head = peer.head().unwrap();
        let body = peer.body(&head);
        peer.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len()));
        peer.send(body);
    });
    let server = proxy(&backend, |_| {});
    let mut client = connect(&server);
    for _ in 0..200 {
        assert_eq!(client.get("/").status, 200);
        client.send("PUT / HTTP/1.1\r\nHost: t\r\nContent-Length: 5\r\n\r\nhello");
        // A body that was sent is gone: if the backend closes just then, the client gets a 502.
        match client.answer() {
            Some(answer) if answer.status == 200 => assert_eq!(answer.body, b"hello"),
            Some(answer) => {
                assert_eq!(answer.status, 502);
                client = connect(&server);
            }
            None => panic!("closed without an answer"),
        }
    }
}

#[test]
fn only_what_may_be_done_twice_is_tried_twice() {
    // The first request on a connection is answered, the second read and dropped.
    let backend = Backend::new(|peer, _| {
        peer.head().unwrap();
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        peer.head();
    });
    for (method, status, connections) in [("GET", 200, 2), ("POST", 502, 1), ("DELETE", 502, 1)] {
        let before = backend.connections();
        let server = proxy(&backend, |_| {});
        let mut client = connect(&server);
        assert_eq!(client.get("/").status, 200);
        client.send(format!("{method} / HTTP/1.1\r\nHost: t\r\n\r\n"));
        assert_eq!(client.answer().unwrap().status, status, "{method}");
        assert_eq!(backend.connections() - before, connections, "{method}");
        let retries = counters(&server)["proxyd_backend_retries_total"];
        assert_eq!(retries, connections as u64 - 1, "{method}");
    }
}

#[test]
fn a_fresh_connection_that_drops_the_request_is_a_bad_gateway() {
    let backend = Backend::new(|peer, _| {
        peer.head().unwrap();
    });
    let server = proxy(&backend, |_| {});
    assert_eq!(connect(&server).get("/").status, 502);
    assert_eq!(backend.connections(), 1, "it may have been acted upon");
}

#[test]
fn dead_backends_are_passed_over() {
    let backend = Backend::standard();
    let server = proxy(&backend, |config| {
        config.backends.insert(0, "unix:/nonexistent/a".parse().unwrap());
        config.backends.push("tcp:127.0.0.1:1".parse().unwrap());
    });
    let mut client = connect(&server);
    for _ in 0..30 {
        client.send("POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 5\r\n\r\nhello");
        assert_eq!(client.answer().unwrap().body, b"hello", "nothing was sent to the dead");
    }
    let retries = counters(&server)["proxyd_backend_retries_total"];
    assert!(
        (2..=6).contains(&retries),
        "three failures each, then they are passed over: {retries}"
    );
}

#[test]
fn without_a_living_backend_the_client_is_told() {
    let backend = Backend::standard();
    let server = proxy(&backend, |config| {
        config.backends = vec!["unix:/nonexistent/a".parse().unwrap()];
    });
    for _ in 0..10 {
        let answer = connect(&server).get("/");
        assert_eq!(answer.status, 503);
        assert!(String::from_utf8(answer.body).unwrap().contains("unix:/nonexistent/a"));
    }
    let mut client = connect(&server);
    client.send("HEAD / HTTP/1.1\r\nHost: t\r\n\r\n");
    assert!(client.head().unwrap().starts_with("HTTP/1.1 503"));
    assert_eq!(client.rest(), b"", "HEAD has no body");
}

#[test]
fn a_backend_that_comes_back_is_used_again() {
    let healthy = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&healthy);
    let backend = Backend::new(move |peer, _| {
        while flag.load(Ordering::SeqCst) && peer.head().is_some() {
            peer.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        }
    });
    let server = proxy(&backend, |config| config.health.down_ms = 100);
    for _ in 0..5 {
        assert_eq!(connect(&server).get("/").status, 502);
    }
    healthy.store(true, Ordering::SeqCst);
    eventually("it serves", || connect(&server).get("/").status == 200);
}

#[test]
fn no_byte_of_a_broken_exchange_reaches_another() {
    // It never stops, not even where its answer should end.
    let backend = Backend::new(|peer, _| {
        let head = peer.head().unwrap();
        let byte = head.split(' ').nth(1).unwrap().as_bytes()[1];
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n");
        while peer.try_send([byte; 100_000]) {}
    });
    let server = proxy(&backend, |config| config.limits.pipes = 2);
    for byte in b'a'..=b'z' {
        let mut client = connect(&server);
        client.send(format!("GET /{} HTTP/1.1\r\nHost: t\r\n\r\n", char::from(byte)));
        let head = client.head().unwrap();
        if head.starts_with("HTTP/1.1 502") {
            // The connection was kept before the backend went on talking, and what it said then
            // was no answer.
            continue;
        }
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        let len = if byte % 2 == 0 { 150_000 } else { 1_000_000 };
        let got = client.bytes(len);
        assert!(got.len() == len && got.iter().all(|other| *other == byte), "another's byte");
    }
}

#[test]
fn interim_answers_have_an_end() {
    let backend = Backend::new(|peer, _| {
        let head = peer.head().unwrap();
        let hint = "HTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\n\r\n";
        if head.starts_with("GET /some ") {
            peer.send(hint.repeat(16));
            peer.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
            return;
        }
        while peer.try_send(hint) {}
    });
    let server = proxy(&backend, |_| {});
    let mut client = connect(&server);
    client.send("GET /some HTTP/1.1\r\nHost: t\r\n\r\n");
    for _ in 0..16 {
        assert_eq!(client.answer().unwrap().status, 103);
    }
    assert_eq!(client.answer().unwrap().body, b"hello");
    for minor in [0, 1] {
        let mut client = connect(&server);
        client.send(format!("GET /endless HTTP/1.{minor}\r\nHost: t\r\n\r\n"));
        let statuses: Vec<u16> =
            std::iter::from_fn(|| client.answer()).map(|answer| answer.status).collect();
        let interims = statuses.iter().filter(|status| **status == 103).count();
        assert!(interims <= 16 * minor, "{statuses:?}");
        // Cut off if an interim answer was on its way, for what follows would be taken for it.
        assert!(statuses.len() == interims || statuses.last() == Some(&502), "{statuses:?}");
    }
    assert_eq!(counters(&server)["proxyd_backend_failures_total"], 2);
}

#[test]
fn each_address_of_a_backends_name_is_tried_until_one_takes_the_connection() {
    let backend = Backend::standard();
    let port = Address::Tcp(([127, 0, 0, 1], 1).into());
    let dead = [Address::Unix("/nonexistent/a".into()), port];
    let place = |last: &[Address]| Place::new([&dead[..], last].concat()).unwrap();
    let server = proxy(&backend, |config| {
        config.backends = vec![place(std::slice::from_ref(&backend.address))];
        // Its addresses are not other tries, nor failures of it.
        config.limits.tries = 1;
        config.health.failures = 1;
    });
    for size in [5, 6] {
        assert_eq!(connect(&server).get(&format!("/length/{size}")).body, pattern(size));
    }
    assert_eq!(counters(&server)["proxyd_backend_failures_total"], 0);
    let server = proxy(&backend, |config| {
        config.backends = vec![place(&[])];
        config.limits.tries = 1;
    });
    let answer = connect(&server).get("/x");
    assert_eq!(answer.status, 503);
    assert!(String::from_utf8(answer.body).unwrap().contains("tcp:127.0.0.1:1"));
}
