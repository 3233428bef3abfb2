//! What many clients, or one that wants much, can make the proxy hold.

use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use proxyd::net::Address;

use crate::common::{Backend, Peer, connect, counters, eventually, pattern, proxy};

#[test]
fn a_backend_has_as_many_connections_as_it_may_and_the_rest_wait() {
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (count, peak) = (Arc::clone(&now), Arc::clone(&most));
    let backend = Backend::new(move |peer, _| {
        peak.fetch_max(count.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        while peer.head().is_some() {
            std::thread::sleep(Duration::from_millis(2));
            peer.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        }
        count.fetch_sub(1, Ordering::SeqCst);
    });
    for idle in [0, 8] {
        let server = proxy(&backend, |config| {
            config.limits.backend_connections = 3;
            config.limits.backend_idle = idle;
        });
        let mut clients: Vec<_> = (0..60).map(|_| connect(&server)).collect();
        for _ in 0..3 {
            for client in &mut clients {
                client.send("GET /a HTTP/1.1\r\nHost: t\r\n\r\n");
            }
            for client in &mut clients {
                assert_eq!(client.answer().unwrap().body, b"ok");
            }
        }
        drop(server);
        eventually("all are closed", || now.load(Ordering::SeqCst) == 0);
    }
    // One that is closed here and not yet there, at the most.
    assert!((1..=6).contains(&most.load(Ordering::SeqCst)), "{most:?}");
}

#[test]
fn those_who_wait_in_vain_are_told_and_the_backend_is_not_blamed() {
    let backend = Backend::new(|peer, _| drop(peer.rest()));
    let server = proxy(&backend, |config| {
        config.limits.backend_connections = 1;
        config.timeouts.connect_ms = 200;
    });
    let mut first = connect(&server);
    first.send("GET /a HTTP/1.1\r\nHost: t\r\n\r\n");
    eventually("it has the connection", || backend.connections() == 1);
    for _ in 0..3 {
        let answer = connect(&server).get("/b");
        assert_eq!(answer.status, 503);
        assert!(String::from_utf8(answer.body).unwrap().contains("taken"));
    }
    assert_eq!(counters(&server)["proxyd_backend_failures_total"], 0);
}

/// A unix backend whose queue is full, for as long as the backend accepts nothing.
#[test]
fn a_full_queue_is_waited_for_by_many_and_asked_by_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("b.sock");
    let listener = UnixListener::bind(&path).unwrap();
    rustix::net::listen(&listener, 1).unwrap();
    let unused = Backend::standard();
    let server = proxy(&unused, |config| config.backends = vec![Address::Unix(path).into()]);
    let mut clients: Vec<_> = (0..40).map(|_| connect(&server)).collect();
    for client in &mut clients {
        client.send("GET /a HTTP/1.1\r\nHost: t\r\n\r\n");
    }
    eventually("they have come", || counters(&server)["proxyd_requests_total"] == 40);
    std::thread::sleep(Duration::from_millis(200));
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut peer = Peer::new(stream.unwrap());
            std::thread::spawn(move || {
                while peer.head().is_some() {
                    peer.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
                }
            });
        }
    });
    for client in &mut clients {
        assert_eq!(client.answer().unwrap().body, b"ok");
    }
}

#[test]
fn one_client_has_as_many_connections_as_it_may() {
    let backend = Backend::standard();
    let server = proxy(&backend, |config| config.limits.connections_per_client = 2);
    let (mut one, mut two) = (connect(&server), connect(&server));
    assert_eq!(one.get("/length/1").body, pattern(1));
    assert_eq!(two.get("/length/2").body, pattern(2));
    assert_eq!(connect(&server).rest(), b"", "closed unserved");
    eventually("it is counted", || counters(&server)["proxyd_connections_refused_total"] == 1);
    drop(one);
    eventually("there is room again", || {
        let mut next = connect(&server);
        next.try_send("GET /length/3 HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n")
            && next.rest().ends_with(&pattern(3))
    });
    let server = proxy(&backend, |config| config.limits.connections_per_client = 0);
    let mut many: Vec<_> = (0..5).map(|_| connect(&server)).collect();
    assert!(many.iter_mut().all(|client| client.get("/length/1").status == 200), "no limit");
}

#[test]
fn idle_clients_make_room_and_busy_ones_do_not() {
    let backend = Backend::standard();
    let server = proxy(&backend, |config| config.limits.connections = 3);
    let (mut busy, mut idle, mut other) = (connect(&server), connect(&server), connect(&server));
    busy.send("GET /length/4 HTTP/1.1\r\n");
    assert_eq!(idle.get("/length/1").body, pattern(1));
    assert_eq!(other.get("/length/2").body, pattern(2));
    for _ in 0..5 {
        assert_eq!(connect(&server).get("/length/3").body, pattern(3));
    }
    assert_eq!(idle.rest(), b"", "closed, for it was idle longest");
    busy.send("Host: t\r\n\r\n");
    assert_eq!(busy.answer().unwrap().body, pattern(4));
    assert!(counters(&server)["proxyd_connections_evicted_total"] > 0);
}
