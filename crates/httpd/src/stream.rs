//! A socket that is registered once, edge-triggered, for both directions.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, Shutdown, recv, sendmsg, shutdown};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A connected stream socket that does not block. It stays registered with the worker that made it.
#[derive(Debug)]
pub struct Stream(AsyncFd<Arc<OwnedFd>>);

impl Stream {
    /// Within a worker's runtime.
    pub fn new(socket: OwnedFd) -> io::Result<Stream> {
        Stream::shared(Arc::new(socket))
    }

    pub(crate) fn shared(socket: Arc<OwnedFd>) -> io::Result<Stream> {
        // SAFETY: the descriptor is the one that the shared owner keeps open.
        let registered = unsafe { AsyncFd::register(socket) };
        Ok(Stream(registered?))
    }

    /// Makes a call that puts bytes into the socket, each time that there may be room, until it
    /// says something else than `EAGAIN`.
    pub async fn send_with<T>(
        &self,
        mut call: impl FnMut(BorrowedFd<'_>) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        loop {
            let mut ready = self.0.writable().await.map_err(errno_of)?;
            match attempt(|| call(self.as_fd())) {
                Err(Errno::AGAIN) => ready.clear_ready(),
                result => return result,
            }
        }
    }

    /// The same for a call that takes bytes out of it. Such a call that took fewer than it could
    /// have taken need not say so: the next one is then tried in vain.
    pub async fn recv_with<T>(
        &self,
        mut call: impl FnMut(BorrowedFd<'_>) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        loop {
            let mut ready = self.0.readable().await.map_err(errno_of)?;
            match attempt(|| call(self.as_fd())) {
                Err(Errno::AGAIN) => ready.clear_ready(),
                result => return result,
            }
        }
    }

    /// Until the socket may have room again.
    pub async fn writable(&self) -> Result<(), Errno> {
        self.0.writable().await.map(|mut ready| ready.retain_ready()).map_err(errno_of)
    }

    /// Until something may have come.
    pub async fn readable(&self) -> Result<(), Errno> {
        self.0.readable().await.map(|mut ready| ready.retain_ready()).map_err(errno_of)
    }

    /// A call of either kind, made at once if the socket may be ready for it; `EAGAIN` else, and
    /// where the call says so.
    pub fn try_send<T>(
        &self,
        call: impl FnOnce(BorrowedFd<'_>) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        let done = self.0.try_io(tokio::io::Interest::WRITABLE, |socket| {
            call(socket.as_fd()).map_err(io::Error::from)
        });
        done.map_err(errno_of)
    }

    /// See [`try_send`](Stream::try_send).
    pub fn try_recv<T>(
        &self,
        call: impl FnOnce(BorrowedFd<'_>) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        let done = self.0.try_io(tokio::io::Interest::READABLE, |socket| {
            call(socket.as_fd()).map_err(io::Error::from)
        });
        done.map_err(errno_of)
    }

    /// Sends all of these bytes.
    pub async fn send_all(&self, mut bytes: &[u8]) -> Result<(), Errno> {
        while !bytes.is_empty() {
            let sent = self
                .send_with(|socket| rustix::net::send(socket, bytes, SendFlags::NOSIGNAL))
                .await?;
            bytes = &bytes[sent..];
        }
        Ok(())
    }

    /// The socket, for who keeps account of its events himself.
    pub fn into_inner(self) -> AsyncFd<Arc<OwnedFd>> {
        self.0
    }

    /// Says that nothing more will be sent.
    pub fn end_sending(&self) {
        let _ = shutdown(self.as_fd(), Shutdown::Write);
    }
}

/// A signal in between is not the caller's concern.
fn attempt<T>(mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            result => return result,
        }
    }
}

fn errno_of(error: io::Error) -> Errno {
    match error.kind() {
        io::ErrorKind::WouldBlock => Errno::AGAIN,
        _ => Errno::from_io_error(&error).unwrap_or(Errno::IO),
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.get_ref().as_fd()
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            let mut ready = ready!(self.0.poll_read_ready(cx))?;
            let room = buffer.initialize_unfilled();
            let wanted = room.len();
            match attempt(|| recv(self.as_fd(), &mut *room, RecvFlags::empty())) {
                Ok((_, bytes)) => {
                    // It is empty now, and what comes later is a new event; the end is one that
                    // stays.
                    if bytes > 0 && bytes < wanted {
                        ready.clear_ready();
                    }
                    buffer.advance(bytes);
                    return Poll::Ready(Ok(()));
                }
                Err(Errno::AGAIN) => ready.clear_ready(),
                Err(errno) => return Poll::Ready(Err(errno.into())),
            }
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        loop {
            let mut ready = ready!(self.0.poll_write_ready(cx))?;
            let mut none = SendAncillaryBuffer::default();
            match attempt(|| sendmsg(self.as_fd(), slices, &mut none, SendFlags::NOSIGNAL)) {
                Err(Errno::AGAIN) => ready.clear_ready(),
                result => return Poll::Ready(result.map_err(io::Error::from)),
            }
        }
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
