//! What is too large, what takes too long, and what many clients can make the proxy hold. Deadlines
//! are short here, patience is not.

use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use httpd::{Address, Place};
use rustix::process::{Resource, Rlimit, setrlimit};

use crate::common::{Backend, Peer, connect, counters, eventually, pattern, proxy};
use crate::lifecycle::{before, start};

#[test]
fn what_is_longer_than_framing_may_be_is_refused() {
    let backend = Backend::standard();
    let server = proxy(&backend, |_| {});
    let (long, get) = ("a".repeat(9000), "GET /x HTTP/1.1\r\nHost: t\r\n");
    let put = "PUT /echo HTTP/1.1\r\nHost: t\r\n";
    let chunked = format!("{put}Transfer-Encoding: chunked\r\n\r\n");
    for (request, status) in [
        (format!("GET /{long} HTTP/1.1\r\nHost: t\r\n\r\n"), 414),
        (format!("{get}X: {long}\r\n\r\n"), 431),
        (format!("{get}{}\r\n", "X: y\r\n".repeat(100)), 431),
        (format!("{get}{}", format!("X: {}\r\n", &long[..4000]).repeat(5)), 431),
        (long.clone(), 414),
        (format!("{chunked}5;{}", &long[..256]), 400),
        (format!("{chunked}0\r\n{}", "X: y\r\n".repeat(2000)), 400),
    ] {
        let mut client = connect(&server);
        client.send(&request);
        assert_eq!(client.answer().unwrap().status, status, "{request}");
        assert_eq!(client.rest(), b"");
    }
    let mut client = connect(&server);
    client.send(format!("{put}{}Content-Length: 1000\r\n\r\n", "X: y\r\n".repeat(98)));
    client.send(pattern(1000));
    assert_eq!(client.answer().unwrap().body, pattern(1000));
    let endless = Backend::new(|peer, _| {
        peer.head().unwrap();
        peer.send("HTTP/1.1 200 OK\r\n");
        while peer.try_send("X: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n") {}
    });
    assert_eq!(connect(&proxy(&endless, |_| {})).get("/").status, 502);
}

#[test]
fn what_stops_is_cut_off_with_a_status_that_says_who() {
    let backend = Backend::new(|peer, _| {
        let head = peer.head().unwrap();
        if head.starts_with("GET /half") {
            peer.send("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n");
            peer.send(pattern(50_000));
        }
        peer.rest();
    });
    let server = proxy(&backend, |config| {
        config.options.body_timeout = Duration::from_millis(200);
        config.options.head_timeout = Duration::from_millis(200);
        config.answer_timeout = Duration::from_millis(200);
        config.options.idle_timeout = Duration::from_millis(200);
    });
    for (at, (request, status)) in [
        ("PUT / HTTP/1.1\r\nHost: t\r\nContent-Length: 10\r\n\r\nhello", 408),
        ("GET / HTTP/1.1\r\nHo", 408),
        ("GET / HTTP/1.1\r\nHost: t\r\n\r\n", 504),
    ]
    .into_iter()
    .enumerate()
    {
        let mut client = connect(&server);
        client.send(request);
        let answer = client.answer().unwrap();
        assert_eq!((answer.status, answer.header("connection")), (status, Some("close")));
        assert_eq!(counters(&server)["timeouts_total"], at as u64 + 1);
    }
    let mut client = connect(&server);
    client.send("GET /half HTTP/1.1\r\nHost: t\r\n\r\n");
    assert!(client.head().unwrap().contains("Content-Length: 100000"));
    assert_eq!(client.rest(), pattern(50_000), "cut off, not padded");
    assert_eq!(connect(&server).rest(), b"", "idle");
}

/// What the backend did not say, or did not take, is its own fault, whatever its client waits for;
/// what the client did not send is the client's.
#[test]
fn a_client_is_not_blamed_for_what_its_backend_did_not_do() {
    let backend = Backend::new(|peer, _| {
        let head = peer.head().unwrap();
        match head.split(' ').nth(1).unwrap() {
            "/hints" => peer.send("HTTP/1.1 103 Early Hints\r\n\r\n"),
            "/continues" => peer.send("HTTP/1.1 100 Continue\r\n\r\n"),
            "/closes" => return,
            "/half" => peer.send("HTTP/1.1 100 Con"),
            "/deaf" => std::thread::sleep(Duration::from_secs(5)),
            _ => {}
        }
        peer.rest();
    });
    let server = proxy(&backend, |config| {
        config.options.body_timeout = Duration::from_millis(500);
        config.answer_timeout = Duration::from_millis(500);
    });
    let waits = "Expect: 100-continue\r\n";
    let large = pattern(8 << 20);
    for (path, minor, lines, body, status) in [
        ("/silent", 1, waits, &b""[..], 504),
        ("/hints", 1, waits, b"", 504),
        ("/half", 1, waits, b"", 504),
        ("/closes", 1, waits, b"", 502),
        ("/continues", 1, waits, b"", 408),
        ("/silent", 1, waits, b"begun", 408),
        ("/silent", 0, waits, b"", 408),
        ("/silent", 1, "", b"", 408),
        ("/deaf", 1, "", &large, 504),
    ] {
        let mut client = connect(&server);
        let length = body.len().max(10);
        client.send(format!(
            "PUT {path} HTTP/1.{minor}\r\nHost: t\r\n{lines}Content-Length: {length}\r\n\r\n"
        ));
        client.try_send(body);
        let final_answer = std::iter::from_fn(|| client.answer()).last().unwrap();
        assert_eq!(final_answer.status, status, "{path}, 1.{minor}: {}", final_answer.text());
    }
}

/// A byte now and then is no progress, however steadily it comes; nor is an empty line.
#[test]
fn what_drips_in_is_cut_off() {
    let backend = Backend::standard();
    let server = proxy(&backend, |config| {
        config.options.head_timeout = Duration::from_millis(500);
        config.options.body_timeout = Duration::from_millis(500);
        config.options.idle_timeout = Duration::from_millis(500);
    });
    let put = "PUT /echo HTTP/1.1\r\nHost: t\r\n";
    for (begin, drop) in [
        ("GET / HTTP/1.1\r\nHost: t\r\nX: ".to_owned(), "x"),
        (format!("{put}Content-Length: 1000\r\n\r\n"), "x"),
        (format!("{put}Transfer-Encoding: chunked\r\n\r\n"), "1\r\nx\r\n"),
        (String::new(), "\r\n"),
    ] {
        let mut client = connect(&server);
        client.send(&begin);
        let cut = (0..1000).any(|_| {
            std::thread::sleep(Duration::from_millis(20));
            !client.try_send(drop)
        });
        assert!(cut, "{begin:?}: it went on for ever");
    }
    assert_eq!(counters(&server)["timeouts_total"], 3);
}

/// While the answer comes, nobody waits for the rest of the request.
#[test]
fn a_client_that_is_being_answered_may_leave_its_body_unsent() {
    let backend = Backend::new(|peer, _| {
        peer.head().unwrap();
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n");
        for _ in 0..12 {
            std::thread::sleep(Duration::from_millis(150));
            peer.send("x");
        }
        peer.rest();
    });
    let server = proxy(&backend, |config| config.options.body_timeout = Duration::from_secs(1));
    let mut client = connect(&server);
    client.send("PUT / HTTP/1.1\r\nHost: t\r\nContent-Length: 10\r\n\r\nhello");
    assert_eq!(client.answer().unwrap().body, b"xxxxxxxxxxxx");
}

/// A reader that is slow, but not too slow, gets all of it, though no event ever says that its
/// socket has much room; and the backend, which wants to see progress, sees some. What a client
/// took covers a pause; one that takes nothing any more is cut off all the same.
#[test]
fn a_slow_reader_gets_all_of_it_and_one_that_stopped_is_cut_off() {
    const BYTES: usize = 6 << 20;
    let backend = Backend::standard();
    for pipes in [1, 0] {
        let server = proxy(&backend, |config| {
            config.pipes = pipes;
            config.options.body_timeout = Duration::from_secs(1);
        });
        let mut client = connect(&server);
        client.send(format!("GET /length/{BYTES} HTTP/1.1\r\nHost: t\r\n\r\n"));
        assert!(client.head().unwrap().starts_with("HTTP/1.1 200"));
        let mut got = Vec::new();
        // 200 KB/s, in pieces, for some seconds; a pause; then the rest.
        while got.len() < 1 << 20 {
            got.extend(client.bytes(20 << 10));
            std::thread::sleep(Duration::from_millis(100));
        }
        std::thread::sleep(Duration::from_secs(2));
        got.extend(client.bytes(BYTES - got.len()));
        assert!(got == pattern(BYTES), "{} bytes", got.len());
    }
    let server = proxy(&backend, |config| config.options.body_timeout = Duration::from_millis(50));
    let mut client = connect(&server);
    client.send("GET /length/100000000 HTTP/1.1\r\nHost: t\r\n\r\n");
    client.bytes(2 << 20);
    eventually("it is cut off", || counters(&server)["exchanges_aborted_total"] == 1);
}

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
    for idle in [0, 2] {
        let server = proxy(&backend, |config| {
            config.backend_connections = 3;
            config.backend_idle = idle;
            config.backend_idle_timeout = Duration::from_millis(200);
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
        assert!(counters(&server)["backend_idle"] <= idle as u64);
        eventually("idle ones are closed", || counters(&server)["backend_idle"] == 0);
        drop(server);
        eventually("all are closed", || now.load(Ordering::SeqCst) == 0);
    }
    // One that is closed here and not yet there, at the most.
    assert!((1..=6).contains(&most.load(Ordering::SeqCst)), "{most:?}");
}

/// Each exchange needs a descriptor for the backend, too, which closes after its answer.
#[test]
fn where_descriptors_run_out_the_longest_idle_makes_room() {
    let backend = Backend::new(|peer, _| {
        peer.head();
        peer.send("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok");
    });
    let (_folder, socket, mut command) = before(&backend);
    let few = Rlimit { current: Some(100), maximum: Some(100) };
    let set = move || setrlimit(Resource::Nofile, few).map_err(Into::into);
    // SAFETY: between fork and exec only a system call is made.
    unsafe { command.args(["--workers", "2"]).pre_exec(set) };
    let _program = start(command, &socket);
    let mut clients: Vec<Peer> = Vec::new();
    for at in 0..300 {
        let mut client = Peer::connect(&Address::Unix(socket.clone()));
        let answer = client.get("/");
        assert_eq!(answer.status, 200, "{at}: {answer:?}");
        clients.push(client);
    }
    clients[0].assert_ended();
    assert_eq!(clients[299].get("/").status, 200);
}

#[test]
fn those_who_wait_in_vain_are_told_and_the_backend_is_not_blamed() {
    let backend = Backend::new(|peer, _| drop(peer.rest()));
    let server = proxy(&backend, |config| {
        config.backend_connections = 1;
        config.connect_timeout = Duration::from_millis(200);
    });
    let mut first = connect(&server);
    first.send("GET /a HTTP/1.1\r\nHost: t\r\n\r\n");
    eventually("it has the connection", || backend.connections() == 1);
    for _ in 0..3 {
        let answer = connect(&server).get("/b");
        assert!(answer.status == 503 && answer.text().contains("taken"), "{answer:?}");
    }
    assert_eq!(counters(&server)["backend_failures_total"], 0);
}

/// Clients whose bodies never come have some of the connections, and never all of them.
#[test]
fn slow_uploads_leave_connections_to_the_others() {
    let backend = Backend::standard();
    let server = proxy(&backend, |config| {
        config.backend_connections = 4;
        config.connect_timeout = Duration::from_millis(300);
    });
    let put = "PUT /echo HTTP/1.1\r\nHost: t\r\n";
    let slow = |lines: &str, begin: &str| {
        let mut client = connect(&server);
        client.send(format!("{put}{lines}\r\n{begin}"));
        client
    };
    let mut first = slow("Content-Length: 5\r\n", "hel");
    eventually("it has a connection", || backend.heads().len() == 1);
    let others: Vec<Peer> = (0..4)
        .flat_map(|_| {
            let waits = "Content-Length: 5\r\nExpect: 100-continue\r\n";
            [slow(waits, ""), slow("Transfer-Encoding: chunked\r\n", "5\r\nhel")]
        })
        .collect();
    eventually("they have what they may have", || backend.heads().len() == 3);
    for _ in 0..3 {
        assert_eq!(connect(&server).get("/length/5").body, pattern(5));
        // What came with its head is not waited for.
        let mut client = slow("Content-Length: 5\r\n", "hello");
        assert_eq!(client.answer().unwrap().body, b"hello");
    }
    eventually("the others are told", || counters(&server)["responses_5xx_total"] == 6);
    first.send("lo");
    assert_eq!(first.answer().unwrap().body, b"hello");
    let mut client = slow("Transfer-Encoding: chunked\r\n", "5\r\nhello\r\n0\r\n\r\n");
    assert_eq!(client.answer().unwrap().body, b"hello", "there is room for another");
    assert_eq!(counters(&server)["backend_failures_total"], 0);
    drop(others);
}

/// Whatever its transport: a queue that is full, and stays so.
#[test]
fn a_backend_that_takes_no_connection_is_unavailable() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("b.sock");
    let unix = UnixListener::bind(&path).unwrap();
    rustix::net::listen(&unix, 0).unwrap();
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    rustix::net::listen(&tcp, 0).unwrap();
    let unused = Backend::standard();
    for at in [Address::Unix(path), Address::Tcp(tcp.local_addr().unwrap())] {
        let with = |last: Option<&Address>| {
            proxy(&unused, |config| {
                config.backend = Place::At([&at].into_iter().chain(last).cloned().collect());
                config.connect_timeout = Duration::from_millis(300);
                config.answer_timeout = Duration::from_millis(300);
            })
        };
        let server = with(None);
        // The first of them fill the queue.
        let statuses: Vec<u16> = (0..6).map(|_| connect(&server).get("/").status).collect();
        assert!(statuses.ends_with(&[503; 3]) && !statuses.contains(&500), "{at}: {statuses:?}");
        assert_eq!(counters(&server)["backend_failures_total"], 6, "{at}");
        let server = with(Some(&unused.address));
        assert_eq!(connect(&server).get("/length/5").body, pattern(5), "{at}: the next one does");
    }
}

/// A unix backend whose queue is full, for as long as the backend accepts nothing.
#[test]
fn a_full_queue_is_waited_for_by_many_and_asked_by_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("b.sock");
    let listener = UnixListener::bind(&path).unwrap();
    rustix::net::listen(&listener, 1).unwrap();
    let unused = Backend::standard();
    let server = proxy(&unused, |config| config.backend = Place::At(vec![Address::Unix(path)]));
    let mut clients: Vec<_> = (0..40).map(|_| connect(&server)).collect();
    for client in &mut clients {
        client.send("GET /a HTTP/1.1\r\nHost: t\r\n\r\n");
    }
    eventually("they have come", || counters(&server)["requests_total"] == 40);
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

/// What the proxy itself refuses, at the head or later, to a client that reads nothing before all of
/// its body is sent.
#[test]
fn a_refusal_reaches_a_client_that_is_still_sending() {
    let backend = Backend::standard();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.sock");
    let server = proxy(&backend, |config| {
        config.method.retain(|method| method != "PATCH");
        config.path = vec!["/echo".to_owned()];
        config.options.listen.push(Place::At(vec![Address::Unix(path.clone())]));
    });
    let body = pattern(24 << 20);
    let length = format!("Content-Length: {}\r\n\r\n", body.len());
    for (head, status) in [
        (format!("PUT /secret HTTP/1.1\r\nHost: t\r\n{length}"), 403),
        (format!("PATCH /echo HTTP/1.1\r\nHost: t\r\n{length}"), 405),
        (format!("PUT /echo HTTP/1.1\r\n{length}"), 400),
        (format!("PUT /echo HTTP/1.1\r\nHost: t\r\nExpect: tea\r\n{length}"), 417),
        ("PUT /echo HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned(), 400),
        ("PUT /echo HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: gzip\r\n\r\n".to_owned(), 501),
        (format!("PUT /secret HTTP/1.0\r\n{length}"), 403),
    ] {
        for mut client in [connect(&server), Peer::connect(&Address::Unix(path.clone()))] {
            client.send(&head);
            client.send(&body);
            let answer = client.answer();
            assert_eq!(answer.map(|answer| answer.status), Some(status), "{head}");
        }
    }
}
