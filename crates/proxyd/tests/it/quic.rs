//! HTTP/3, by a client of the same crates.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use bytes::{Buf, Bytes};
use h3::client::SendRequest;
use h3_quinn::OpenStreams;
use proxyd::config::Config;
use proxyd::net::Address;
use proxyd::server::Server;
use proxyd::worker::Stop;
use quinn::crypto::rustls::QuicClientConfig;

use crate::closing::{Act, Answered, Cut, Cutter, PAYLOAD, said};
use crate::common::{Backend, Peer, config, counters, pattern};
use crate::tls::Pair;

fn settings(backend: &Backend, pair: &Pair) -> Config {
    let mut config = config(backend);
    config.quic_listen = Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    config.tls.certificate = Some(pair.cert.clone());
    config.tls.key = Some(pair.key.clone());
    config
}

/// Status, fields and body of an answer, or why there is none.
type Got = Result<(http::response::Parts, Vec<u8>), String>;

struct Client {
    send: SendRequest<OpenStreams, Bytes>,
    connection: quinn::Connection,
    _endpoint: quinn::Endpoint,
}

impl Client {
    async fn new(server: &Server, pair: &Pair) -> Client {
        Client::with(server, pair, quinn::TransportConfig::default()).await
    }

    async fn with(server: &Server, pair: &Pair, transport: quinn::TransportConfig) -> Client {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_root_certificates(Pair::roots(&pair.cert))
            .with_no_client_auth();
        tls.alpn_protocols = vec![b"h3".to_vec()];
        let tls = QuicClientConfig::try_from(tls).unwrap();
        let mut endpoint = quinn::Endpoint::client((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        let mut config = quinn::ClientConfig::new(Arc::new(tls));
        config.transport_config(Arc::new(transport));
        endpoint.set_default_client_config(config);
        let address = server.addresses().quic.unwrap();
        let connection = endpoint.connect(address, "localhost").unwrap().await.unwrap();
        let (mut driver, send) =
            h3::client::new(h3_quinn::Connection::new(connection.clone())).await.unwrap();
        tokio::spawn(async move { driver.wait_idle().await });
        Client { send, connection, _endpoint: endpoint }
    }

    async fn exchange(&self, request: http::Request<()>, body: Option<Vec<u8>>) -> Got {
        let text = |error: h3::error::StreamError| error.to_string();
        let mut stream = self.send.clone().send_request(request).await.map_err(text)?;
        for piece in body.as_deref().unwrap_or_default().chunks(100_000) {
            if stream.send_data(Bytes::copy_from_slice(piece)).await.is_err() {
                break;
            }
        }
        let _ = stream.finish().await;
        let (parts, ()) = stream.recv_response().await.map_err(text)?.into_parts();
        let mut got = Vec::new();
        while let Some(mut data) = stream.recv_data().await.map_err(text)? {
            got.extend_from_slice(&data.copy_to_bytes(data.remaining()));
        }
        Ok((parts, got))
    }

    async fn get(&self, path: &str) -> Got {
        self.exchange(request("GET", path), None).await
    }
}

fn request(method: &str, path: &str) -> http::Request<()> {
    let uri = format!("https://localhost{path}");
    http::Request::builder().method(method).uri(uri).body(()).unwrap()
}

fn run<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

#[test]
fn bodies_arrive_whole_and_the_backend_copies_normally() {
    let (backend, pair) = (Backend::standard(), Pair::new());
    let server = Server::start(settings(&backend, &pair)).unwrap();
    run(async {
        let client = Client::new(&server, &pair).await;
        for size in [0, 1, 70_000, 3_000_000] {
            for path in [
                format!("/length/{size}"),
                format!("/chunked/{size}/50000"),
                format!("/close/{size}"),
            ] {
                let (head, body) = client.get(&path).await.unwrap();
                assert!(head.status == 200 && body == pattern(size), "{path}");
                assert_eq!(head.headers["via"], "1.1 proxyd");
                assert!(!head.headers.contains_key("transfer-encoding"));
            }
        }
        let (_, head) = client.get("/headers").await.unwrap();
        let head = String::from_utf8(head).unwrap();
        for line in
            ["Host: localhost\r\n", "Ntcopy-Reader: cpu\r\n", "X-Forwarded-Proto: https\r\n"]
        {
            assert!(head.contains(line), "{head}");
        }
        let (head, body) = client.exchange(request("HEAD", "/length/5"), None).await.unwrap();
        assert_eq!((head.headers["content-length"].to_str().unwrap(), body.len()), ("5", 0));
        assert_eq!(client.get("/status/204").await.unwrap().0.status, 204);
    });
    let counted = counters(&server);
    assert!(counted["proxyd_backend_reuses_total"] > 0);
    let (batches, bytes) =
        (counted["proxyd_quic_batches_total"], counted["proxyd_quic_bytes_total"]);
    assert!(bytes > 9_000_000 && batches > 0, "{bytes} in {batches}");
}

#[test]
fn request_bodies_arrive_whole_with_and_without_a_length() {
    let (backend, pair) = (Backend::standard(), Pair::new());
    let server = Server::start(settings(&backend, &pair)).unwrap();
    run(async {
        let client = Client::new(&server, &pair).await;
        for size in [0, 1, 300_000] {
            let mut told = request("PUT", "/echo");
            told.headers_mut().insert("content-length", size.into());
            for request in [told, request("POST", "/echo")] {
                let (head, body) = client.exchange(request, Some(pattern(size))).await.unwrap();
                assert!(head.status == 200 && body == pattern(size), "{size}");
            }
        }
        let mut short = request("PUT", "/echo");
        short.headers_mut().insert("content-length", 10.into());
        let got = client.exchange(short, Some(pattern(5))).await;
        assert!(!matches!(got, Ok((head, _)) if head.status == 200), "shorter than said");
    });
}

#[test]
fn requests_of_one_connection_run_at_once() {
    let (backend, pair) = (Backend::standard(), Pair::new());
    let server = Server::start(settings(&backend, &pair)).unwrap();
    run(async {
        let client = Client::new(&server, &pair).await;
        let paths: Vec<String> = (0..20).map(|at| format!("/length/{}", at * 10_007)).collect();
        let all = paths.iter().map(|path| client.get(path));
        for (at, got) in join_all(all).await.into_iter().enumerate() {
            assert!(got.unwrap().1 == pattern(at * 10_007), "{at}");
        }
    });
}

async fn join_all<F: Future>(all: impl Iterator<Item = F>) -> Vec<F::Output> {
    let mut pinned: Vec<_> = all.map(Box::pin).collect();
    let mut done: Vec<Option<F::Output>> = pinned.iter().map(|_| None).collect();
    std::future::poll_fn(|context| {
        for (future, done) in pinned.iter_mut().zip(&mut done) {
            if done.is_none()
                && let std::task::Poll::Ready(output) = future.as_mut().poll(context)
            {
                *done = Some(output);
            }
        }
        if done.iter().all(Option::is_some) {
            std::task::Poll::Ready(())
        } else {
            std::task::Poll::Pending
        }
    })
    .await;
    done.into_iter().flatten().collect()
}

#[test]
fn what_breaks_is_told_or_reset() {
    let pair = Pair::new();
    let broken = Backend::new(|peer, _| {
        let head = peer.head().unwrap();
        if head.starts_with("GET /within") {
            peer.send("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n");
            peer.send(pattern(50_000));
        }
    });
    let server = Server::start(settings(&broken, &pair)).unwrap();
    run(async {
        let client = Client::new(&server, &pair).await;
        assert_eq!(client.get("/before").await.unwrap().0.status, 502);
        client.get("/within").await.expect_err("a body that breaks off is no answer");
        assert_eq!(client.exchange(request("TRACE", "/"), None).await.unwrap().0.status, 405);
    });
    let mut dead = settings(&broken, &pair);
    dead.backends = vec!["unix:/nonexistent".parse().unwrap()];
    let server = Server::start(dead).unwrap();
    run(async {
        let client = Client::new(&server, &pair).await;
        assert_eq!(client.get("/").await.unwrap().0.status, 503);
    });
}

#[test]
fn a_graceful_stop_finishes_what_is_in_flight() {
    let (backend, pair) = (Backend::standard(), Pair::new());
    let mut server = Server::start(settings(&backend, &pair)).unwrap();
    run(async {
        let client = Client::new(&server, &pair).await;
        let mut stream =
            client.send.clone().send_request(request("GET", "/length/5000000")).await.unwrap();
        stream.finish().await.unwrap();
        stream.recv_response().await.unwrap();
        server.stop(Stop::Graceful);
        let mut got = Vec::new();
        while let Some(mut data) = stream.recv_data().await.unwrap() {
            got.extend_from_slice(&data.copy_to_bytes(data.remaining()));
        }
        assert!(got == pattern(5_000_000));
    });
    server.join();
}

#[test]
fn a_slow_upload_is_not_a_slow_backend_and_a_silent_backend_is() {
    let pair = Pair::new();
    let backend = Backend::new(|peer, _| {
        let head = peer.head().unwrap();
        let body = peer.body(&head);
        if head.starts_with("PUT") {
            peer.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len()));
            peer.send(body);
        }
        peer.rest();
    });
    let mut settings = settings(&backend, &pair);
    settings.timeouts.backend_header_ms = 300;
    let server = Server::start(settings).unwrap();
    run(async {
        let client = Client::new(&server, &pair).await;
        let mut stream = client.send.clone().send_request(request("PUT", "/")).await.unwrap();
        for piece in ["four", "more"] {
            stream.send_data(Bytes::from(piece)).await.unwrap();
            tokio::time::sleep(Duration::from_millis(700)).await;
        }
        stream.finish().await.unwrap();
        assert_eq!(stream.recv_response().await.unwrap().status(), 200);
        assert_eq!(client.get("/").await.unwrap().0.status, 504);
    });
}

/// What a backend does to an unused connection harms no request, as with HTTP/1.1.
#[test]
fn a_kept_connection_that_was_closed_or_spoken_on_is_not_used() {
    for last in ["", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwrong"] {
        let pair = Pair::new();
        let (answered, go_on) = mpsc::channel::<()>();
        let (told, done) = mpsc::channel();
        let go_on = Mutex::new(go_on);
        let backend = Backend::new(move |peer, number| {
            let head = peer.head().unwrap();
            let body = peer.body(&head);
            peer.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len()));
            peer.send(body);
            if number == 0 {
                go_on.lock().unwrap().recv().unwrap();
                peer.send(last);
                if last.is_empty() {
                    peer.half_close();
                }
                told.send(()).unwrap();
            }
            peer.rest();
        });
        let server = Server::start(settings(&backend, &pair)).unwrap();
        run(async {
            let client = Client::new(&server, &pair).await;
            assert_eq!(client.get("/").await.unwrap().0.status, 200);
            answered.send(()).unwrap();
            done.recv().unwrap();
            // With a body, and not idempotent: there is no second try.
            let (head, body) =
                client.exchange(request("POST", "/"), Some(pattern(5))).await.unwrap();
            assert_eq!((head.status.as_u16(), body), (200, pattern(5)), "{last:?}");
        });
        assert_eq!(counters(&server)["proxyd_backend_failures_total"], 0);
    }
}

#[test]
fn a_head_that_does_not_come_and_one_that_is_not_taken_are_cut_off() {
    let (backend, pair) = (Backend::standard(), Pair::new());
    let mut settings = settings(&backend, &pair);
    settings.timeouts.header_ms = 200;
    settings.timeouts.body_idle_ms = 200;
    let server = Server::start(settings).unwrap();
    run(async {
        let client = Client::new(&server, &pair).await;
        let (mut send, mut receive) = client.connection.open_bi().await.unwrap();
        // The beginning of a HEADERS frame.
        send.write_all(&[1, 40]).await.unwrap();
        match receive.read(&mut [0; 1]).await {
            Ok(None) | Err(quinn::ReadError::Reset(_)) => {}
            other => panic!("{other:?}"),
        }
        assert_eq!(counters(&server)["proxyd_timeouts_total"], 1);
        // A client that has room for a byte of the response, and reads none.
        let mut narrow = quinn::TransportConfig::default();
        narrow.stream_receive_window(1_u32.into());
        let client = Client::with(&server, &pair, narrow).await;
        let mut stream = client.send.clone().send_request(request("GET", "/x")).await.unwrap();
        stream.finish().await.unwrap();
        let aborted = || counters(&server)["proxyd_exchanges_aborted_total"];
        for _ in 0..10_000 {
            if aborted() == 1 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(aborted(), 1);
    });
}

#[test]
fn a_reset_is_not_the_end_of_a_body() {
    let pair = Pair::new();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let (read, go_on) = mpsc::channel::<()>();
    let serve = std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let reset = rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::ZERO));
        reset.unwrap();
        let mut peer = Peer::new(stream);
        peer.head().unwrap();
        peer.send("HTTP/1.1 200 OK\r\n\r\n");
        peer.send(pattern(5));
        go_on.recv().unwrap();
    });
    let unused = Backend::standard();
    let mut settings = settings(&unused, &pair);
    settings.backends = vec![Address::Tcp(address)];
    let server = Server::start(settings).unwrap();
    run(async {
        let client = Client::new(&server, &pair).await;
        let mut stream = client.send.clone().send_request(request("GET", "/")).await.unwrap();
        stream.finish().await.unwrap();
        stream.recv_response().await.unwrap();
        assert!(stream.recv_data().await.unwrap().is_some());
        read.send(()).unwrap();
        let end = loop {
            match stream.recv_data().await {
                Ok(Some(_)) => {}
                end => break end.map(|_| ()),
            }
        };
        end.expect_err("a body that breaks off is not whole");
    });
    serve.join().unwrap();
}

#[test]
fn interim_answers_have_an_end() {
    let pair = Pair::new();
    let backend = Backend::new(|peer, _| {
        peer.head().unwrap();
        while peer.try_send("HTTP/1.1 103 Early Hints\r\n\r\n") {}
    });
    let server = Server::start(settings(&backend, &pair)).unwrap();
    run(async {
        let client = Client::new(&server, &pair).await;
        assert_eq!(client.get("/").await.unwrap().0.status, 502);
    });
}

/// How a body comes: with its length or without, in one piece or in several.
#[derive(Debug, Clone, Copy)]
enum Coming {
    None,
    EmptyLength,
    Length,
    Pieces,
}

/// The model of `closing`, for HTTP/3: right or an error, never another's bytes, never twice.
#[test]
fn a_backend_may_close_at_every_byte() {
    let (cutter, pair, unused) = (Cutter::new(), Pair::new(), Backend::standard());
    let server = |idle| {
        let mut settings = settings(&unused, &pair);
        settings.backends = vec![cutter.address.clone()];
        settings.limits.backend_idle = idle;
        settings.health.failures = u32::MAX;
        Server::start(settings).unwrap()
    };
    let servers = [(true, server(1)), (false, server(0))];
    let mut counts = [0; 2];
    for (kept, server) in &servers {
        run(async {
            let client = Client::new(server, &pair).await;
            for (method, coming) in [
                ("GET", Coming::None),
                ("DELETE", Coming::None),
                ("PUT", Coming::EmptyLength),
                ("PUT", Coming::Length),
                ("POST", Coming::Pieces),
                ("GET", Coming::Pieces),
            ] {
                let cuts = (0..420).map(Cut::Request).chain((0..60).map(Cut::Answer));
                for cut in cuts.chain([Cut::Accept]) {
                    let right = cut_case(&client, &cutter, *kept, method, coming, cut).await;
                    counts[usize::from(right)] += 1;
                }
            }
        });
    }
    println!("HTTP/3: {} errors, {} right", counts[0], counts[1]);
    assert!(counts[0] > 0 && counts[1] > 0);
}

/// Whether the answer was the right one, and not an error.
async fn cut_case(
    client: &Client,
    cutter: &Cutter,
    kept: bool,
    method: &str,
    coming: Coming,
    cut: Cut,
) -> bool {
    let what = format!("{method} {coming:?} {cut:?} {kept}");
    let desk = &cutter.desk;
    if kept {
        assert_eq!(client.get("/warm").await.unwrap().0.status, 200, "{what}");
        desk.acts();
    }
    desk.order(cut, Answered::Length);
    let mut request = request(method, "/case");
    let (length, payload) = match coming {
        Coming::None => (None, ""),
        Coming::EmptyLength => (Some(0), ""),
        Coming::Length => (Some(PAYLOAD.len()), PAYLOAD),
        Coming::Pieces => (None, PAYLOAD),
    };
    if let Some(length) = length {
        request.headers_mut().insert("content-length", length.into());
    }
    let got = async {
        let mut stream = client.send.clone().send_request(request).await.ok()?;
        for piece in payload.as_bytes().chunks(30) {
            if stream.send_data(Bytes::copy_from_slice(piece)).await.is_err() {
                break;
            }
            tokio::task::yield_now().await;
        }
        let _ = stream.finish().await;
        let status = stream.recv_response().await.ok()?.status().as_u16();
        let mut got = Vec::new();
        while let Some(mut data) = stream.recv_data().await.ok()? {
            got.extend_from_slice(&data.copy_to_bytes(data.remaining()));
        }
        Some((status, got))
    };
    let got = got.await;
    desk.clear();
    let acts = desk.acts();
    let whole = Act {
        method: method.to_owned(),
        path: "/case".to_owned(),
        body: payload.as_bytes().to_vec(),
    };
    assert!(acts.iter().all(|act| *act == whole), "{what}: {acts:?}");
    assert!(acts.len() <= if method == "GET" && kept { 2 } else { 1 }, "{what}: {acts:?}");
    match got {
        // The stream was reset: an error that says so.
        None => false,
        Some((502 | 503, _)) => false,
        Some((status, body)) => {
            assert_eq!(status, 200, "{what}");
            assert_eq!(body, said(method, "/case", payload.as_bytes()).as_bytes(), "{what}");
            assert!(!acts.is_empty(), "{what}");
            true
        }
    }
}

/// A request as lines of a field section, by hand: the client's crate would not send it.
async fn by_hand(client: &Client, lines: &[&[u8]]) -> Result<Option<usize>, quinn::ReadError> {
    let section = [&b"\0\0"[..], &lines.concat()].concat();
    let (mut send, mut receive) = client.connection.open_bi().await.unwrap();
    send.write_all(&[&[1, section.len() as u8], &section[..]].concat()).await.unwrap();
    send.finish().unwrap();
    receive.read(&mut [0; 64]).await
}

#[test]
fn a_request_that_says_something_twice_reaches_nobody() {
    let (backend, pair) = (Backend::standard(), Pair::new());
    let server = Server::start(settings(&backend, &pair)).unwrap();
    // GET, https, and h as the authority.
    let head: [&[u8]; 3] = [b"\xd1", b"\xd7", b"\x50\x01h"];
    run(async {
        let client = Client::new(&server, &pair).await;
        let whole = [&head[..], &[b"\x51\x02/a"]].concat();
        assert!(matches!(by_hand(&client, &whole).await, Ok(Some(_))));
        for second in [&b"\x51\x02/b"[..], b"\xc1", b"\xd4", b"\xd6", b"\x50\x01i"] {
            match by_hand(&client, &[&whole[..], &[second]].concat()).await {
                Err(quinn::ReadError::Reset(code)) => assert_eq!(code.into_inner(), 0x10e),
                other => panic!("{second:x?}: {other:?}"),
            }
        }
    });
    assert_eq!(backend.heads().len(), 1);
    assert_eq!(counters(&server)["proxyd_requests_refused_total"], 5);
}

#[test]
fn what_is_not_public_is_not_so_here_either_and_no_byte_of_a_path_upsets_the_log() {
    let (backend, pair) = (Backend::standard(), Pair::new());
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let mut settings = settings(&backend, &pair);
    settings.edge = proxyd::policy::Edge::default();
    settings.access_log = Some(log.clone());
    let server = Server::start(settings).unwrap();
    run(async {
        let client = Client::new(&server, &pair).await;
        assert_eq!(client.get("/_/stat").await.unwrap().0.status, 403);
        assert_eq!(client.get("/").await.unwrap().0.status, 403);
        let (head, _) = client.exchange(request("PROPFIND", "/a"), None).await.unwrap();
        assert_eq!(head.status, 405);
        assert!(head.headers["allow"].to_str().unwrap().starts_with("GET, HEAD"));
        // U+0085, U+2028 and a C1 control in the path.
        let path = [&b"\x51\x08/"[..], "\u{85}\u{9b}\u{2028}".as_bytes()].concat();
        let _ = by_hand(&client, &[b"\xd1", b"\xd7", b"\x50\x01h", &path]).await;
    });
    drop(server);
    let text = std::fs::read_to_string(&log).unwrap();
    assert!(text.bytes().all(|byte| byte == b'\n' || (b' '..0x7f).contains(&byte)), "{text:?}");
    assert!(text.lines().count() >= 3 && backend.heads().is_empty(), "{text}");
}

/// A client that asks for much and a backend that reads nothing: what the client could send is
/// what its windows allow, not one window for each of a hundred streams.
#[test]
fn one_connection_holds_no_more_than_its_share() {
    let pair = Pair::new();
    let backend = Backend::new(|peer, _| {
        peer.head().unwrap();
        std::thread::park();
    });
    let mut settings = settings(&backend, &pair);
    settings.limits.quic_bytes = 256 << 20;
    let server = Server::start(settings).unwrap();
    run(async {
        let client = Client::new(&server, &pair).await;
        let taken = Arc::new(std::sync::atomic::AtomicUsize::new(0));
        for _ in 0..100 {
            let (mut send, taken) = (client.send.clone(), Arc::clone(&taken));
            tokio::spawn(async move {
                let mut stream = send.send_request(request("PUT", "/a")).await.unwrap();
                loop {
                    let piece = Bytes::from(vec![0; 16 << 10]);
                    if stream.send_data(piece).await.is_err() {
                        return;
                    }
                    taken.fetch_add(16 << 10, std::sync::atomic::Ordering::SeqCst);
                }
            });
        }
        let mut last = usize::MAX;
        while last != taken.load(std::sync::atomic::Ordering::SeqCst) {
            last = taken.load(std::sync::atomic::Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        println!("one connection: {last} bytes were taken of it");
        // The client's own window for sending is in it, and what the backends' sockets hold.
        assert!(last < 24 << 20, "{last}");
    });
}

/// Waits until the proxy has closed it, as it does with those who ask for nothing.
async fn closed(client: &Client) {
    match tokio::time::timeout(Duration::from_secs(60), client.connection.closed()).await {
        Ok(quinn::ConnectionError::ApplicationClosed(close)) => {
            assert_eq!(close.error_code.into_inner(), 0x100, "H3_NO_ERROR");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn those_who_ask_for_nothing_make_room_and_those_who_wait_for_an_answer_do_not() {
    let pair = Pair::new();
    let (answer, go_on) = mpsc::channel::<()>();
    let go_on = Mutex::new(go_on);
    let backend = Backend::new(move |peer, _| {
        while let Some(head) = peer.head() {
            if head.starts_with("GET /slow") {
                go_on.lock().unwrap().recv().unwrap();
            }
            peer.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        }
    });
    let mut settings = settings(&backend, &pair);
    // Two of the smallest shares, and not three.
    settings.limits.quic_bytes = 1500 << 10;
    let server = Server::start(settings).unwrap();
    run(async {
        let busy = Client::new(&server, &pair).await;
        let slow = tokio::spawn({
            let send = busy.send.clone();
            async move {
                let mut stream = send.clone().send_request(request("GET", "/slow")).await.unwrap();
                stream.finish().await.unwrap();
                stream.recv_response().await.unwrap().status().as_u16()
            }
        });
        while counters(&server)["proxyd_requests_total"] == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let mut last = Client::new(&server, &pair).await;
        for _ in 0..5 {
            assert_eq!(last.get("/a").await.unwrap().0.status, 200);
            let next = Client::new(&server, &pair).await;
            closed(&last).await;
            last = next;
        }
        assert_eq!(last.get("/a").await.unwrap().0.status, 200);
        answer.send(()).unwrap();
        assert_eq!(slow.await.unwrap(), 200);
    });
    assert_eq!(counters(&server)["proxyd_connections_evicted_total"], 5);
    assert_eq!(counters(&server)["proxyd_connections_refused_total"], 0);
}

/// A client that says nothing but that it is there.
#[test]
fn pings_do_not_keep_a_connection_that_asks_for_nothing() {
    let (backend, pair) = (Backend::standard(), Pair::new());
    let mut settings = settings(&backend, &pair);
    settings.timeouts.keep_alive_ms = 2000;
    let server = Server::start(settings).unwrap();
    run(async {
        let mut pinging = quinn::TransportConfig::default();
        pinging.keep_alive_interval(Some(Duration::from_millis(100)));
        let client = Client::with(&server, &pair, pinging).await;
        assert_eq!(client.get("/length/5").await.unwrap().1, pattern(5));
        closed(&client).await;
    });
}

/// A reader's windows open by large steps, as with HTTP/1.1.
#[test]
fn what_a_client_took_covers_a_pause() {
    let (backend, pair) = (Backend::standard(), Pair::new());
    let mut settings = settings(&backend, &pair);
    settings.timeouts.body_idle_ms = 1000;
    let server = Server::start(settings).unwrap();
    run(async {
        let client = Client::new(&server, &pair).await;
        let mut stream =
            client.send.clone().send_request(request("GET", "/length/12000000")).await.unwrap();
        stream.finish().await.unwrap();
        stream.recv_response().await.unwrap();
        let mut got = Vec::new();
        let mut paused = false;
        while let Some(mut data) = stream.recv_data().await.unwrap() {
            got.extend_from_slice(&data.copy_to_bytes(data.remaining()));
            if got.len() > 4_000_000 && !std::mem::replace(&mut paused, true) {
                tokio::time::sleep(Duration::from_secs(3)).await;
            }
        }
        assert!(got == pattern(12_000_000), "{} bytes", got.len());
    });
}
