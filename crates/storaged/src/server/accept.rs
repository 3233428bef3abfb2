//! Takes connections in, or turns them away.

use std::net::SocketAddr;

use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{SendFlags, SocketFlags, acceptfrom_with, send, sockopt};

use crate::http::error_body;
use crate::store::Store;

/// Where a worker's connections come from.
#[derive(Debug)]
pub struct Door {
    socket: OwnedFd,
    tcp: bool,
    /// Only what is measured is to be had there.
    pub admin: bool,
}

#[derive(Debug)]
pub enum Accepted {
    /// A connection, and its peer's address if it has one.
    Connection(OwnedFd, Option<SocketAddr>),
    NoDescriptor,
    Nobody,
}

impl Door {
    pub fn new(socket: OwnedFd, tcp: bool, admin: bool) -> Door {
        Door { socket, tcp, admin }
    }

    pub fn socket(&self) -> &OwnedFd {
        &self.socket
    }

    pub fn accept(&self, store: &Store, sndbuf: Option<usize>) -> Accepted {
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
            Err(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => {
                Accepted::NoDescriptor
            }
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
