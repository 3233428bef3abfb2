//! Clients and backends that go away, at every point of an exchange.

use std::io::{ErrorKind, Read, Write};
use std::sync::mpsc;

use httpd::{Address, Place};

use crate::common::{Backend, Peer, connect, counters, eventually, pattern, proxy};

#[test]
fn a_client_that_half_closes_is_answered_or_told() {
    let backend = Backend::standard();
    let server = proxy(&backend, |_| {});
    for (request, status) in [
        ("GET /length/3000000 HTTP/1.1\r\nHost: t\r\n\r\n", Some(200)),
        ("PUT /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 10\r\n\r\nhello", Some(400)),
        ("GET / HTTP/1.1\r\nHo", None),
    ] {
        let mut client = connect(&server);
        client.send(request);
        client.half_close();
        let answer = client.answer();
        assert_eq!(answer.as_ref().map(|answer| answer.status), status, "{request}");
        assert!(status != Some(200) || answer.unwrap().body == pattern(3_000_000));
        assert_eq!(client.rest(), b"");
    }
}

/// A unix socket that is closed hangs up, before the answer too; over TCP it could be a half-close.
#[test]
fn a_client_that_goes_away_takes_its_backend_connection_along() {
    let (told, ended) = mpsc::channel();
    let backend = Backend::new(move |peer, _| {
        if peer.head().unwrap().starts_with("GET /large") {
            peer.send("HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n");
            while peer.try_send(pattern(100_000)) {}
        } else {
            assert_eq!(peer.rest(), b"");
        }
        told.send(()).unwrap();
    });
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.sock");
    let server = proxy(&backend, |config| {
        config.options.listen.push(Place::At(vec![Address::Unix(path.clone())]))
    });
    let mut client = connect(&server);
    client.send("GET /large HTTP/1.1\r\nHost: t\r\n\r\n");
    client.bytes(200_000);
    drop(client);
    ended.recv().unwrap();
    // What it says behind its request is not read, and the end is heard all the same.
    for behind in ["", "GET /next HTTP/1.1\r\nHost: t\r\n\r\n"] {
        let mut client = Peer::connect(&Address::Unix(path.clone()));
        let before = backend.connections();
        client.send(format!("GET / HTTP/1.1\r\nHost: t\r\n\r\n{behind}"));
        eventually("the backend has it", || backend.connections() > before);
        drop(client);
        ended.recv().unwrap();
    }
    eventually("all are counted", || counters(&server)["clients_gone_total"] == 3);
    eventually("all are gone", || counters(&server)["connections"] == 0);
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
        for pipes in [1, 0] {
            let server = proxy(&backend, |config| config.pipes = pipes);
            let mut client = connect(&server);
            client.send("GET / HTTP/1.1\r\nHost: t\r\n\r\n");
            let answer = client.head().expect("an answer");
            let got = client.rest();
            // Where the end came with the beginning, nothing was sent yet, and an error is the
            // better answer.
            if !answer.starts_with("HTTP/1.1 502") {
                assert!(answer.contains(head), "{answer}");
                assert!(got.len() <= 60_010 && !got.ends_with(b"0\r\n\r\n"), "{}", got.len());
                let payload = got.strip_prefix(b"186a0\r\n").unwrap_or(&got);
                assert!(payload.starts_with(b"5\r\n") || pattern(60_000).starts_with(payload));
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
    let Address::Tcp(address) = server.http.addresses[0] else { panic!() };
    let mut client = std::net::TcpStream::connect(address).unwrap();
    client.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
    let error = client.read_to_end(&mut Vec::new()).expect_err("a reset");
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
}

#[test]
fn a_backend_may_answer_before_it_has_the_whole_request() {
    let backend = Backend::new(|peer, _| {
        if peer.head().unwrap().starts_with("PUT /early") {
            peer.bytes(1000);
            peer.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nearly");
            peer.rest();
        } else {
            peer.send("HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno");
        }
    });
    let server = proxy(&backend, |_| {});
    let mut client = connect(&server);
    client.send("PUT /early HTTP/1.1\r\nHost: t\r\nContent-Length: 100000\r\n\r\n");
    client.send(pattern(1000));
    let answer = client.answer().unwrap();
    assert_eq!((answer.status, answer.body.as_slice()), (200, &b"early"[..]));
    assert_eq!((answer.header("connection"), client.rest()), (Some("close"), Vec::new()));
    // The backend has closed before all of this is sent, and the client reads nothing before.
    for _ in 0..20 {
        let mut client = connect(&server);
        client.send("PUT / HTTP/1.1\r\nHost: t\r\nContent-Length: 10000000\r\n\r\n");
        client.send(pattern(10_000_000));
        let answer = client.answer().expect("an answer");
        assert_eq!((answer.status, answer.body.as_slice()), (413, &b"no"[..]));
    }
}

/// An answer that is larger than a client's socket, to one that reads nothing before its body is sent.
#[test]
fn a_backend_that_has_closed_its_ears_keeps_no_client_from_sending() {
    const BYTES: usize = 700_000;
    let backend = Backend::new(|peer, _| {
        peer.head().unwrap();
        peer.send(format!("HTTP/1.1 413 Too Large\r\nContent-Length: {BYTES}\r\n\r\n"));
        peer.send(pattern(BYTES));
    });
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.sock");
    let server = proxy(&backend, |config| {
        config.options.listen.push(Place::At(vec![Address::Unix(path.clone())]))
    });
    for mut client in [connect(&server), Peer::connect(&Address::Unix(path))] {
        client.send("PUT / HTTP/1.1\r\nHost: t\r\nContent-Length: 10000000\r\n\r\n");
        client.send(pattern(10_000_000));
        let answer = client.answer().expect("an answer");
        assert!(answer.status == 413 && answer.body == pattern(BYTES), "{}", answer.head);
    }
}

#[test]
fn the_first_address_of_the_backend_that_takes_the_connection_is_used() {
    let backend = Backend::standard();
    let place = |last: &Address| {
        let dead = ["unix:/nonexistent/a", "tcp:127.0.0.1:1"].map(|text| text.parse().unwrap());
        Place::At(dead.into_iter().chain([last.clone()]).collect())
    };
    let server = proxy(&backend, |config| config.backend = place(&backend.address));
    let mut client = connect(&server);
    for _ in 0..3 {
        client.send("POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 5\r\n\r\nhello");
        assert_eq!(client.answer().unwrap().body, b"hello", "nothing was sent to the dead");
    }
    let counted = counters(&server);
    assert_eq!((counted["backend_failures_total"], counted["backend_retries_total"]), (0, 0));
    let dead = "unix:/nonexistent/b".parse().unwrap();
    let server = proxy(&backend, |config| config.backend = place(&dead));
    let answer = connect(&server).get("/length/0");
    assert!(answer.status == 503 && answer.text().contains("cannot connect"), "{answer:?}");
    assert_eq!(counters(&server)["backend_failures_total"], 1);
}

/// A backend that never stops, not even where its answer should end.
#[test]
fn no_byte_of_a_broken_exchange_reaches_another() {
    let backend = Backend::new(|peer, _| {
        let head = peer.head().unwrap();
        let byte = head.split(' ').nth(1).unwrap().as_bytes()[1];
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n");
        while peer.try_send([byte; 100_000]) {}
    });
    let server = proxy(&backend, |config| config.pipes = 2);
    for byte in b'a'..=b'z' {
        let mut client = connect(&server);
        client.send(format!("GET /{} HTTP/1.1\r\nHost: t\r\n\r\n", char::from(byte)));
        let head = client.head().unwrap();
        // The connection was kept before the backend went on talking, and what it said then was
        // no answer.
        if head.starts_with("HTTP/1.1 502") {
            continue;
        }
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        let len = if byte % 2 == 0 { 150_000 } else { 1_000_000 };
        let got = client.bytes(len);
        assert!(got.len() == len && got.iter().all(|other| *other == byte), "another's byte");
    }
}

#[test]
fn what_a_backend_says_beyond_its_answer_reaches_nobody() {
    let backend = Backend::new(|peer, _| {
        while peer.head().is_some() {
            peer.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nright");
            peer.send("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged");
        }
    });
    let server = proxy(&backend, |_| {});
    let mut client = connect(&server);
    for _ in 0..5 {
        assert_eq!(client.get("/").body, b"right");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

#[test]
fn interim_answers_have_an_end() {
    let backend = Backend::new(|peer, _| {
        let head = peer.head().unwrap();
        let hint = "HTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\n\r\n";
        if head.starts_with("GET /some ") {
            peer.send(hint.repeat(16) + "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
            return;
        }
        while peer.try_send(hint) {}
    });
    let server = proxy(&backend, |_| {});
    for (path, minor) in [("some", 1), ("endless", 0), ("endless", 1)] {
        let mut client = connect(&server);
        let close = "Host: t\r\nConnection: close";
        client.send(format!("GET /{path} HTTP/1.{minor}\r\n{close}\r\n\r\n"));
        let statuses: Vec<u16> =
            std::iter::from_fn(|| client.answer()).map(|answer| answer.status).collect();
        let interims = statuses.iter().filter(|status| **status == 103).count();
        assert!(interims <= 16 * minor, "{statuses:?}");
        let last = if path == "some" { 200 } else { 502 };
        // Cut off if an interim answer was on its way, for what follows would be taken for it.
        assert!(statuses.len() == interims || statuses.last() == Some(&last), "{statuses:?}");
        assert!(path != "some" || interims == 16, "{statuses:?}");
    }
    assert_eq!(counters(&server)["backend_failures_total"], 2);
}
