//! Connections whose flags say what the last event promised.
//!
//! A socket is registered once, for both directions, and a call lowers its flag where the kernel
//! says EAGAIN. The flags are kept here and not by tokio, which forgets that the peer hung up while
//! bytes wait to be read, and wakes nobody for it.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, Shutdown};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::server::TlsStream;

use crate::ktls;
use crate::pipe::Pipe;
use crate::splice::{self, Moved};

/// A socket that does not block.
#[derive(Debug)]
pub struct Socket {
    fd: AsyncFd<Arc<OwnedFd>>,
    readable: bool,
    writable: bool,
    /// The peer has closed its sending side; what it sent before may still be there.
    half_closed: bool,
    /// The connection is broken or closed on both sides.
    hung_up: bool,
    /// Bytes that the kernel took of what was written; splices are not in it.
    written: u64,
}

impl Socket {
    /// A socket of which nothing is known: it is tried first and waited for then.
    pub fn new(fd: AsyncFd<Arc<OwnedFd>>) -> Socket {
        Socket {
            fd,
            readable: true,
            writable: true,
            half_closed: false,
            hung_up: false,
            written: 0,
        }
    }

    /// Waits for the end of a `connect` that is under way.
    pub async fn connected(&mut self) -> Result<(), Errno> {
        self.writable = false;
        std::future::poll_fn(|cx| {
            while !self.writable {
                ready!(self.poll_event(cx));
            }
            Poll::Ready(rustix::net::sockopt::socket_error(&self.fd).and_then(|result| result))
        })
        .await
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
        may: fn(&mut Socket) -> &mut bool,
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
    fn poll_in<T>(
        &mut self,
        cx: &mut Context<'_>,
        call: impl FnMut(&OwnedFd) -> Result<T, Errno>,
    ) -> Poll<Result<T, Errno>> {
        self.poll_call(cx, |socket| &mut socket.readable, call)
    }

    /// A call that writes.
    fn poll_out<T>(
        &mut self,
        cx: &mut Context<'_>,
        call: impl FnMut(&OwnedFd) -> Result<T, Errno>,
    ) -> Poll<Result<T, Errno>> {
        self.poll_call(cx, |socket| &mut socket.writable, call)
    }

    fn poll_recv(&mut self, cx: &mut Context<'_>, into: &mut [u8]) -> Poll<Result<usize, Errno>> {
        let flags = RecvFlags::DONTWAIT;
        let bytes = ready!(self.poll_in(cx, |fd| rustix::net::recv(fd, &mut *into, flags)))?.0;
        // Less than there was room for: the socket is empty, and the next byte makes an event.
        // After a half-close there is none to come, so the end must be read.
        if bytes < into.len() && !self.half_closed {
            self.readable = false;
        }
        Poll::Ready(Ok(bytes))
    }

    fn poll_send(
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

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.get_ref().as_fd()
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let bytes = ready!(self.poll_recv(cx, buffer.initialize_unfilled()))?;
        buffer.advance(bytes);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Socket {
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
        let _ = rustix::net::shutdown(&*self, Shutdown::Write);
        Poll::Ready(Ok(()))
    }
}

/// A connection, by what stands between its bytes and the socket.
#[derive(Debug)]
pub enum Conn {
    /// Nothing.
    Plain(Socket),
    /// rustls encrypts in this process.
    Tls(Box<TlsStream<Socket>>),
    /// The kernel encrypts.
    Kernel(Socket),
}

impl Conn {
    pub fn socket(&self) -> &Socket {
        match self {
            Conn::Plain(socket) | Conn::Kernel(socket) => socket,
            Conn::Tls(stream) => stream.get_ref().0,
        }
    }

    fn socket_mut(&mut self) -> &mut Socket {
        match self {
            Conn::Plain(socket) | Conn::Kernel(socket) => socket,
            Conn::Tls(stream) => stream.get_mut().0,
        }
    }

    /// Ready once the peer is gone for both directions.
    pub fn poll_hung_up(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let socket = self.socket_mut();
        while !socket.hung_up {
            ready!(socket.poll_event(cx));
        }
        Poll::Ready(())
    }

    /// Whether a write is worth trying.
    pub fn is_writable(&self) -> bool {
        self.socket().writable
    }

    /// Whether the peer has closed its sending side, at least.
    pub fn is_half_closed(&self) -> bool {
        self.socket().half_closed
    }

    /// Whether nothing has come that was not read, and no end; asked of the kernel.
    pub fn is_silent(&self) -> bool {
        is_silent(self.socket().as_fd())
    }

    pub fn can_splice_from(&self) -> bool {
        matches!(self, Conn::Plain(_))
    }

    pub fn can_splice_to(&self) -> bool {
        matches!(self, Conn::Plain(_) | Conn::Kernel(_))
    }

    /// Whether the CPU reads what is written to it, in order to encrypt it.
    pub fn is_encrypted(&self) -> bool {
        !matches!(self, Conn::Plain(_))
    }

    /// Bytes that have left for the kernel by writes. What a layer encrypts here leaves later than
    /// it is taken, and is a little more.
    pub fn written(&self) -> u64 {
        self.socket().written
    }

    /// Reads; 0 is the end.
    pub fn poll_recv(
        &mut self,
        cx: &mut Context<'_>,
        into: &mut [u8],
    ) -> Poll<Result<usize, Errno>> {
        match self {
            Conn::Plain(socket) => socket.poll_recv(cx, into),
            // A record's end cuts a read short, so a short one does not say that none follows.
            Conn::Kernel(socket) => socket.poll_in(cx, |fd| ktls::recv(fd, into)),
            Conn::Tls(stream) => {
                let mut buffer = ReadBuf::new(into);
                match ready!(Pin::new(stream).poll_read(cx, &mut buffer)) {
                    Ok(()) => Poll::Ready(Ok(buffer.filled().len())),
                    // Closed without a close_notify: what is framed notices.
                    Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                        Poll::Ready(Ok(0))
                    }
                    Err(error) => Poll::Ready(Err(errno(&error))),
                }
            }
        }
    }

    /// Writes. `more` says that others follow at once, so that the kernel waits for them with
    /// the last packet. What was taken may still be in the layer: see
    /// [`poll_flush`](Conn::poll_flush).
    pub fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &[u8],
        more: bool,
    ) -> Poll<Result<usize, Errno>> {
        match self {
            Conn::Plain(socket) | Conn::Kernel(socket) => {
                socket.poll_send(cx, &[IoSlice::new(bytes)], more)
            }
            Conn::Tls(stream) => {
                Pin::new(stream).poll_write(cx, bytes).map_err(|error| errno(&error))
            }
        }
    }

    /// Hands what the layer holds to the kernel; ready once it holds nothing.
    pub fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Errno>> {
        match self {
            Conn::Plain(_) | Conn::Kernel(_) => Poll::Ready(Ok(())),
            Conn::Tls(stream) => Pin::new(stream).poll_flush(cx).map_err(|error| errno(&error)),
        }
    }

    /// [`splice::to_pipe`], with the flag. It also waits where a pipe that holds something is full:
    /// whoever draws from it goes on then.
    pub fn poll_splice_into(
        &mut self,
        cx: &mut Context<'_>,
        pipe: &mut Pipe,
        limit: usize,
    ) -> Poll<Result<Moved, Errno>> {
        let Conn::Plain(socket) = self else { return Poll::Ready(Ok(Moved::Unsupported)) };
        loop {
            if !socket.readable {
                ready!(socket.poll_event(cx));
                continue;
            }
            let was_empty = pipe.held() == 0;
            match splice::to_pipe(&*socket, pipe, limit)? {
                Moved::Blocked if was_empty || is_silent(socket.as_fd()) => socket.readable = false,
                Moved::Blocked => return Poll::Pending,
                moved => return Poll::Ready(Ok(moved)),
            }
        }
    }

    /// [`splice::from_pipe`], with the flag.
    pub fn poll_splice_from(
        &mut self,
        cx: &mut Context<'_>,
        pipe: &mut Pipe,
    ) -> Poll<Result<Moved, Errno>> {
        self.socket_mut().poll_out(cx, |fd| match splice::from_pipe(pipe, fd, false)? {
            Moved::Blocked => Err(Errno::AGAIN),
            moved => Ok(moved),
        })
    }

    /// Bytes that were sent and that the peer has not acknowledged.
    pub fn unacknowledged(&self) -> u64 {
        httpd::unacknowledged(self.socket())
    }

    /// Has the next write tried, whatever the last event said: a socket calls only once a good
    /// part of it is free, which takes a slow reader minutes.
    pub fn try_writing(&mut self) {
        self.socket_mut().writable = true;
    }

    /// Says that nothing more will be sent, behind everything that was; it waits for a client that
    /// takes something in each `patience`.
    pub async fn finish(&mut self, patience: Duration) {
        let said = match self {
            Conn::Plain(_) => true,
            Conn::Tls(stream) => {
                let goodbye = tokio::io::AsyncWriteExt::shutdown(stream);
                return drop(tokio::time::timeout(patience, goodbye).await);
            }
            Conn::Kernel(socket) => {
                ktls::drained(&*socket, patience).await
                    && tokio::time::timeout(
                        patience,
                        std::future::poll_fn(|cx| socket.poll_out(cx, ktls::close)),
                    )
                    .await
                    .is_ok()
            }
        };
        if said {
            let _ = rustix::net::shutdown(self.socket(), Shutdown::Write);
        }
    }

    /// Makes the close that follows a reset: the peer can't take it for a body's proper end.
    pub fn reset_on_close(&self) {
        let _ = rustix::net::sockopt::set_socket_linger(self.socket(), Some(Duration::ZERO));
    }
}

impl AsyncRead for Conn {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let bytes = ready!(self.poll_recv(cx, buffer.initialize_unfilled()))?;
        buffer.advance(bytes);
        Poll::Ready(Ok(()))
    }
}

fn is_silent(socket: BorrowedFd<'_>) -> bool {
    let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
    matches!(rustix::net::recv(socket, &mut [0; 1], flags), Err(Errno::AGAIN))
}

fn errno(error: &io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::PROTO)
}
