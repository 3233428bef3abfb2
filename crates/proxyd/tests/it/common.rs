//! A backend, a proxy before it, and a client that sees every byte.

use std::collections::HashMap;
use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use clap::Parser;
use httpd::Address;
use proxyd::backend::addresses;
use proxyd::config::{Config, Mode};
use proxyd::server::Server;
use tempfile::TempDir;

use crate::peer::{PATIENCE, samples};
pub use crate::peer::{Peer, eventually, header, in_chunks};

/// The bytes of every body: position tells value, so that a lost or doubled byte shows.
pub fn pattern(len: usize) -> Vec<u8> {
    let mut bytes = (0..251).collect::<Vec<u8>>().repeat(len / 251 + 1);
    bytes.truncate(len);
    bytes
}

/// A backend on a unix socket. Every connection has a thread.
pub struct Backend {
    pub address: Address,
    /// Connections that were accepted.
    pub connections: Arc<AtomicUsize>,
    /// Every head, in the order of their coming.
    pub heads: Arc<Mutex<Vec<String>>>,
    _folder: TempDir,
}

impl Backend {
    /// `serve` gets the connection, and its number from 0 on.
    pub fn new(serve: impl Fn(&mut Peer, usize) + Send + Sync + 'static) -> Backend {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("b.sock");
        let listener = UnixListener::bind(&path).unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let (count, serve) = (Arc::clone(&connections), Arc::new(serve));
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (stream, serve) = (stream.unwrap(), Arc::clone(&serve));
                let number = count.fetch_add(1, Ordering::SeqCst);
                thread::spawn(move || serve(&mut Peer::new(stream), number));
            }
        });
        let heads = Arc::default();
        Backend { address: Address::Unix(path), connections, heads, _folder: folder }
    }

    /// Answers by the path; see [`respond`].
    pub fn standard() -> Backend {
        let heads: Arc<Mutex<Vec<String>>> = Arc::default();
        let seen = Arc::clone(&heads);
        let backend = Backend::new(move |peer, _| {
            while let Some(head) = peer.head() {
                seen.lock().unwrap().push(head.clone());
                if !respond(peer, &head) {
                    break;
                }
            }
        });
        Backend { heads, ..backend }
    }

    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    pub fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }
}

/// | path | answer |
/// |---|---|
/// | `/length/N` | N bytes with their length |
/// | `/chunked/N/C` | N bytes in chunks of C |
/// | `/close/N` | N bytes, then the end |
/// | `/status/S` | that status, without a body |
/// | `/echo` | the request's body |
/// | others | the request's head |
fn respond(peer: &mut Peer, head: &str) -> bool {
    let path = head.split(' ').nth(1).unwrap();
    let mut parts = path.trim_start_matches('/').split('/');
    let kind = parts.next().unwrap_or_default().to_owned();
    let numbers: Vec<usize> = parts.map_while(|part| part.parse().ok()).collect();
    let with_body = !head.starts_with("HEAD ");
    let request_body = peer.body(head);
    let number = |at: usize| numbers.get(at).copied().unwrap_or(0);
    let bytes = if with_body { pattern(number(0)) } else { Vec::new() };
    match kind.as_str() {
        "length" => {
            peer.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", number(0)));
            peer.send(bytes);
        }
        "chunked" => {
            peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
            if with_body {
                peer.send(in_chunks(&bytes, number(1)));
            }
        }
        "close" => {
            peer.send("HTTP/1.1 200 OK\r\n\r\n");
            peer.send(bytes);
            return false;
        }
        "status" => {
            peer.send(format!("HTTP/1.1 {} Is\r\nContent-Length: 0\r\n\r\n", number(0)));
        }
        "echo" => {
            peer.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", request_body.len()));
            peer.send(request_body);
        }
        _ => {
            peer.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", head.len()));
            if with_body {
                peer.send(head);
            }
        }
    }
    true
}

/// Settings for a test: one worker, plain TCP, that backend, and no time-out that a busy machine
/// could reach; tests of time-outs set their own.
pub fn config(backend: &Backend) -> Config {
    let to = backend.address.to_string();
    let words = ["proxyd", "--listen", "tcp:127.0.0.1:0", "--backend", &to];
    let mut config = Config::parse_from(words);
    (config.options.workers, config.mode) = (Some(1), Mode::Copy);
    (config.options.head_timeout, config.options.body_timeout) = (PATIENCE, PATIENCE);
    config.options.drain_timeout = PATIENCE;
    (config.connect_timeout, config.answer_timeout) = (PATIENCE, PATIENCE);
    config
}

/// A proxy before that backend, with changes to the settings.
pub fn proxy(backend: &Backend, change: impl FnOnce(&mut Config)) -> Server {
    let mut config = config(backend);
    change(&mut config);
    let backend = addresses(&config.backend).unwrap();
    Server::start(config, backend).unwrap()
}

pub fn connect(server: &Server) -> Peer {
    Peer::connect(&server.http.addresses[0])
}

/// What a server counted.
pub fn counters(server: &Server) -> HashMap<String, u64> {
    samples(&server.http.metrics(), "proxyd_")
}
