//! A connected socket whose flags say what the last event promised.
//!
//! It is registered once, for both directions, and a call lowers its flag where the kernel says
//! EAGAIN. The flags are kept here and not by tokio, which forgets that the peer hung up while
//! bytes wait to be read, and wakes nobody for it.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, Shutdown};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A socket that does not block.
#[derive(Debug)]
pub struct Stream {
    fd: AsyncFd<Arc<OwnedFd>>,
    readable: bool,
    /// Whether a write is worth trying. A socket calls only once a good part of it is free, which
    /// takes a slow reader minutes: who knows better may set this.
    pub writable: bool,
    /// The peer has closed its sending side; what it sent before may still be there.
    pub half_closed: bool,
    /// The connection is broken or closed on both sides.
    hung_up: bool,
    /// Bytes that the kernel took of what was written; splices are not in it.
    pub written: u64,
}

impl Stream {
    /// Within a worker's runtime. Nothing is known of the socket: it is tried first, and waited for
    /// then.
    pub fn new(socket: Arc<OwnedFd>) -> io::Result<Stream> {
        // SAFETY: the descriptor is the one that the shared owner keeps open.
        let fd = unsafe { AsyncFd::register(socket)? };
        Ok(Stream {
            fd,
            readable: true,
            writable: true,
            half_closed: false,
            hung_up: false,
            written: 0,
        })
    }

    pub fn socket(&self) -> &Arc<OwnedFd> {
        self.fd.get_ref()
    }

    /// Ready once the peer is gone for both directions.
    pub fn poll_hung_up(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while !self.hung_up {
            ready!(self.poll_event(cx));
        }
        Poll::Ready(())
    }

    /// Says that nothing more will be sent.
    pub fn end_sending(&self) {
        let _ = rustix::net::shutdown(&self.fd, Shutdown::Write);
    }

    /// Waits for the end of a `connect` that is under way.
    pub async fn connected(&mut self) -> Result<(), Errno> {
        self.writable = false;
        poll_fn(|cx| {
            while !self.writable {
                ready!(self.poll_event(cx));
            }
            Poll::Ready(())
        })
        .await;
        rustix::net::sockopt::socket_error(&self.fd).and_then(|result| result)
    }

    /// Takes up what has happened to the socket since the last time; ready if anything has.
    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut any = Poll::Pending;
        if !self.half_closed
            && let Poll::Ready(Ok(mut guard)) = self.fd.poll_read_ready(cx)
        {
            self.half_closed = guard.ready().is_read_closed();
            self.readable = true;
            guard.clear_ready();
            any = Poll::Ready(());
        }
        if !self.hung_up
            && let Poll::Ready(Ok(mut guard)) = self.fd.poll_write_ready(cx)
        {
            self.hung_up = guard.ready().is_write_closed();
            self.half_closed |= self.hung_up;
            self.readable |= self.hung_up;
            self.writable = true;
            guard.clear_ready();
            any = Poll::Ready(());
        }
        any
    }

    /// Makes a call in one direction, once it may do something, until it says something else than
    /// EAGAIN.
    fn poll_call<T>(
        &mut self,
        cx: &mut Context<'_>,
        may: fn(&mut Stream) -> &mut bool,
        mut call: impl FnMut(&OwnedFd) -> Result<T, Errno>,
    ) -> Poll<Result<T, Errno>> {
        loop {
            if !*may(self) {
                ready!(self.poll_event(cx));
                continue;
            }
            match call(self.fd.get_ref()) {
                Err(Errno::AGAIN) => *may(self) = false,
                Err(Errno::INTR) => {}
                result => return Poll::Ready(result),
            }
        }
    }

    /// A call that reads.
    pub fn poll_in<T>(
        &mut self,
        cx: &mut Context<'_>,
        call: impl FnMut(&OwnedFd) -> Result<T, Errno>,
    ) -> Poll<Result<T, Errno>> {
        self.poll_call(cx, |socket| &mut socket.readable, call)
    }

    /// A call that writes.
    pub fn poll_out<T>(
        &mut self,
        cx: &mut Context<'_>,
        call: impl FnMut(&OwnedFd) -> Result<T, Errno>,
    ) -> Poll<Result<T, Errno>> {
        self.poll_call(cx, |socket| &mut socket.writable, call)
    }

    /// Writes. `more` says that others follow at once, so that the kernel waits for them with the
    /// last packet.
    pub fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
        more: bool,
    ) -> Poll<Result<usize, Errno>> {
        let mut flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        flags.set(SendFlags::MORE, more);
        let sent = ready!(self.poll_out(cx, |fd| {
            rustix::net::sendmsg(fd, slices, &mut SendAncillaryBuffer::default(), flags)
        }))?;
        self.written += sent as u64;
        Poll::Ready(Ok(sent))
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.get_ref().as_fd()
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let into = buffer.initialize_unfilled();
        let (room, flags) = (into.len(), RecvFlags::DONTWAIT);
        let (bytes, _) = ready!(self.poll_in(cx, |fd| rustix::net::recv(fd, &mut *into, flags)))?;
        // Less than there was room for: the socket is empty, and the next byte makes an event.
        // After a half-close there is none to come, so the end must be read.
        if bytes < room && !self.half_closed {
            self.readable = false;
        }
        buffer.advance(bytes);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_send(cx, &[IoSlice::new(bytes)], false).map_err(io::Error::from)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_send(cx, slices, false).map_err(io::Error::from)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.end_sending();
        Poll::Ready(Ok(()))
    }
}

/// Whether nothing has come that was not read, and no end; asked of the kernel.
pub fn is_silent(socket: impl AsFd) -> bool {
    let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
    matches!(rustix::net::recv(socket, &mut [0; 1], flags), Err(Errno::AGAIN))
}
