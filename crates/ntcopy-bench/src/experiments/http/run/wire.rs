//! A client's connection.

use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::body_reader::Received;
use crate::run::Failure;

#[derive(Debug, Clone, Copy)]
pub struct Target {
    pub address: SocketAddr,
    /// How long a connection may take.
    pub patience: Duration,
}

/// A connection that never waits.
pub struct Wire(TcpStream);

impl Wire {
    pub fn open(target: &Target) -> Result<Wire, Failure> {
        let doing = || format!("cannot connect to the proxy at {}", target.address);
        let socket = TcpStream::connect_timeout(&target.address, target.patience)
            .map_err(Failure::io(doing()))?;
        socket.set_nodelay(true).map_err(Failure::io("cannot set TCP_NODELAY"))?;
        socket.set_nonblocking(true).map_err(Failure::io("cannot set O_NONBLOCK"))?;
        Ok(Wire(socket))
    }

    /// Sends a request. It is far smaller than a socket's buffer in which nothing waits.
    pub fn send(&mut self, request: &[u8]) -> Result<(), Errno> {
        let sent = send(&self.0, request, SendFlags::NOSIGNAL)?;
        if sent == request.len() { Ok(()) } else { Err(Errno::AGAIN) }
    }

    pub fn read(&mut self, into: &mut [u8]) -> Result<Received, Errno> {
        got(recv(&self.0, into, RecvFlags::empty()).map(|(n, _)| n))
    }

    /// Throws away what is there, as many bytes as `room` has at most: the kernel drops them where
    /// they lie, and no byte is read.
    pub fn discard(&mut self, room: &mut [u8]) -> Result<Received, Errno> {
        got(recv(&self.0, room, RecvFlags::TRUNC).map(|(_, n)| n))
    }

    /// Whether nothing has come that was not asked for, the end included.
    pub fn is_quiet(&self) -> bool {
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        matches!(recv(&self.0, &mut [0; 1], flags), Err(Errno::AGAIN))
    }
}

impl AsFd for Wire {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
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
