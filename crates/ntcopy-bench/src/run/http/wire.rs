//! A client's connection, plain or through TLS.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use rustls::{ClientConfig, ClientConnection};

use super::tls;
use crate::run::Failure;

/// Where clients go.
#[derive(Debug, Clone)]
pub struct Target {
    /// The proxy's address.
    pub address: SocketAddr,
    /// How TLS is spoken, if it is.
    pub tls: Option<Arc<ClientConfig>>,
    /// How long a connection, and its handshake, may take.
    pub patience: Duration,
}

/// What a read gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Got {
    /// So many bytes, at least 1.
    Bytes(usize),
    /// None are there now.
    Blocked,
    /// The peer has finished.
    End,
}

/// A connection that never waits.
pub enum Wire {
    /// The bytes as they are.
    Plain(TcpStream),
    /// Behind a session of rustls.
    Tls(Box<TlsWire>),
}

/// A TLS session and its socket.
pub struct TlsWire {
    socket: TcpStream,
    session: ClientConnection,
}

impl Wire {
    /// Connects, and shakes hands.
    pub fn open(target: &Target) -> Result<Wire, Failure> {
        let doing = || format!("cannot connect to the proxy at {}", target.address);
        let socket = TcpStream::connect_timeout(&target.address, target.patience)
            .map_err(Failure::io(doing()))?;
        socket.set_nodelay(true).map_err(Failure::io("cannot set TCP_NODELAY"))?;
        let wire = match &target.tls {
            None => Wire::Plain(socket),
            Some(config) => Wire::Tls(Box::new(shake_hands(socket, config, target.patience)?)),
        };
        let socket = wire.socket();
        socket.set_nonblocking(true).map_err(Failure::io("cannot set O_NONBLOCK"))?;
        Ok(wire)
    }

    fn socket(&self) -> &TcpStream {
        match self {
            Wire::Plain(socket) => socket,
            Wire::Tls(wire) => &wire.socket,
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

    /// Reads what is there.
    pub fn read(&mut self, into: &mut [u8]) -> Result<Got, Errno> {
        match self {
            Wire::Plain(socket) => got(recv(&*socket, into, RecvFlags::empty()).map(|(n, _)| n)),
            Wire::Tls(wire) => wire.read(into),
        }
    }

    /// Throws away what is there, as many bytes as `room` has at most. Of a plain connection the
    /// kernel drops them where they lie, and nobody reads a byte; through TLS they are deciphered.
    pub fn discard(&mut self, room: &mut [u8]) -> Result<Got, Errno> {
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

    /// Whether nothing has come that nobody asked for, the end included.
    pub fn is_quiet(&self) -> bool {
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        match self {
            Wire::Plain(socket) => {
                matches!(recv(socket, &mut [0; 1], flags), Err(Errno::AGAIN))
            }
            // Tickets may come at any time.
            Wire::Tls(wire) => !matches!(recv(&wire.socket, &mut [0; 1], flags), Ok((0, _))),
        }
    }
}

impl AsFd for Wire {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket().as_fd()
    }
}

/// Plaintext goes over the same few pages again and again.
const TLS_PIECE_BYTES: usize = 64 << 10;

impl TlsWire {
    fn send(&mut self, request: &[u8]) -> std::io::Result<usize> {
        self.session.writer().write_all(request)?;
        while self.session.wants_write() {
            self.session.write_tls(&mut self.socket)?;
        }
        Ok(request.len())
    }

    fn read(&mut self, into: &mut [u8]) -> Result<Got, Errno> {
        loop {
            match self.session.reader().read(into) {
                Ok(0) => return Ok(Got::End),
                Ok(bytes) => return Ok(Got::Bytes(bytes)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(Got::End),
                Err(error) => return Err(errno(error)),
            }
            match self.session.read_tls(&mut self.socket) {
                Ok(0) => return Ok(Got::End),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Got::Blocked),
                Err(error) => return Err(errno(error)),
            }
            // A record that can't be deciphered is no byte that was sent.
            self.session.process_new_packets().map_err(|_| Errno::BADMSG)?;
        }
    }
}

fn shake_hands(
    mut socket: TcpStream,
    config: &Arc<ClientConfig>,
    patience: Duration,
) -> Result<TlsWire, Failure> {
    let failed = |what: String| Failure::Answer(format!("the TLS handshake failed: {what}"));
    let name = tls::server_name().map_err(failed)?;
    let mut session =
        ClientConnection::new(Arc::clone(config), name).map_err(|e| failed(e.to_string()))?;
    for set in [TcpStream::set_read_timeout, TcpStream::set_write_timeout] {
        set(&socket, Some(patience)).map_err(Failure::io("cannot set a time-out"))?;
    }
    while session.is_handshaking() {
        session.complete_io(&mut socket).map_err(|e| failed(e.to_string()))?;
    }
    Ok(TlsWire { socket, session })
}

fn got(result: Result<usize, Errno>) -> Result<Got, Errno> {
    match result {
        Ok(0) => Ok(Got::End),
        Ok(bytes) => Ok(Got::Bytes(bytes)),
        Err(Errno::AGAIN | Errno::INTR) => Ok(Got::Blocked),
        Err(errno) => Err(errno),
    }
}

fn errno(error: std::io::Error) -> Errno {
    Errno::from_io_error(&error).unwrap_or(Errno::IO)
}
