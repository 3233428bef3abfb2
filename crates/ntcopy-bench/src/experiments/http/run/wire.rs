//! A client's connection, plain or through TLS.

use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::body_reader::{Received, errno};
use crate::run::Failure;

/// Plaintext goes over the same few pages again and again.
const TLS_PIECE_BYTES: usize = 64 << 10;

pub trait Handshake: std::fmt::Debug {
    fn shake(&self, socket: TcpStream, patience: Duration) -> Result<Box<dyn Session>, Failure>;
}

/// A session that enciphers, and its socket.
pub trait Session {
    fn socket(&self) -> &TcpStream;
    fn send(&mut self, request: &[u8]) -> std::io::Result<usize>;
    fn read(&mut self, into: &mut [u8]) -> Result<Received, Errno>;
}

#[derive(Debug, Clone)]
pub struct Target {
    pub address: SocketAddr,
    pub tls: Option<Arc<dyn Handshake>>,
    /// How long a connection, and its handshake, may take.
    pub patience: Duration,
}

/// A certificate that signs itself, and clients that believe it.
#[derive(Debug, Clone)]
pub struct Certificate {
    /// The certificate and its key, PEM.
    pub file: PathBuf,
    pub client: Arc<dyn Handshake>,
}

/// A connection that never waits.
pub enum Wire {
    Plain(TcpStream),
    Tls(Box<dyn Session>),
}

impl Wire {
    pub fn open(target: &Target) -> Result<Wire, Failure> {
        let doing = || format!("cannot connect to the proxy at {}", target.address);
        let socket = TcpStream::connect_timeout(&target.address, target.patience)
            .map_err(Failure::io(doing()))?;
        socket.set_nodelay(true).map_err(Failure::io("cannot set TCP_NODELAY"))?;
        let wire = match &target.tls {
            None => Wire::Plain(socket),
            Some(client) => Wire::Tls(client.shake(socket, target.patience)?),
        };
        let socket = wire.socket();
        socket.set_nonblocking(true).map_err(Failure::io("cannot set O_NONBLOCK"))?;
        Ok(wire)
    }

    fn socket(&self) -> &TcpStream {
        match self {
            Wire::Plain(socket) => socket,
            Wire::Tls(wire) => wire.socket(),
        }
    }

    /// Sends a request. It is far smaller than a socket's buffer in which nothing waits.
    pub fn send(&mut self, request: &[u8]) -> Result<(), Errno> {
        let sent = match self {
            Wire::Plain(socket) => send(&*socket, request, SendFlags::NOSIGNAL)?,
            Wire::Tls(wire) => wire.send(request).map_err(errno)?,
        };
        if sent == request.len() { Ok(()) } else { Err(Errno::AGAIN) }
    }

    pub fn read(&mut self, into: &mut [u8]) -> Result<Received, Errno> {
        match self {
            Wire::Plain(socket) => got(recv(&*socket, into, RecvFlags::empty()).map(|(n, _)| n)),
            Wire::Tls(wire) => wire.read(into),
        }
    }

    /// Throws away what is there, as many bytes as `room` has at most. On a plain connection the
    /// kernel drops them where they lie, and no byte is read; through TLS they are deciphered.
    pub fn discard(&mut self, room: &mut [u8]) -> Result<Received, Errno> {
        match self {
            Wire::Plain(socket) => got(recv(&*socket, room, RecvFlags::TRUNC).map(|(_, n)| n)),
            Wire::Tls(wire) => {
                let most = room.len().min(TLS_PIECE_BYTES);
                wire.read(&mut room[..most])
            }
        }
    }

    /// Whether a read that was not filled says nothing of what is left in the socket.
    pub fn reads_in_pieces(&self) -> bool {
        matches!(self, Wire::Tls(_))
    }

    /// Whether nothing has come that was not asked for, the end included.
    pub fn is_quiet(&self) -> bool {
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        match self {
            Wire::Plain(socket) => {
                matches!(recv(socket, &mut [0; 1], flags), Err(Errno::AGAIN))
            }
            // Tickets may come at any time.
            Wire::Tls(wire) => !matches!(recv(wire.socket(), &mut [0; 1], flags), Ok((0, _))),
        }
    }
}

impl AsFd for Wire {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket().as_fd()
    }
}

fn got(result: Result<usize, Errno>) -> Result<Received, Errno> {
    match result {
        Ok(0) => Ok(Received::End),
        Ok(bytes) => Ok(Received::Bytes(bytes)),
        Err(Errno::AGAIN | Errno::INTR) => Ok(Received::Blocked),
        Err(errno) => Err(errno),
    }
}
