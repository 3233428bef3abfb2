//! One end of a connection that shows everything that came, for the tests of both daemons: each
//! uses some of it.

#![allow(dead_code)]

pub mod process;

use std::collections::HashMap;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::thread::sleep;
use std::time::{Duration, Instant};

use httpd::Address;
use rustix::fd::{AsFd, BorrowedFd};
use rustix::net::sockopt::{Timeout, set_socket_timeout, set_tcp_nodelay};
use rustix::net::{Shutdown, shutdown};

/// Far beyond anything that is waited for, on a busy machine too; only a hang takes this long.
pub const PATIENCE: Duration = Duration::from_secs(120);

pub trait Stream: Read + Write + Send {
    fn socket(&self) -> BorrowedFd<'_>;
}

impl Stream for TcpStream {
    fn socket(&self) -> BorrowedFd<'_> {
        self.as_fd()
    }
}

impl Stream for UnixStream {
    fn socket(&self) -> BorrowedFd<'_> {
        self.as_fd()
    }
}

/// One end of a connection, with what was read and not used.
pub struct Peer {
    stream: Box<dyn Stream>,
    seen: Vec<u8>,
    /// Before each read.
    pub pause: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        header(&self.head, name)
    }

    pub fn etag(&self) -> &str {
        self.header("etag").unwrap()
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }
}

/// The value of a header line.
pub fn header<'h>(head: &'h str, name: &str) -> Option<&'h str> {
    head.lines().skip(1).find_map(|line| {
        let (other, value) = line.split_once(": ")?;
        other.eq_ignore_ascii_case(name).then_some(value)
    })
}

/// What metrics say, by names without that prefix.
pub fn samples(text: &str, prefix: &str) -> HashMap<String, u64> {
    let lines = text.lines().filter_map(|line| line.strip_prefix(prefix)?.split_once(' '));
    lines.map(|(name, value)| (name.to_owned(), value.parse().unwrap())).collect()
}

/// Waits until it holds.
pub fn eventually(what: &str, holds: impl Fn() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < end, "never: {what}");
        sleep(Duration::from_millis(2));
    }
}

/// A body in chunks of so many bytes, with extensions and a trailer, which say nothing.
pub fn in_chunks(body: &[u8], bytes: usize) -> Vec<u8> {
    let mut all = Vec::new();
    for chunk in body.chunks(bytes) {
        all.extend(format!("{:X};a=b\r\n", chunk.len()).as_bytes());
        all.extend([chunk, b"\r\n"].concat());
    }
    all.extend(b"0\r\nX: y\r\n\r\n");
    all
}

impl Peer {
    pub fn new(stream: impl Stream + 'static) -> Peer {
        for way in [Timeout::Recv, Timeout::Send] {
            set_socket_timeout(stream.socket(), way, Some(PATIENCE)).unwrap();
        }
        // A unix socket has no such thing.
        let _ = set_tcp_nodelay(stream.socket(), true);
        Peer { stream: Box::new(stream), seen: Vec::new(), pause: Duration::ZERO }
    }

    pub fn connect(to: &Address) -> Peer {
        match to {
            Address::Tcp(address) => Peer::new(TcpStream::connect(address).unwrap()),
            Address::Unix(path) => Peer::new(UnixStream::connect(path).unwrap()),
        }
    }

    /// `None`: nobody listens there now.
    pub fn try_connect(to: &Address) -> Option<Peer> {
        match to {
            Address::Tcp(address) => TcpStream::connect(address).ok().map(Peer::new),
            Address::Unix(path) => UnixStream::connect(path).ok().map(Peer::new),
        }
    }

    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).unwrap();
    }

    /// Like `send`, where the other side may have closed.
    pub fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        self.stream.write_all(bytes.as_ref()).is_ok()
    }

    pub fn socket(&self) -> BorrowedFd<'_> {
        self.stream.socket()
    }

    pub fn half_close(&self) {
        let _ = shutdown(self.socket(), Shutdown::Write);
    }

    /// Reads some bytes; false at the end, or where the connection is broken.
    pub fn more(&mut self) -> bool {
        sleep(self.pause);
        let mut piece = [0; 64 << 10];
        match self.stream.read(&mut piece) {
            Ok(0) => false,
            Ok(bytes) => {
                self.seen.extend_from_slice(&piece[..bytes]);
                true
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => true,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                panic!("it hangs after {}", self.seen.escape_ascii())
            }
            Err(_) => false,
        }
    }

    /// A head with its empty line; `None` if the end comes first.
    pub fn head(&mut self) -> Option<String> {
        loop {
            if let Some(at) = self.seen.windows(4).position(|four| four == b"\r\n\r\n") {
                let rest = self.seen.split_off(at + 4);
                return Some(String::from_utf8(std::mem::replace(&mut self.seen, rest)).unwrap());
            }
            if !self.more() {
                return None;
            }
        }
    }

    /// Exactly `len` bytes, or fewer at the end.
    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        while self.seen.len() < len && self.more() {}
        let rest = self.seen.split_off(len.min(self.seen.len()));
        std::mem::replace(&mut self.seen, rest)
    }

    fn line(&mut self) -> String {
        let mut line = Vec::new();
        while !line.ends_with(b"\r\n") {
            let byte = self.bytes(1);
            assert!(!byte.is_empty(), "cut off: {}", line.escape_ascii());
            line.extend(byte);
        }
        String::from_utf8(line).unwrap().trim_end().to_owned()
    }

    /// The payload of a chunked body, and the sizes of its chunks.
    pub fn chunked(&mut self) -> (Vec<u8>, Vec<usize>) {
        let (mut body, mut sizes) = (Vec::new(), Vec::new());
        loop {
            let size = usize::from_str_radix(&self.line(), 16).unwrap();
            body.extend(self.bytes(size));
            assert_eq!(self.line(), "");
            if size == 0 {
                return (body, sizes);
            }
            sizes.push(size);
        }
    }

    pub fn rest(&mut self) -> Vec<u8> {
        while self.more() {}
        std::mem::take(&mut self.seen)
    }

    /// The other side has closed, and sent nothing more.
    pub fn assert_ended(&mut self) {
        let rest = self.rest();
        assert!(rest.is_empty(), "{}", rest.escape_ascii());
    }

    /// The body that a head announces.
    pub fn body(&mut self, head: &str) -> Vec<u8> {
        if header(head, "transfer-encoding").is_some() {
            return self.chunked().0;
        }
        match header(head, "content-length") {
            Some(length) => self.bytes(length.parse().unwrap()),
            None if head.starts_with("HTTP/") => self.rest(),
            None => Vec::new(),
        }
    }

    /// A whole answer to something else than a HEAD; `None` if the connection ends instead.
    pub fn answer(&mut self) -> Option<Answer> {
        self.answer_to("GET")
    }

    pub fn answer_to(&mut self, method: &str) -> Option<Answer> {
        let head = self.head()?;
        let status = head[9..12].parse().unwrap();
        let bodiless = method == "HEAD" || status < 200 || status == 204 || status == 304;
        let body = if bodiless { Vec::new() } else { self.body(&head) };
        Some(Answer { status, head, body })
    }

    /// `None`: the connection ended before an answer did.
    pub fn try_request(
        &mut self,
        method: &str,
        path: &str,
        headers: &str,
        body: &[u8],
    ) -> Option<Answer> {
        let length = match method {
            "PUT" => format!("Content-Length: {}\r\n", body.len()),
            _ => String::new(),
        };
        let head = format!("{method} {path} HTTP/1.1\r\nHost: test\r\n{length}{headers}\r\n");
        // Who refuses a body early may have hung up before its end.
        self.try_send([head.as_bytes(), body].concat());
        self.answer_to(method)
    }

    pub fn request(&mut self, method: &str, path: &str, headers: &str, body: &[u8]) -> Answer {
        self.try_request(method, path, headers, body).expect("an answer")
    }

    pub fn get(&mut self, path: &str) -> Answer {
        self.request("GET", path, "", b"")
    }

    pub fn put(&mut self, path: &str, body: &[u8]) -> Answer {
        self.request("PUT", path, "", body)
    }

    pub fn delete(&mut self, path: &str) -> Answer {
        self.request("DELETE", path, "", b"")
    }
}
