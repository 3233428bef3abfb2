//! Connections, by what stands between their bytes and the socket.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use httpd::splice::{self, Pipe};
use httpd::{Stream, is_silent};
use rustix::io::Errno;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::timeout;
use tokio_rustls::server::TlsStream;

#[derive(Debug)]
pub enum Conn {
    Plain(Stream),
    Tls(Box<TlsStream<Stream>>),
}

impl Conn {
    pub fn socket(&self) -> &Stream {
        match self {
            Conn::Plain(socket) => socket,
            Conn::Tls(stream) => stream.get_ref().0,
        }
    }

    pub fn socket_mut(&mut self) -> &mut Stream {
        match self {
            Conn::Plain(socket) => socket,
            Conn::Tls(stream) => stream.get_mut().0,
        }
    }

    /// Whether the CPU reads what is written to it, in order to encrypt it.
    pub fn is_encrypted(&self) -> bool {
        matches!(self, Conn::Tls(_))
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
            Conn::Plain(socket) => socket.poll_send(cx, &[IoSlice::new(bytes)], more),
            Conn::Tls(stream) => {
                Pin::new(stream).poll_write(cx, bytes).map_err(|error| errno(&error))
            }
        }
    }

    /// Hands what the layer holds to the kernel; ready once it holds nothing.
    pub fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Errno>> {
        match self {
            Conn::Plain(_) => Poll::Ready(Ok(())),
            Conn::Tls(stream) => Pin::new(stream).poll_flush(cx).map_err(|error| errno(&error)),
        }
    }

    /// [`splice::to_pipe`], with the flag, from a connection with nothing between. It also waits
    /// where a pipe that holds something is full: whoever draws from it goes on then.
    pub fn poll_splice_into(
        &mut self,
        cx: &mut Context<'_>,
        pipe: &mut Pipe,
        limit: usize,
    ) -> Poll<Result<usize, Errno>> {
        debug_assert!(!self.is_encrypted());
        let was_empty = pipe.held == 0;
        let moved = self.socket_mut().poll_in(cx, |fd| match splice::to_pipe(fd, pipe, limit) {
            // The pipe is full.
            Err(Errno::AGAIN) if !was_empty && !is_silent(fd) => Ok(None),
            moved => moved.map(Some),
        });
        match ready!(moved)? {
            Some(bytes) => Poll::Ready(Ok(bytes)),
            None => Poll::Pending,
        }
    }

    /// [`splice::from_pipe`], with the flag.
    pub fn poll_splice_from(
        &mut self,
        cx: &mut Context<'_>,
        pipe: &mut Pipe,
    ) -> Poll<Result<usize, Errno>> {
        self.socket_mut().poll_out(cx, |fd| splice::from_pipe(pipe, fd))
    }

    /// Says that nothing more will be sent, behind everything that was; it waits for a client that
    /// takes something in each `patience`.
    pub async fn finish(&mut self, patience: Duration) {
        match self {
            Conn::Plain(socket) => socket.end_sending(),
            Conn::Tls(stream) => {
                let goodbye = tokio::io::AsyncWriteExt::shutdown(stream);
                let _ = timeout(patience, goodbye).await;
            }
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
        match &mut *self {
            Conn::Plain(socket) => Pin::new(socket).poll_read(cx, buffer),
            Conn::Tls(stream) => match ready!(Pin::new(stream).poll_read(cx, buffer)) {
                // Closed without a close_notify: what is framed notices.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Poll::Ready(Ok(())),
                result => Poll::Ready(result),
            },
        }
    }
}

pub(crate) fn errno(error: &io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::PROTO)
}
