//! A non-blocking connection that remembers whether it can be read or written.
//!
//! The workers' epoll is edge-triggered: a connection is registered once, for everything, and a
//! flag here says what the last edge promised. A flag falls when the kernel says EAGAIN. That
//! spares the epoll_ctl calls with which a level-triggered proxy switches interest back and
//! forth several times an exchange. The price is that whoever stops before EAGAIN must come back
//! without being called; the worker keeps a list for that.

use std::io::IoSlice;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use rustix::net::Shutdown;

use crate::net::{Io, Raw, is_silent};
use crate::pipe::Pipe;
use crate::splice::{self, Moved};
use crate::tls::{Session, kernel};

/// How far the end of a connection is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finish {
    /// It is said, and follows all that was sent.
    Said,
    /// It isn't; an event will say when to try again.
    Blocked,
    /// It isn't; this number of bytes must leave first, and no event will say that they have.
    HeldUp(u64),
}

/// What stands between the bytes and the socket.
#[derive(Debug)]
pub enum Layer {
    /// Nothing.
    Plain,
    /// rustls encrypts in this process.
    Tls(Box<Session>),
    /// The kernel encrypts.
    Kernel,
}

/// A connection.
#[derive(Debug)]
pub struct Conn {
    fd: OwnedFd,
    layer: Layer,
    readable: bool,
    writable: bool,
    /// The peer has closed its sending side; what it sent before may still be there.
    half_closed: bool,
    /// The connection is broken or closed on both sides.
    hung_up: bool,
    /// Bytes that the kernel took of what was written; splices are not in it.
    written: u64,
}

impl Conn {
    /// A connection of which nothing is known: it is tried first and waited for then.
    pub fn new(fd: OwnedFd, layer: Layer) -> Conn {
        Conn {
            fd,
            layer,
            readable: true,
            writable: true,
            half_closed: false,
            hung_up: false,
            written: 0,
        }
    }

    /// A connection whose `connect` is under way.
    pub fn connecting(fd: OwnedFd) -> Conn {
        Conn { readable: false, writable: false, ..Conn::new(fd, Layer::Plain) }
    }

    /// Takes note of an event.
    pub fn on_event(&mut self, flags: EventFlags) {
        let broken = flags.intersects(EventFlags::HUP | EventFlags::ERR);
        self.hung_up |= broken;
        self.half_closed |= broken || flags.contains(EventFlags::RDHUP);
        self.readable |= broken || flags.intersects(EventFlags::IN | EventFlags::RDHUP);
        self.writable |= broken || flags.contains(EventFlags::OUT);
    }

    /// Whether there is something to read: bytes, or the end.
    pub fn is_readable(&self) -> bool {
        self.readable
    }

    /// Whether a write is worth trying.
    pub fn is_writable(&self) -> bool {
        self.writable
    }

    /// Whether the peer is gone for both directions.
    pub fn is_hung_up(&self) -> bool {
        self.hung_up
    }

    /// Whether the peer has closed its sending side, at least.
    pub fn is_half_closed(&self) -> bool {
        self.half_closed
    }

    /// Whether nothing has come that was not read, and no end; asked of the kernel.
    pub fn is_silent(&self) -> bool {
        is_silent(&self.fd)
    }

    /// Whether a splice may read from it.
    pub fn can_splice_from(&self) -> bool {
        matches!(self.layer, Layer::Plain)
    }

    /// Whether a splice may write to it.
    pub fn can_splice_to(&self) -> bool {
        matches!(self.layer, Layer::Plain | Layer::Kernel)
    }

    /// Bytes that have left for the kernel by writes. What a layer encrypts here leaves later than
    /// it is taken, and is a little more.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// What a call on the socket has found out.
    fn note(&mut self, readable: bool, writable: bool, sent: u64) {
        (self.readable, self.writable) = (readable, writable);
        self.written += sent;
    }

    /// Whether the CPU reads what is written to it, in order to encrypt it.
    pub fn is_encrypted(&self) -> bool {
        !matches!(self.layer, Layer::Plain)
    }

    /// Goes on with what comes before the first request; true once it is done.
    ///
    /// # Errors
    ///
    /// The handshake failed or the socket is broken.
    pub fn handshake(&mut self) -> Result<bool, Errno> {
        let Layer::Tls(session) = &mut self.layer else { return Ok(true) };
        let for_kernel = session.is_for_kernel();
        let mut socket = Raw::of(&self.fd, self.readable, self.writable);
        let done = session.handshake(&mut socket);
        self.note(socket.readable, socket.writable, socket.sent);
        if !done? {
            return Ok(false);
        }
        if for_kernel && let Layer::Tls(session) = std::mem::replace(&mut self.layer, Layer::Kernel)
        {
            session.hand_over(&self.fd)?;
        }
        Ok(true)
    }

    /// Reads.
    ///
    /// # Errors
    ///
    /// The connection is broken.
    pub fn recv(&mut self, into: &mut [u8]) -> Result<Io, Errno> {
        debug_assert!(!into.is_empty());
        let mut socket = Raw::of(&self.fd, self.readable, self.writable);
        let result = match &mut self.layer {
            Layer::Plain => socket.recv(into).inspect(|io| {
                // Less than there was room for: the socket is empty, and the next byte makes an
                // edge. After a half-close there is none to come, so the end must be read.
                if matches!(io, Io::Done(bytes) if *bytes < into.len()) && !self.half_closed {
                    socket.readable = false;
                }
            }),
            Layer::Tls(session) => session.recv(&mut socket, into),
            // A record's end cuts a read short, so a short one does not say that none follows.
            Layer::Kernel => kernel::recv(&mut socket, into),
        };
        self.note(socket.readable, socket.writable, socket.sent);
        result
    }

    /// Writes. `more` says that others follow at once, so that the kernel waits for them with
    /// the last packet. What was taken may still be in the layer: see [`flush`](Conn::flush).
    ///
    /// # Errors
    ///
    /// The connection is broken.
    pub fn send(&mut self, bytes: &[u8], more: bool) -> Result<Io, Errno> {
        let mut socket = Raw::of(&self.fd, self.readable, self.writable);
        let result = match &mut self.layer {
            Layer::Plain | Layer::Kernel => socket.send(&[IoSlice::new(bytes)], more),
            Layer::Tls(session) => session.send(&mut socket, bytes),
        };
        self.note(socket.readable, socket.writable, socket.sent);
        result
    }

    /// Hands what the layer holds to the kernel; true once it holds nothing.
    ///
    /// # Errors
    ///
    /// The connection is broken.
    pub fn flush(&mut self) -> Result<bool, Errno> {
        let mut socket = Raw::of(&self.fd, self.readable, self.writable);
        let result = match &mut self.layer {
            Layer::Plain | Layer::Kernel => Ok(true),
            Layer::Tls(session) => session.flush(&mut socket),
        };
        self.note(socket.readable, socket.writable, socket.sent);
        result
    }

    /// [`splice::to_pipe`], with the flag.
    pub(crate) fn splice_into(&mut self, pipe: &mut Pipe, limit: usize) -> Result<Moved, Errno> {
        if !self.readable {
            return Ok(Moved::Blocked);
        }
        let was_empty = pipe.held() == 0;
        let moved = splice::to_pipe(&self.fd, pipe, limit)?;
        // A pipe that holds something may be full, with the socket's bytes still to come.
        if moved == Moved::Blocked && (was_empty || self.is_silent()) {
            self.readable = false;
        }
        Ok(moved)
    }

    /// [`splice::from_pipe`], with the flag.
    pub(crate) fn splice_from(&mut self, pipe: &mut Pipe, more: bool) -> Result<Moved, Errno> {
        if !self.writable {
            return Ok(Moved::Blocked);
        }
        let moved = splice::from_pipe(pipe, &self.fd, more)?;
        self.writable &= moved != Moved::Blocked;
        Ok(moved)
    }

    /// Bytes that were sent and that the peer has not acknowledged.
    pub fn unacknowledged(&self) -> u64 {
        kernel::unacknowledged(&self.fd).unwrap_or(0)
    }

    /// Has the next write tried, whatever the last event said: a socket calls only once a good
    /// part of it is free, which takes a slow reader minutes.
    pub fn try_writing(&mut self) {
        self.writable = true;
    }

    /// Says that nothing more will be sent, once everything before it is with TCP.
    pub fn finish(&mut self) -> Finish {
        let mut socket = Raw::of(&self.fd, self.readable, self.writable);
        let said = match &mut self.layer {
            Layer::Plain => true,
            Layer::Tls(session) => session.close(&mut socket),
            Layer::Kernel => match kernel::held_up(&self.fd) {
                Some(bytes) => return Finish::HeldUp(bytes),
                None => kernel::close(&mut socket),
            },
        };
        self.note(socket.readable, socket.writable, socket.sent);
        if !said {
            return Finish::Blocked;
        }
        let _ = rustix::net::shutdown(&self.fd, Shutdown::Write);
        Finish::Said
    }

    /// Makes the close that follows a reset: the peer can't take it for a body's proper end.
    pub fn reset_on_close(&self) {
        let _ = rustix::net::sockopt::set_socket_linger(&self.fd, Some(std::time::Duration::ZERO));
    }
}

impl AsFd for Conn {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
