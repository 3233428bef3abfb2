//! HTTP over TLS.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use httpd::Address;
use proxyd::backend::addresses;
use proxyd::config::Config;
use proxyd::server::Server;
use rustix::process::Signal;
use rustls::client::Resumption;
use rustls::version::{TLS12, TLS13};
use rustls::{ALL_VERSIONS, ClientConfig, HandshakeKind};
use tempfile::TempDir;

use crate::common::{Backend, Peer, config, connect, counters, eventually, pattern};
use crate::lifecycle::program;
use crate::over_tls::{certify, over, trust};
use crate::peer::process::Process;

/// A certificate for `localhost` and its key, and a proxy that offers it.
struct Offer {
    backend: Backend,
    cert: PathBuf,
    key: PathBuf,
    folder: TempDir,
}

impl Offer {
    fn new() -> Offer {
        let folder = tempfile::tempdir().unwrap();
        let [cert, key] = ["cert", "key"].map(|name| folder.path().join(name));
        let offer = Offer { backend: Backend::standard(), cert, key, folder };
        offer.renew();
        offer
    }

    /// Another certificate in the same files.
    fn renew(&self) {
        certify(&self.cert, &self.key);
    }

    fn server(&self, change: impl FnOnce(&mut Config)) -> (Server, SocketAddr) {
        let mut config = config(&self.backend);
        config.tls_listen = vec!["tcp:127.0.0.1:0".parse().unwrap()];
        (config.certificate, config.key) = (Some(self.cert.clone()), Some(self.key.clone()));
        change(&mut config);
        let backend = addresses(&config.backend).unwrap();
        let server = Server::start(config, backend).unwrap();
        let Address::Tcp(address) = server.http.addresses[1] else { panic!("not TCP") };
        (server, address)
    }

    fn trust(&self) -> Arc<ClientConfig> {
        trust(&self.cert, ALL_VERSIONS)
    }

    fn connect(&self, at: SocketAddr) -> Peer {
        Peer::new(over(TcpStream::connect(at).unwrap(), &self.trust()).unwrap())
    }
}

#[test]
fn bodies_arrive_whole_and_who_reads_them_is_told() {
    let offer = Offer::new();
    let (server, at) = offer.server(|_| {});
    for versions in [&[&TLS13], &[&TLS12]] {
        let socket = TcpStream::connect(at).unwrap();
        let mut client = Peer::new(over(socket, &trust(&offer.cert, versions)).unwrap());
        for size in [0, 1, 16_384, 100_000, 5_000_000] {
            assert!(client.get(&format!("/length/{size}")).body == pattern(size), "{size}");
            let chunked = client.get(&format!("/chunked/{size}/70000"));
            assert!(chunked.body == pattern(size), "{size}");
            let put = "PUT /echo HTTP/1.1\r\nHost: t\r\n";
            client.send(format!("{put}Content-Length: {size}\r\n\r\n"));
            client.send(pattern(size));
            assert!(client.answer().unwrap().body == pattern(size), "{size}");
        }
        let head = String::from_utf8(client.get("/headers").body).unwrap();
        // The process reads what it encrypts.
        assert!(head.contains("Ntcopy-Reader: cpu\r\n"), "{head}");
        assert!(head.contains("X-Forwarded-Proto: https\r\n"), "{head}");
    }
    assert_eq!(counters(&server)["spliced_bytes_total"], 0);
    // The plain door of the same proxy still splices.
    let head = String::from_utf8(connect(&server).get("/headers").body).unwrap();
    assert!(head.contains("Ntcopy-Reader: splice\r\n"), "{head}");
}

/// The last record of an answer waits while TCP is full, and must not be lost with the close: neither
/// where the answer ends the connection, nor where the client, which has said that it will ask no
/// more, lets the proxy end it.
#[test]
fn a_slow_client_gets_the_last_byte_too() {
    let offer = Offer::new();
    let (_server, at) = offer.server(|_| {});
    for (round, ending) in ["close", "length"].repeat(6).into_iter().enumerate() {
        // Where exactly the last record begins differs. TCP runs out of room within a record where a
        // packet is smaller, which this window brings about.
        let size = 200_000 + round * 5_557;
        let socket = TcpStream::connect(at).unwrap();
        rustix::net::sockopt::set_socket_recv_buffer_size(&socket, 12 << 10).unwrap();
        let mut stream = over(socket, &offer.trust()).unwrap();
        let request = format!("GET /{ending}/{size} HTTP/1.1\r\nHost: t\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        if ending == "length" {
            stream.conn.send_close_notify();
            stream.flush().unwrap();
        }
        let (mut got, mut piece) = (Vec::new(), [0; 16 << 10]);
        // Without a close_notify the end is an error.
        while let Some(bytes) = Some(stream.read(&mut piece).unwrap()).filter(|b| *b > 0) {
            got.extend_from_slice(&piece[..bytes]);
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(got.ends_with(&pattern(size)), "{ending}, {size}: {} bytes came", got.len());
    }
}

#[test]
fn a_refusal_reaches_a_client_that_is_still_sending() {
    let offer = Offer::new();
    let (_server, at) = offer.server(|config| config.path = vec!["/echo".to_owned()]);
    let body = pattern(24 << 20);
    for (path, lines, status) in [
        ("/secret", format!("Content-Length: {}", body.len()), 403),
        ("/echo", "Transfer-Encoding: chunked".to_owned(), 400),
    ] {
        let mut client = offer.connect(at);
        client.send(format!("PUT {path} HTTP/1.1\r\nHost: t\r\n{lines}\r\n\r\n"));
        client.send(&body);
        assert_eq!(client.answer().map(|answer| answer.status), Some(status), "{path}");
    }
}

/// However many others come in between, and once the certificate was read anew, too.
#[test]
fn sessions_are_resumed() {
    let offer = Offer::new();
    let (server, at) = offer.server(|_| {});
    let visit = |config: &Arc<ClientConfig>| {
        let mut stream = over(TcpStream::connect(at).unwrap(), config).unwrap();
        let kind = stream.conn.handshake_kind();
        stream
            .write_all(b"GET /length/1 HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n")
            .unwrap();
        stream.read_to_end(&mut Vec::new()).unwrap();
        kind == Some(HandshakeKind::Resumed)
    };
    for version in [&TLS12, &TLS13] {
        let [ours, theirs] = [(); 2].map(|()| trust(&offer.cert, &[version]));
        let mut forgets = (*theirs).clone();
        forgets.resumption = Resumption::disabled();
        let forgets = Arc::new(forgets);
        assert!(!visit(&ours), "{version:?}");
        for _ in 0..300 {
            assert!(!visit(&forgets));
        }
        assert!(visit(&ours), "{version:?}");
        server.reloader()();
        assert!(visit(&ours), "{version:?}, read anew");
    }
}

#[test]
fn a_handshake_that_stops_ends_or_is_none_is_let_go() {
    let offer = Offer::new();
    // The beginning of a ClientHello.
    let hello = [&[22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3][..], &[7; 100]].concat();
    let (server, at) =
        offer.server(|config| config.options.head_timeout = Duration::from_millis(500));
    let request = b"GET / HTTP/1.1\r\nHost: t\r\n\r\n";
    for (at_case, (bytes, ends)) in
        [(&hello[..0], true), (&hello[..], true), (&hello[..3], false), (&request[..], false)]
            .into_iter()
            .enumerate()
    {
        let mut client = Peer::connect(&Address::Tcp(at));
        client.send(bytes);
        if ends {
            client.half_close();
        }
        client.rest();
        let failed = || counters(&server)["handshakes_failed_total"];
        eventually("it is counted", || failed() == at_case as u64 + 1);
    }
    // The only worker has not lost itself over it.
    assert_eq!(offer.connect(at).get("/length/5").body, pattern(5));
}

#[test]
fn hup_brings_the_new_certificate_and_a_broken_one_leaves_the_old() {
    let offer = Offer::new();
    let [file, log] = ["proxyd.toml", "log"].map(|name| offer.folder.path().join(name));
    let (backend, [cert, key]) = (&offer.backend.address, [&offer.cert, &offer.key]);
    let settings = format!(
        "tls-listen = [\"tcp:127.0.0.1:0\"]\nbackend = \"{backend}\"\ncertificate = {cert:?}\n\
         key = {key:?}\npath = [\"/length/\"]\n"
    );
    std::fs::write(&file, settings).unwrap();
    let mut command = program(&["--config", file.to_str().unwrap()]);
    command.stderr(std::fs::File::create(&log).unwrap());
    let mut program = Process(command.spawn().unwrap());
    let said = |words: &str| {
        let text = || std::fs::read_to_string(&log).unwrap();
        eventually(words, || text().lines().any(|line| line.contains(words)));
        text()
    };
    let text = said("listening address=tcp:");
    let at = text.trim_end().rsplit_once("tcp:").unwrap().1.parse().unwrap();
    let mut before = offer.connect(at);
    assert_eq!(before.get("/length/5").body, pattern(5));
    let old = offer.trust();
    offer.renew();
    program.signal(Signal::HUP);
    said("certificate and key are read again");
    assert_eq!(offer.connect(at).get("/length/5").body, pattern(5));
    assert!(over(TcpStream::connect(at).unwrap(), &old).is_err());
    let served = offer.trust();
    let connect = || over(TcpStream::connect(at).unwrap(), &served);
    let other = std::fs::read(&offer.key).unwrap();
    offer.renew();
    std::fs::write(&offer.key, other).unwrap();
    for why in ["key: keys may not be consistent", "cert: no certificate can be read"] {
        program.signal(Signal::HUP);
        said(why);
        assert_eq!(Peer::new(connect().unwrap()).get("/length/5").body, pattern(5), "{why}");
        std::fs::write(&offer.cert, "no certificate").unwrap();
    }
    assert_eq!(before.get("/length/5").body, pattern(5), "connections go on");
    assert_eq!(before.get("/status/200").status, 403);
    program.signal(Signal::TERM);
    assert!(program.wait().success());
}
