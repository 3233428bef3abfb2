//! Connections to backends, for exchanges that came by HTTP/3.

use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::BytesMut;
use rustix::io::Errno;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::backend::Backend;
use crate::error::{Error, Kind, Source};
use crate::net::{Address, is_silent};

/// A stream of either kind.
pub(super) trait Socket: AsyncRead + AsyncWrite + AsFd + Send + Unpin {}

impl Socket for UnixStream {}
impl Socket for TcpStream {}

/// A connection to a backend.
pub(super) struct Upstream {
    pub(super) stream: Box<dyn Socket>,
    /// What was read and not used yet.
    pub(super) input: BytesMut,
    pub(super) backend: Arc<Backend>,
    /// Whether it had served before.
    pub(super) reused: bool,
    /// Its place among the connections to its backend.
    pub(super) permit: OwnedSemaphorePermit,
    idle_since: Instant,
}

/// Connections to one backend.
pub(super) struct Gate {
    /// One permit for each that there may be.
    pub(super) room: Arc<Semaphore>,
    /// Held by the one who asks a full queue again and again.
    pub(super) asking: tokio::sync::Mutex<()>,
}

/// Idle connections, bounded in number.
#[derive(Default)]
pub(super) struct Idle(Mutex<Vec<Upstream>>);

impl Idle {
    /// The connection to that backend that was used last. Those that are too old go, and those on
    /// which the backend has closed or spoken unasked: what it said would be taken for the answer.
    pub(super) fn take(&self, backend: &Arc<Backend>, idle: Duration) -> Option<Upstream> {
        let mut list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        list.retain(|upstream| upstream.idle_since.elapsed() < idle);
        loop {
            let at = list.iter().rposition(|upstream| Arc::ptr_eq(&upstream.backend, backend))?;
            let upstream = list.remove(at);
            if is_silent(&upstream.stream) {
                return Some(Upstream { reused: true, ..upstream });
            }
        }
    }

    /// Keeps a connection; beyond `limit` the oldest goes.
    pub(super) fn keep(
        &self,
        (stream, permit): (Box<dyn Socket>, OwnedSemaphorePermit),
        backend: Arc<Backend>,
        limit: usize,
    ) {
        let (input, idle_since) = (BytesMut::new(), Instant::now());
        let mut list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        list.push(Upstream { stream, input, backend, reused: true, permit, idle_since });
        while list.len() > limit {
            list.remove(0);
        }
    }
}

impl Idle {
    /// Closes the connection to that backend that has been idle longest, for another's sake.
    fn drop_oldest(&self, backend: &Arc<Backend>) {
        let mut list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = list.iter().position(|one| Arc::ptr_eq(&one.backend, backend)) {
            list.remove(at);
        }
    }
}

/// A new connection, once there may be another.
pub(super) async fn connect(
    backend: &Arc<Backend>,
    gate: &Gate,
    idle: &Idle,
    within: Duration,
) -> Result<Upstream, Error> {
    if gate.room.available_permits() == 0 {
        idle.drop_oldest(backend);
    }
    let Ok(Ok(permit)) = timeout(within, Arc::clone(&gate.room).acquire_owned()).await else {
        let why = "every connection to a backend is taken, and none became free in time";
        return Err(Error::new(Source::Internal, Kind::Busy, why));
    };
    let connecting = async {
        let stream: Box<dyn Socket> = match &backend.address {
            Address::Unix(path) => Box::new(connect_unix(path, gate).await?),
            Address::Tcp(address) => {
                let stream = TcpStream::connect(address).await?;
                stream.set_nodelay(true)?;
                Box::new(stream)
            }
        };
        Ok::<_, std::io::Error>(stream)
    };
    let error = |source, kind| Error::new(source, kind, backend.address.to_string());
    match timeout(within, connecting).await {
        Ok(Ok(stream)) => Ok(Upstream {
            stream,
            input: BytesMut::new(),
            backend: Arc::clone(backend),
            reused: false,
            permit,
            idle_since: Instant::now(),
        }),
        Ok(Err(cause)) => {
            let errno = Errno::from_io_error(&cause).unwrap_or(Errno::IO);
            let source = Source::of_connecting(errno);
            Err(error(source, Kind::Connect).because(errno).retryable(true))
        }
        Err(_) => Err(error(Source::Upstream, Kind::Timeout).retryable(true)),
    }
}

/// A unix backend whose queue is full says EAGAIN, and no event says when it is not: asked again,
/// by one of those who wait, and ever more seldom.
async fn connect_unix(path: &std::path::Path, gate: &Gate) -> std::io::Result<UnixStream> {
    let _alone = gate.asking.lock().await;
    let mut pause = Duration::from_millis(2);
    loop {
        match UnixStream::connect(path).await {
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(Duration::from_millis(32));
            }
            result => return result,
        }
    }
}
