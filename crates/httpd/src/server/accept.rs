//! Takes connections in, or turns them away.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{SendFlags, SocketFlags, acceptfrom_with, send, sockopt};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::time::timeout;

use super::Service;
use crate::conn::Conn;
use crate::head::Input;
use crate::listen::BACKLOG;
use crate::metrics::CONTENT_TYPE;
use crate::reply::Reply;
use crate::request::parse_request;
use crate::stream::Stream;
use crate::ticket::{Core, ticket};

/// How long accepting pauses for want of descriptors.
const PAUSE: Duration = Duration::from_millis(250);
/// For a request of the metrics, and again for its answer.
const METRICS_PATIENCE: Duration = Duration::from_secs(2);

/// A listening socket, as one worker has it.
pub(super) struct Listener {
    pub(super) door: usize,
    pub(super) tcp: bool,
    pub(super) counted: bool,
    /// Who waits in its queue at the end is the next process's.
    pub(super) outlives: bool,
    pub(super) socket: Arc<OwnedFd>,
}

fn take(socket: &OwnedFd) -> Result<(OwnedFd, Option<SocketAddr>), Errno> {
    loop {
        match acceptfrom_with(socket, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
            Ok((socket, peer)) => {
                return Ok((socket, peer.and_then(|peer| SocketAddr::try_from(peer).ok())));
            }
            // A client that was quicker; the next may be there.
            Err(Errno::INTR | Errno::CONNABORTED) => {}
            Err(errno) => return Err(errno),
        }
    }
}

/// Whether a connection that is closed helps.
fn wants_room(errno: Errno) -> bool {
    matches!(errno, Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM)
}

/// What one worker does with a listening socket.
pub(super) struct Accepting<S: Service> {
    pub(super) core: Arc<Core>,
    /// The worker's number.
    pub(super) index: usize,
    pub(super) service: Arc<S>,
    pub(super) worker: Rc<S::Worker>,
    pub(super) listener: Listener,
}

impl<S: Service> Accepting<S> {
    /// Until the server ends, and then those that wait already.
    pub(super) async fn accept(self, watched: AsyncFd<Arc<OwnedFd>>) {
        let core = &self.core;
        let mut stop = core.stop.subscribe();
        let mut paused = false;
        loop {
            let accepted = tokio::select! {
                biased;
                _ = stop.wait_for(Option::is_some) => break,
                accepted = watched.async_io(Interest::READABLE, |socket| Ok(take(socket)?)) => {
                    accepted
                }
            };
            match accepted.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO)) {
                Ok((socket, peer)) => {
                    paused = false;
                    self.admit(socket, peer);
                    // Others who share the socket get theirs.
                    tokio::task::yield_now().await;
                }
                Err(errno) if wants_room(errno) && core.make_room().await => {}
                // Clients wait in the queue until there is a descriptor again.
                Err(errno) => {
                    core.workers[self.index].counts.paused.up();
                    if !std::mem::replace(&mut paused, true) {
                        tracing::warn!(%errno, "no connection is accepted until this is over");
                    }
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
        if self.listener.outlives {
            return;
        }
        // They were promised a connection. Until the queue is empty; if others keep coming, those
        // who were in it.
        for _ in 0..=BACKLOG {
            match take(&self.listener.socket) {
                Ok((socket, peer)) => self.admit(socket, peer),
                Err(_) => break,
            }
        }
    }

    fn admit(&self, socket: OwnedFd, peer: Option<SocketAddr>) {
        let Accepting { core, listener, .. } = self;
        if listener.tcp {
            let _ = sockopt::set_tcp_nodelay(&socket, true);
        }
        if let Some(buffer) = core.send_buffer {
            buffer.give(&socket);
        }
        if core.is_short_of_descriptors(&socket) {
            core.evict();
        }
        let counts = &core.workers[self.index].counts;
        let socket = Arc::new(socket);
        let Some(ticket) = ticket(core, self.index, listener.counted, &socket) else {
            counts.turned_away.up();
            let _ = send(&socket, &self.service.no_room(listener.door), SendFlags::NOSIGNAL);
            return;
        };
        let stream = match Stream::new(socket) {
            Ok(stream) => stream,
            Err(error) => return tracing::error!(%error, "cannot watch a connection"),
        };
        counts.accepted.up();
        let conn = Conn { stream, input: Input::default(), peer, door: listener.door, ticket };
        if listener.counted {
            tokio::task::spawn_local(S::serve(Rc::clone(&self.worker), conn));
        } else {
            let asking = tokio::task::spawn_local(serve_metrics(Arc::clone(core), conn));
            if core.ask(asking.abort_handle()) {
                counts.metrics_evicted.up();
            }
        }
    }
}

async fn serve_metrics(core: Arc<Core>, mut conn: Conn) {
    let head = timeout(METRICS_PATIENCE, conn.head(METRICS_PATIENCE)).await;
    let Some(head) = head.ok().flatten() else { return };
    let request = head.and_then(|head| parse_request(&conn.input.bytes[..head]));
    let (status, body) = match request {
        Err(refusal) => (refusal.status, format!("{}\n", refusal.reason)),
        Ok(request) if request.target.path != "/metrics" => (404, "try /metrics\n".to_owned()),
        Ok(_) => (200, core.metrics()),
    };
    let mut reply = Reply::new(status, false);
    reply.field("Content-Type", CONTENT_TYPE);
    let reply = reply.end_with(body.as_bytes(), conn.input.bytes.starts_with(b"HEAD "));
    if conn.say(&reply, METRICS_PATIENCE).await.is_some() {
        conn.stream.end_sending();
        conn.linger().await;
    }
}
