//! Takes connections in, or turns them away.

use std::net::SocketAddr;

use rustix::fd::OwnedFd;
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::net::{SendFlags, SocketFlags, acceptfrom_with, send, sockopt};

use crate::http::error_body;
use crate::store::Store;

/// Where a worker's connections come from.
#[derive(Debug)]
pub struct Door {
    socket: OwnedFd,
    /// It is a TCP port.
    tcp: bool,
    /// Only what is measured is to be had there.
    pub admin: bool,
}

/// A descriptor that is given up so that a client can be told that there are no more.
#[derive(Debug)]
pub struct Reserve(Option<OwnedFd>);

impl Reserve {
    /// Takes one.
    pub fn new() -> Reserve {
        Reserve(openat(CWD, "/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok())
    }
}

/// What came of it.
#[derive(Debug)]
pub enum Accepted {
    /// A connection, and its peer's address if it has one.
    Connection(OwnedFd, Option<SocketAddr>),
    /// A client was told that there is no room.
    TurnedAway,
    /// Nobody is there any more.
    Nobody,
}

impl Door {
    /// A listening socket.
    pub fn new(socket: OwnedFd, tcp: bool, admin: bool) -> Door {
        Door { socket, tcp, admin }
    }

    /// What to wait for.
    pub fn socket(&self) -> &OwnedFd {
        &self.socket
    }

    /// Accepts one connection.
    pub fn accept(&self, store: &Store, reserve: &mut Reserve, sndbuf: Option<usize>) -> Accepted {
        let result = match self.take() {
            Err(Errno::MFILE | Errno::NFILE) => {
                store.give_up_some();
                self.take()
            }
            result => result,
        };
        match result {
            Ok((socket, peer)) => {
                if self.tcp {
                    let _ = sockopt::set_tcp_nodelay(&socket, true);
                }
                if let Some(bytes) = sndbuf {
                    let _ = sockopt::set_socket_send_buffer_size(&socket, bytes);
                }
                Accepted::Connection(socket, peer)
            }
            Err(Errno::MFILE | Errno::NFILE) => self.turn_away(reserve),
            Err(Errno::AGAIN) => Accepted::Nobody,
            Err(errno) => {
                tracing::error!(%errno, "cannot accept a connection");
                Accepted::Nobody
            }
        }
    }

    fn take(&self) -> Result<(OwnedFd, Option<SocketAddr>), Errno> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        loop {
            match acceptfrom_with(&self.socket, flags) {
                Ok((socket, peer)) => {
                    return Ok((socket, peer.and_then(|peer| SocketAddr::try_from(peer).ok())));
                }
                // A client that was quicker; the next may be there.
                Err(Errno::INTR | Errno::CONNABORTED) => {}
                Err(errno) => return Err(errno),
            }
        }
    }

    /// Left in the queue, the client would wait, and the worker would spin.
    fn turn_away(&self, reserve: &mut Reserve) -> Accepted {
        reserve.0 = None;
        let result = self.take();
        let turned_away = result.is_ok();
        if let Ok((socket, _)) = result {
            say_no_room(&socket);
        }
        *reserve = Reserve::new();
        if turned_away { Accepted::TurnedAway } else { Accepted::Nobody }
    }
}

/// Answers what the client has not asked yet.
pub fn say_no_room(socket: &OwnedFd) {
    let body = error_body(503, "no room for another connection; try again");
    let head = format!(
        "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 1\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let _ = send(socket, &[head.as_bytes(), &body].concat(), SendFlags::NOSIGNAL);
}
