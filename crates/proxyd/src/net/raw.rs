//! The socket under a connection, with the flags that its calls lower.

use std::io::IoSlice;
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags};

/// What a read or a write did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Io {
    /// This number of bytes went over, at least 1.
    Done(usize),
    /// None can, now.
    Blocked,
    /// The peer has finished sending.
    End,
}

/// Whether nothing has come to a socket that was not read, and no end; asked of the kernel.
pub(crate) fn is_silent(socket: impl AsFd) -> bool {
    let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
    matches!(rustix::net::recv(&socket, &mut [0; 1], flags), Err(Errno::AGAIN))
}

/// The socket under a layer, with the flags that its calls lower.
pub(crate) struct Raw<'c> {
    pub(crate) fd: &'c OwnedFd,
    pub(crate) readable: bool,
    pub(crate) writable: bool,
    /// Bytes that went out.
    pub(crate) sent: u64,
}

impl<'c> Raw<'c> {
    pub(crate) fn of(fd: &'c OwnedFd, readable: bool, writable: bool) -> Raw<'c> {
        Raw { fd, readable, writable, sent: 0 }
    }

    pub(crate) fn recv(&mut self, into: &mut [u8]) -> Result<Io, Errno> {
        if !self.readable {
            return Ok(Io::Blocked);
        }
        let received = rustix::io::retry_on_intr(|| {
            rustix::net::recv(self.fd, &mut *into, RecvFlags::DONTWAIT)
        });
        match received {
            Ok((0, _)) => Ok(Io::End),
            Ok((bytes, _)) => Ok(Io::Done(bytes)),
            Err(Errno::AGAIN) => {
                self.readable = false;
                Ok(Io::Blocked)
            }
            Err(errno) => Err(errno),
        }
    }

    pub(crate) fn send(&mut self, slices: &[IoSlice<'_>], more: bool) -> Result<Io, Errno> {
        if !self.writable {
            return Ok(Io::Blocked);
        }
        let mut flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        flags.set(SendFlags::MORE, more);
        let sent = rustix::io::retry_on_intr(|| {
            rustix::net::sendmsg(self.fd, slices, &mut SendAncillaryBuffer::default(), flags)
        });
        match sent {
            Ok(bytes) => {
                self.sent += bytes as u64;
                Ok(Io::Done(bytes))
            }
            Err(Errno::AGAIN) => {
                self.writable = false;
                Ok(Io::Blocked)
            }
            Err(errno) => Err(errno),
        }
    }
}
