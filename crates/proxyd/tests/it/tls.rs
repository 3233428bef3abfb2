//! HTTP over TLS.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use proxyd::config::{Config, TlsBy};
use proxyd::net::Address;
use proxyd::server::Server;
use proxyd::worker::Stop;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use tempfile::TempDir;

use crate::common::{Backend, Peer, Stream, config, counters, eventually, pattern};

/// A certificate for `localhost`, and its key, in files of those names.
pub struct Pair {
    pub cert: PathBuf,
    pub key: PathBuf,
    folder: TempDir,
}

impl Pair {
    pub fn new() -> Pair {
        let folder = tempfile::tempdir().unwrap();
        let pair =
            Pair { cert: folder.path().join("cert"), key: folder.path().join("key"), folder };
        pair.renew();
        pair
    }

    /// Another certificate in the same files.
    pub fn renew(&self) {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        std::fs::write(&self.cert, made.cert.pem()).unwrap();
        std::fs::write(&self.key, made.signing_key.serialize_pem()).unwrap();
    }

    pub fn roots(cert: &Path) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(cert).unwrap()).unwrap();
        roots
    }
}

type TlsStream = StreamOwned<ClientConnection, TcpStream>;

impl Stream for TlsStream {
    fn half_close(&self) {
        self.sock.shutdown(std::net::Shutdown::Write).unwrap();
    }
}

fn tls_stream(
    address: &Address,
    cert: &Path,
    versions: &[&'static rustls::SupportedProtocolVersion],
) -> std::io::Result<TlsStream> {
    let Address::Tcp(address) = address else { panic!() };
    tls_over(TcpStream::connect(address).unwrap(), cert, versions)
}

fn tls_over(
    mut socket: TcpStream,
    cert: &Path,
    versions: &[&'static rustls::SupportedProtocolVersion],
) -> std::io::Result<TlsStream> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .unwrap()
        .with_root_certificates(Pair::roots(cert))
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let name = ServerName::try_from("localhost").unwrap();
    let mut client = ClientConnection::new(Arc::new(config), name).unwrap();
    client.complete_io(&mut socket)?;
    assert_eq!(client.alpn_protocol(), Some(&b"http/1.1"[..]));
    Ok(StreamOwned::new(client, socket))
}

fn tls_client(server: &Server, pair: &Pair) -> Peer {
    Peer::new(tls_stream(&server.addresses().tls[0], &pair.cert, rustls::ALL_VERSIONS).unwrap())
}

fn settings(backend: &Backend, pair: &Pair) -> Config {
    let mut config = config(backend);
    config.tls_listen = vec!["tcp:127.0.0.1:0".parse().unwrap()];
    config.tls.certificate = Some(pair.cert.clone());
    config.tls.key = Some(pair.key.clone());
    config
}

fn exchange_all_sizes(client: &mut Peer) {
    for size in [0, 1, 16_384, 100_000, 5_000_000] {
        assert!(client.get(&format!("/length/{size}")).body == pattern(size), "{size}");
        assert!(client.get(&format!("/chunked/{size}/70000")).body == pattern(size), "{size}");
        client.send(format!("PUT /echo HTTP/1.1\r\nHost: t\r\nContent-Length: {size}\r\n\r\n"));
        client.send(pattern(size));
        assert!(client.answer().unwrap().body == pattern(size), "{size}");
    }
}

#[test]
fn bodies_arrive_whole_through_tls_and_the_backend_copies_normally() {
    let (backend, pair) = (Backend::standard(), Pair::new());
    let server = Server::start(settings(&backend, &pair)).unwrap();
    for versions in [&[&rustls::version::TLS13], &[&rustls::version::TLS12]] {
        let stream = tls_stream(&server.addresses().tls[0], &pair.cert, versions).unwrap();
        let mut client = Peer::new(stream);
        exchange_all_sizes(&mut client);
        let head = String::from_utf8(client.get("/headers").body).unwrap();
        assert!(head.contains("Ntcopy-Reader: cpu\r\n"), "{head}");
        assert!(head.contains("X-Forwarded-Proto: https\r\n"), "{head}");
    }
    // The plain door of the same proxy still splices.
    let mut plain = crate::common::connect(&server);
    let head = String::from_utf8(plain.get("/headers").body).unwrap();
    assert!(head.contains("Ntcopy-Reader: splice\r\n"), "{head}");
}

#[test]
fn an_answer_ends_with_a_proper_goodbye() {
    let (backend, pair) = (Backend::standard(), Pair::new());
    for by in [TlsBy::User, TlsBy::Ktls] {
        let mut settings = settings(&backend, &pair);
        settings.tls.by = by;
        let server = Server::start(settings).unwrap();
        let address = &server.addresses().tls[0];
        let mut stream = tls_stream(address, &pair.cert, rustls::ALL_VERSIONS).unwrap();
        stream.write_all(b"GET /close/100000 HTTP/1.1\r\nHost: t\r\n\r\n").unwrap();
        let mut got = Vec::new();
        // Without a close_notify this is an error.
        stream.read_to_end(&mut got).unwrap();
        assert!(got.ends_with(&pattern(100_000)));
    }
}

/// The last record of an answer waits in the kernel's TLS while TCP is full, and must not be lost
/// with the close: neither where the answer ends the connection, nor where the client, which has
/// said that it will ask no more, lets the proxy end it.
#[test]
fn a_slow_client_gets_the_last_byte_too() {
    if !proxyd::tls::kernel_is_available() {
        eprintln!("skipped in part: this kernel has no TLS, so the process encrypts");
    }
    let (backend, pair) = (Backend::standard(), Pair::new());
    let mut settings = settings(&backend, &pair);
    settings.tls.by = TlsBy::Ktls;
    settings.timeouts.linger_ms = 50;
    let server = Server::start(settings).unwrap();
    let Address::Tcp(address) = server.addresses().tls[0] else { panic!("not TCP") };
    for (round, ending) in ["close", "length"].repeat(6).into_iter().enumerate() {
        // Where exactly the last record begins differs. TCP runs out of room within a record where
        // a packet is smaller, which this window brings about, and its send buffer is small, which
        // `ntcopy-cli/tests/booted/proxyd_booted.rs` sees to.
        let size = 200_000 + round * 5_557;
        let socket = TcpStream::connect(address).unwrap();
        rustix::net::sockopt::set_socket_recv_buffer_size(&socket, 12 << 10).unwrap();
        let mut stream = tls_over(socket, &pair.cert, rustls::ALL_VERSIONS).unwrap();
        let request = format!("GET /{ending}/{size} HTTP/1.1\r\nHost: t\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        if ending == "length" {
            stream.conn.send_close_notify();
            stream.flush().unwrap();
        }
        let (mut got, mut piece) = (Vec::new(), [0; 16 << 10]);
        // Without a close_notify the end is an error.
        while let Some(bytes) = Some(stream.read(&mut piece).unwrap()).filter(|bytes| *bytes > 0) {
            got.extend_from_slice(&piece[..bytes]);
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        assert!(got.ends_with(&pattern(size)), "{ending}, {size}: {} bytes came", got.len());
    }
}

/// Where the kernel has no TLS this is the test above again, in this process: what falls back
/// must serve as well.
#[test]
fn the_kernel_encrypts_what_is_spliced_to_it_where_it_can() {
    let available = proxyd::tls::kernel_is_available();
    if !available {
        eprintln!("skipped in part: this kernel has no TLS, so the process encrypts");
    }
    let (backend, pair) = (Backend::standard(), Pair::new());
    for versions in [&[&rustls::version::TLS13], &[&rustls::version::TLS12]] {
        let mut settings = settings(&backend, &pair);
        settings.tls.by = TlsBy::Ktls;
        let server = Server::start(settings).unwrap();
        let stream = tls_stream(&server.addresses().tls[0], &pair.cert, versions).unwrap();
        let mut client = Peer::new(stream);
        exchange_all_sizes(&mut client);
        let head = String::from_utf8(client.get("/headers").body).unwrap();
        assert!(head.contains("Ntcopy-Reader: cpu\r\n"), "the kernel reads what it encrypts");
        assert_eq!(counters(&server)["proxyd_spliced_bytes_total"] > 0, available);
    }
}

#[test]
fn what_is_no_tls_is_closed() {
    let (backend, pair) = (Backend::standard(), Pair::new());
    let server = Server::start(settings(&backend, &pair)).unwrap();
    let mut client = Peer::tcp(&server.addresses().tls[0]);
    client.send("GET / HTTP/1.1\r\nHost: t\r\n\r\n");
    client.rest();
    eventually("it is counted", || counters(&server)["proxyd_handshakes_failed_total"] == 1);
    assert_eq!(backend.connections(), 0);
}

#[test]
fn a_handshake_that_stops_is_cut_off() {
    let (backend, pair) = (Backend::standard(), Pair::new());
    let mut settings = settings(&backend, &pair);
    settings.timeouts.handshake_ms = 200;
    let server = Server::start(settings).unwrap();
    let mut client = Peer::tcp(&server.addresses().tls[0]);
    client.send([22, 3, 1]);
    assert_eq!(client.rest(), b"");
}

#[test]
fn a_reload_brings_the_new_certificate() {
    let (backend, pair) = (Backend::standard(), Pair::new());
    let server = Server::start(settings(&backend, &pair)).unwrap();
    let mut before = tls_client(&server, &pair);
    let old = pair.folder.path().join("old");
    std::fs::copy(&pair.cert, &old).unwrap();
    pair.renew();
    server.reload().unwrap();
    let address = &server.addresses().tls[0];
    eventually("the new one is shown", || {
        tls_stream(address, &pair.cert, rustls::ALL_VERSIONS).is_ok()
    });
    assert!(tls_stream(address, &old, rustls::ALL_VERSIONS).is_err());
    std::fs::write(&pair.cert, "no certificate").unwrap();
    assert!(server.reload().unwrap_err().to_string().contains("no certificate"));
    assert_eq!(before.get("/length/5").body, pattern(5), "connections go on");
}

#[test]
fn a_client_that_closes_within_the_handshake_is_let_go() {
    let (backend, pair) = (Backend::standard(), Pair::new());
    // The beginning of a ClientHello.
    let hello = [&[22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3][..], &[7; 100]].concat();
    for by in [TlsBy::User, TlsBy::Ktls] {
        let mut settings = settings(&backend, &pair);
        settings.tls.by = by;
        let server = Server::start(settings).unwrap();
        for (at, part) in [0, 3, 5, hello.len()].into_iter().enumerate() {
            let mut client = Peer::tcp(&server.addresses().tls[0]);
            client.send(&hello[..part]);
            client.half_close();
            assert_eq!(client.rest(), b"");
            let failed = || counters(&server)["proxyd_handshakes_failed_total"];
            eventually("it is counted", || failed() == at as u64 + 1);
        }
        // The only worker has not lost itself over it.
        assert_eq!(tls_client(&server, &pair).get("/length/5").body, pattern(5));
    }
}

#[test]
fn a_stop_waits_for_the_first_request_of_a_handshake_under_way() {
    let (backend, pair) = (Backend::standard(), Pair::new());
    let mut server = Server::start(settings(&backend, &pair)).unwrap();
    let Address::Tcp(address) = server.addresses().tls[0] else { panic!() };
    let socket = TcpStream::connect(address).unwrap();
    eventually("it is in", || counters(&server)["proxyd_connections_accepted_total"] == 1);
    server.stop(Stop::Graceful);
    eventually("the door is shut", || TcpStream::connect(address).is_err());
    let stream = tls_over(socket, &pair.cert, rustls::ALL_VERSIONS).unwrap();
    let answer = Peer::new(stream).get("/length/5");
    assert_eq!(answer.header("connection"), Some("close"));
    assert_eq!(answer.body, pattern(5));
    server.join();
}

#[test]
fn a_stop_does_not_wait_long_for_a_request_that_does_not_come() {
    let (backend, pair) = (Backend::standard(), Pair::new());
    let mut settings = settings(&backend, &pair);
    settings.timeouts.header_ms = 200;
    settings.timeouts.shutdown_ms = 1_000_000_000;
    let mut server = Server::start(settings).unwrap();
    let Address::Tcp(address) = server.addresses().tls[0] else { panic!() };
    let socket = TcpStream::connect(address).unwrap();
    eventually("it is in", || counters(&server)["proxyd_connections_accepted_total"] == 1);
    server.stop(Stop::Graceful);
    let stream = tls_over(socket, &pair.cert, rustls::ALL_VERSIONS).unwrap();
    server.join();
    assert_eq!(backend.connections(), 0);
    drop(stream);
}
