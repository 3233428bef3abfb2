//! What arrives where, and in which order.

use std::os::unix::net::UnixStream;

use proxyd::net::{Address, Mode};

use crate::common::{Backend, Peer, config, connect, counters, eventually, pattern, proxy};

#[test]
fn connections_are_kept_on_both_sides() {
    let backend = Backend::standard();
    let server = proxy(&backend, |_| {});
    let mut client = connect(&server);
    for len in [0, 1, 70_000] {
        let answer = client.get(&format!("/length/{len}"));
        assert_eq!((answer.status, &answer.body), (200, &pattern(len)));
        assert_eq!(answer.header("connection"), None);
    }
    assert_eq!(backend.connections(), 1);
    assert_eq!(counters(&server)["proxyd_backend_reuses_total"], 2);
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let backend = Backend::standard();
    let server = proxy(&backend, |_| {});
    let mut client = connect(&server);
    let lens: Vec<usize> = (0..60).map(|at| (at * 7919) % 50_000).collect();
    let requests: String = lens
        .iter()
        .map(|len| format!("\r\nGET /length/{len} HTTP/1.1\r\nHost: test\r\n\r\n"))
        .collect();
    client.send(requests);
    for len in lens {
        assert_eq!(client.answer().unwrap().body, pattern(len));
    }
}

#[test]
fn a_pipelined_request_behind_a_body_is_not_taken_for_it() {
    let backend = Backend::standard();
    let server = proxy(&backend, |_| {});
    let mut client = connect(&server);
    client.send(
        "POST /echo HTTP/1.1\r\nHost: test\r\nContent-Length: 5\r\n\r\nhello\
         POST /echo HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n\
         3\r\none\r\n3;x=y\r\ntwo\r\n0\r\nT: x\r\n\r\nGET /length/3 HTTP/1.1\r\nHost: test\r\n\r\n",
    );
    assert_eq!(client.answer().unwrap().body, b"hello");
    assert_eq!(client.answer().unwrap().body, b"onetwo");
    assert_eq!(client.answer().unwrap().body, pattern(3));
    assert_eq!(backend.heads().len(), 3);
}

#[test]
fn the_backend_is_told_who_asks_and_who_reads() {
    let backend = Backend::standard();
    for (splice, reader) in [(true, "splice"), (false, "cpu")] {
        let server = proxy(&backend, |config| config.splice = splice);
        let mut client = connect(&server);
        client.send(
            "GET /headers HTTP/1.1\r\nHost: test:80\r\nConnection: X-Gone\r\nX-Gone: 1\r\nX-Kept: 2\r\n\
             Ntcopy-Reader: forged\r\nX-Forwarded-For: 6.6.6.6\r\nUpgrade: h2c\r\n\r\n",
        );
        let head = String::from_utf8(client.answer().unwrap().body).unwrap();
        assert_eq!(
            head,
            format!(
                "GET /headers HTTP/1.1\r\nHost: test:80\r\nX-Kept: 2\r\nX-Forwarded-For: 127.0.0.1\r\n\
                 X-Forwarded-Proto: http\r\nForwarded: for=127.0.0.1;host=\"test:80\";proto=http\r\n\
                 Via: 1.1 proxyd\r\nNtcopy-Reader: {reader}\r\n\r\n"
            )
        );
    }
}

#[test]
fn an_absolute_target_is_passed_on_as_path_and_host() {
    let backend = Backend::standard();
    let server = proxy(&backend, |_| {});
    let mut client = connect(&server);
    client.send("GET http://real/headers?q HTTP/1.1\r\nHost: fake\r\n\r\n");
    let head = String::from_utf8(client.answer().unwrap().body).unwrap();
    assert!(head.starts_with("GET /headers?q HTTP/1.1\r\nHost: real\r\n"), "{head}");
    assert!(!head.contains("fake"), "{head}");
}

#[test]
fn an_upgrade_is_not_made_and_the_request_is_answered() {
    let backend = Backend::standard();
    let server = proxy(&backend, |_| {});
    let mut client = connect(&server);
    client.send(
        "GET /length/3 HTTP/1.1\r\nHost: test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n\
         GET /length/4 HTTP/1.1\r\nHost: test\r\n\r\n",
    );
    assert_eq!(client.answer().unwrap().body, pattern(3));
    assert_eq!(client.answer().unwrap().body, pattern(4), "still HTTP");
    assert!(backend.heads().iter().all(|head| !head.to_lowercase().contains("upgrade")));
}

#[test]
fn connect_and_trace_are_refused() {
    let backend = Backend::standard();
    let server = proxy(&backend, |_| {});
    for request in ["CONNECT test:1 HTTP/1.1", "TRACE / HTTP/1.1"] {
        let mut client = connect(&server);
        client.send(format!("{request}\r\nHost: test\r\n\r\n"));
        let answer = client.answer().unwrap();
        assert_eq!(answer.status, 405);
        assert!(answer.header("allow").is_some());
        assert_eq!(client.rest(), b"");
    }
    assert_eq!(backend.connections(), 0);
}

#[test]
fn a_waiting_client_gets_the_backends_100() {
    let backend = Backend::new(|peer, _| {
        let head = peer.head().unwrap();
        assert!(head.contains("Expect: 100-continue\r\n"), "{head}");
        peer.send("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n");
        assert_eq!(peer.bytes(5), b"hello");
        peer.send("HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n");
        peer.head();
    });
    let server = proxy(&backend, |_| {});
    let mut client = connect(&server);
    client
        .send("PUT /x HTTP/1.1\r\nHost: test\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n");
    let hints = client.answer().unwrap();
    assert_eq!((hints.status, hints.header("link")), (103, Some("x")));
    assert_eq!(client.answer().unwrap().status, 100);
    client.send("hello");
    let answer = client.answer().unwrap();
    assert_eq!((answer.status, answer.header("connection")), (201, None));
}

#[test]
fn a_backend_that_refuses_an_expectation_ends_the_connection() {
    let backend = Backend::new(|peer, _| {
        peer.head().unwrap();
        peer.send("HTTP/1.1 417 No\r\nContent-Length: 0\r\n\r\n");
        peer.rest();
    });
    let server = proxy(&backend, |_| {});
    let mut client = connect(&server);
    client
        .send("PUT /x HTTP/1.1\r\nHost: test\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n");
    let answer = client.answer().unwrap();
    assert_eq!((answer.status, answer.header("connection")), (417, Some("close")));
    assert_eq!(client.rest(), b"");
}

#[test]
fn a_client_of_http_1_0_gets_what_it_understands() {
    let backend = Backend::standard();
    let server = proxy(&backend, |_| {});
    let mut client = connect(&server);
    client.send("GET /chunked/100000/30000 HTTP/1.0\r\n\r\n");
    let answer = client.answer().unwrap();
    assert_eq!(answer.header("transfer-encoding"), None);
    assert_eq!((answer.header("connection"), &answer.body), (Some("close"), &pattern(100_000)));
    let mut client = connect(&server);
    for _ in 0..2 {
        client.send("GET /length/5 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
        let answer = client.answer().unwrap();
        assert_eq!((answer.header("connection"), &answer.body), (Some("keep-alive"), &pattern(5)));
    }
}

#[test]
fn unix_clients_are_served_and_have_no_address() {
    let backend = Backend::standard();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.sock");
    let server = proxy(&backend, |config| {
        config.workers = 2;
        config.listen = vec![Address::Unix(path.clone()).into()];
    });
    for _ in 0..4 {
        let mut client = Peer::new(UnixStream::connect(&path).unwrap());
        assert_eq!(client.get("/length/100000").body, pattern(100_000));
        let head = String::from_utf8(client.get("/headers").body).unwrap();
        assert!(!head.contains("X-Forwarded-For") && head.contains("for=unknown"), "{head}");
    }
    drop(server);
    assert!(!path.exists());
}

#[test]
fn tcp_backends_are_served_from_too() {
    // The proxy itself is a TCP backend.
    let backend = Backend::standard();
    let inner = proxy(&backend, |_| {});
    let mut outer = config(&backend);
    outer.backends = vec![inner.addresses().plain[0].clone().into()];
    let outer = proxyd::server::Server::start(outer).unwrap();
    let mut client = connect(&outer);
    for len in [10, 3_000_000] {
        assert_eq!(client.get(&format!("/length/{len}")).body, pattern(len));
        assert_eq!(client.get(&format!("/chunked/{len}/100000")).body, pattern(len));
    }
    let head = String::from_utf8(client.get("/headers").body).unwrap();
    assert_eq!(head.matches("Via: 1.1 proxyd\r\n").count(), 2, "{head}");
    assert_eq!(head.matches("Ntcopy-Reader:").count(), 1, "{head}");
}

#[test]
fn many_clients_at_once_get_their_own_bytes() {
    let backend = Backend::standard();
    let server = proxy(&backend, |config| config.workers = 2);
    let address = server.addresses().plain[0].clone();
    let threads: Vec<_> = (0..24)
        .map(|number| {
            let address = address.clone();
            std::thread::spawn(move || {
                let mut client = Peer::tcp(&address);
                for round in 0..20 {
                    let len = number * 10_007 + round * 997;
                    assert_eq!(client.get(&format!("/length/{len}")).body, pattern(len));
                    assert_eq!(client.get(&format!("/chunked/{len}/20000")).body, pattern(len));
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    eventually("all are gone", || counters(&server)["proxyd_connections_open"] == 0);
}

#[test]
fn every_mode_sends_the_same_bytes_and_the_kernel_counts_what_is_hinted() {
    let backend = Backend::standard();
    let nontemporal = || {
        let counters = ntcopy::socket::counters().unwrap();
        counters.map(|counters| counters.get(ntcopy::uapi::STAT_NONTEMPORAL))
    };
    for mode in [Mode::Copy, Mode::Adaptive, Mode::Nt] {
        for splice in [true, false] {
            let server = proxy(&backend, |config| {
                config.mode = mode;
                config.splice = splice;
            });
            let before = nontemporal();
            let mut client = connect(&server);
            assert_eq!(client.get("/length/3000000").body, pattern(3_000_000));
            assert_eq!(client.get("/chunked/3000000/90000").body, pattern(3_000_000));
            // The kernel obeys this mode; what it makes of the others depends on the machine.
            if let (Some(before), Some(after), Mode::Nt, false) =
                (before, nontemporal(), mode, splice)
            {
                assert!(after - before > 5_000_000, "{}", after - before);
            }
        }
    }
}
