//! A client's connection, and answers off it piece by piece.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};

use crate::random::Random;

/// Nothing takes this long; who waits longer hangs, and that is an error.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Where a proxy, or a backend, is.
#[derive(Debug, Clone, Default)]
pub struct Target {
    pub tcp: Option<SocketAddr>,
    pub unix: Option<PathBuf>,
    pub tls: Option<(SocketAddr, Arc<ClientConfig>)>,
}

/// A connection of any kind.
pub enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Target {
    /// A connection of some kind.
    ///
    /// # Errors
    ///
    /// There is none, or the handshake is cut off.
    pub fn connect(&self, random: &mut Random) -> io::Result<Wire> {
        let kinds = [self.tcp.is_some(), self.unix.is_some(), self.tls.is_some()];
        let kind = loop {
            let kind = random.below(kinds.len());
            if kinds[kind] {
                break kind;
            }
        };
        let stream = match (kind, &self.tcp, &self.unix, &self.tls) {
            (0, Some(address), ..) => Stream::Tcp(tcp(address)?),
            (1, _, Some(path), _) => {
                let stream = UnixStream::connect(path)?;
                stream.set_read_timeout(Some(PATIENCE))?;
                stream.set_write_timeout(Some(PATIENCE))?;
                Stream::Unix(stream)
            }
            (.., Some((address, config))) => {
                let mut socket = tcp(address)?;
                let name = ServerName::try_from("localhost").expect("a name");
                let mut tls = ClientConnection::new(Arc::clone(config), name)
                    .map_err(|error| io::Error::other(error.to_string()))?;
                tls.complete_io(&mut socket)?;
                Stream::Tls(Box::new(StreamOwned::new(tls, socket)))
            }
            _ => return Err(io::Error::other("nowhere to connect to")),
        };
        Ok(Wire { stream, unread: Vec::new() })
    }
}

fn tcp(address: &SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// How an answer failed to come.
#[derive(Debug)]
pub enum End {
    /// The connection ended before, or within it.
    Cut(&'static str),
    /// Nothing came, and no end, for [`PATIENCE`].
    Hung,
    /// What came is no answer.
    Nonsense(String),
}

/// The head of an answer.
#[derive(Debug)]
pub struct Head {
    pub status: u16,
    lines: String,
}

impl Head {
    pub fn value(&self, name: &str) -> Option<&str> {
        self.lines.lines().skip(1).find_map(|line| {
            let (other, value) = line.split_once(": ")?;
            other.eq_ignore_ascii_case(name).then_some(value)
        })
    }

    /// Bytes of the body of an answer to a GET.
    ///
    /// # Errors
    ///
    /// It has no length, which all of these daemons' answers have.
    pub fn body_bytes(&self) -> Result<usize, End> {
        if self.status < 200 || matches!(self.status, 204 | 304) {
            return Ok(0);
        }
        let length = self.value("content-length").and_then(|text| text.parse().ok());
        length.ok_or_else(|| End::Nonsense(format!("no length: {}", self.lines.escape_debug())))
    }

    /// Whether the connection ends with this answer.
    pub fn is_last(&self) -> bool {
        self.value("connection") == Some("close")
    }
}

/// A client's end.
pub struct Wire {
    stream: Stream,
    unread: Vec<u8>,
}

impl Wire {
    /// # Errors
    ///
    /// The other side doesn't take it.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.stream {
            Stream::Tcp(stream) => stream.write_all(bytes),
            Stream::Unix(stream) => stream.write_all(bytes),
            Stream::Tls(stream) => stream.write_all(bytes).and_then(|()| stream.flush()),
        }
    }

    /// Says that nothing more will be sent. Through TLS this is not a client's way.
    pub fn half_close(&self) -> bool {
        match &self.stream {
            Stream::Tcp(stream) => stream.shutdown(Shutdown::Write).is_ok(),
            Stream::Unix(stream) => stream.shutdown(Shutdown::Write).is_ok(),
            Stream::Tls(_) => false,
        }
    }

    /// Goes away with a reset; a unix socket, that knows none, with what it has not read.
    pub fn reset(self) {
        let socket = match &self.stream {
            Stream::Tcp(stream) => stream.as_fd(),
            Stream::Unix(_) => return,
            Stream::Tls(stream) => stream.sock.as_fd(),
        };
        let _ = rustix::net::sockopt::set_socket_linger(socket, Some(Duration::ZERO));
    }

    /// Takes little at a time.
    pub fn narrow(&self) {
        let socket = match &self.stream {
            Stream::Tcp(stream) => stream.as_fd(),
            Stream::Unix(stream) => stream.as_fd(),
            Stream::Tls(stream) => stream.sock.as_fd(),
        };
        let _ = rustix::net::sockopt::set_socket_recv_buffer_size(socket, 4096);
    }

    fn more(&mut self) -> Result<bool, End> {
        let mut piece = [0; 64 << 10];
        let read = match &mut self.stream {
            Stream::Tcp(stream) => stream.read(&mut piece),
            Stream::Unix(stream) => stream.read(&mut piece),
            Stream::Tls(stream) => stream.read(&mut piece),
        };
        match read {
            Ok(0) => Ok(false),
            Ok(bytes) => {
                self.unread.extend_from_slice(&piece[..bytes]);
                Ok(true)
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => self.more(),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                Err(End::Hung)
            }
            // A reset, or TLS without a goodbye.
            Err(_) => Ok(false),
        }
    }

    /// The next head that is no interim one, unless that is wanted.
    ///
    /// # Errors
    ///
    /// It doesn't come.
    pub fn head(&mut self, interim: bool) -> Result<Head, End> {
        loop {
            if let Some(at) = self.unread.windows(4).position(|four| four == b"\r\n\r\n") {
                let head = parse(&self.unread[..at + 4])?;
                self.unread.drain(..at + 4);
                if head.status >= 200 || interim {
                    return Ok(head);
                }
                continue;
            }
            let known = b"HTTP/1.1 ";
            let begun = self.unread.len().min(known.len());
            if self.unread[..begun] != known[..begun] || self.unread.len() > 64 << 10 {
                let whose = crate::content::whose(&self.unread, 0);
                return Err(End::Nonsense(format!("where an answer should begin {whose}")));
            }
            let empty = self.unread.is_empty();
            if !self.more()? {
                return Err(End::Cut(if empty { "before the answer" } else { "in its head" }));
            }
        }
    }

    /// Bytes of a body: at most `at_most`, of those at least `at_least`, and at least one.
    ///
    /// # Errors
    ///
    /// They don't come.
    pub fn piece(&mut self, at_least: usize, at_most: usize) -> Result<Vec<u8>, End> {
        while self.unread.len() < at_least.min(at_most) || self.unread.is_empty() {
            if !self.more()? {
                return Err(End::Cut("in its body"));
            }
        }
        let rest = self.unread.split_off(at_most.min(self.unread.len()));
        Ok(std::mem::replace(&mut self.unread, rest))
    }

    /// Everything to the end of the connection.
    ///
    /// # Errors
    ///
    /// It doesn't end.
    pub fn rest(mut self) -> Result<Vec<u8>, End> {
        while self.more()? {
            if self.unread.len() > 4 << 20 {
                return Err(End::Nonsense("it goes on and on".to_owned()));
            }
        }
        Ok(self.unread)
    }
}

fn parse(head: &[u8]) -> Result<Head, End> {
    let nonsense = || End::Nonsense(format!("no head: {}", head.escape_ascii()));
    let lines = String::from_utf8(head.to_vec()).map_err(|_| nonsense())?;
    let status = lines.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok());
    Ok(Head { status: status.ok_or_else(nonsense)?, lines })
}
