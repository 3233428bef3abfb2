//! A worker's connections to the backend: lent to exchanges, or idle and bounded in number.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use httpd::{Address, Input, Stream, is_silent};
use rustix::io::Errno;
use rustix::net::SocketAddrUnix;
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep, timeout, timeout_at};

use crate::backend::Addresses;
use crate::config::Config;
use crate::conn::{Conn, errno};
use crate::counters::Counters;

/// A unix backend whose queue is full is asked again after the first, then less and less often, up to
/// the second; by one waiter for all.
const ASK_AGAIN: [Duration; 2] = [Duration::from_millis(2), Duration::from_millis(32)];
/// How often idle connections are looked at.
const LOOK: Duration = Duration::from_secs(1);

pub(crate) struct Upstream {
    pub(crate) conn: Conn,
    /// What was read and not used yet: a head, and what came with it.
    pub(crate) input: Input,
    pub(crate) reused: bool,
    /// Held while the body of its request is under way.
    pub(crate) upload: Option<OwnedSemaphorePermit>,
    to: Address,
    _permit: OwnedSemaphorePermit,
}

/// A connection that waits for an exchange.
struct Idle {
    conn: Conn,
    to: Address,
    since: Instant,
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unavailable {
    #[error("every connection to the backend is taken, and none became free in time")]
    Taken,
    /// Something lacks here, for which the backend is not to blame.
    #[error("{0}")]
    Here(Errno),
    /// Why the address that was tried last took none.
    #[error("{0}")]
    Refused(Errno),
}

/// All connections of a worker to the backend.
pub(crate) struct Upstreams {
    config: Arc<Config>,
    backend: Addresses,
    /// The place of the address that took a connection last.
    preferred: Cell<usize>,
    /// Connections, idle ones included, may be this many.
    limit: usize,
    /// As many exchanges as may have one.
    permits: Arc<Semaphore>,
    /// As many of these as may wait for their client's body: its client may be slow, and others ask
    /// meanwhile.
    uploads: Arc<Semaphore>,
    /// Held by who asks for a new connection: where the backend's queue is full the others wait.
    asking: Mutex<()>,
    /// The one that was used last at the end.
    idle: RefCell<VecDeque<Idle>>,
    counters: Arc<Counters>,
}

impl Upstreams {
    pub(crate) fn new(
        config: &Arc<Config>,
        backend: Addresses,
        counters: Arc<Counters>,
    ) -> Upstreams {
        let limit = usize::from(config.backend_connections);
        Upstreams {
            config: Arc::clone(config),
            backend,
            preferred: Cell::new(0),
            limit,
            permits: Arc::new(Semaphore::new(limit)),
            uploads: Arc::new(Semaphore::new((limit - limit.div_ceil(4)).max(1))),
            asking: Mutex::new(()),
            idle: RefCell::default(),
            counters,
        }
    }

    /// A connection; `reuse` says whether it may have served before, `uploads` whether some of the
    /// request's body is still to come.
    pub(crate) async fn get(&self, reuse: bool, uploads: bool) -> Result<Upstream, Unavailable> {
        let permits = async {
            let upload = match uploads {
                true => Arc::clone(&self.uploads).acquire_owned().await.ok(),
                false => None,
            };
            (Arc::clone(&self.permits).acquire_owned().await.ok(), upload)
        };
        let permits = timeout(self.config.connect_timeout, permits).await;
        let Ok((Some(permit), upload)) = permits else { return Err(Unavailable::Taken) };
        let lend = |conn, to, reused| {
            let count = if reused {
                &self.counters.backend_reuses
            } else {
                &self.counters.backend_connections
            };
            count.up();
            Upstream { conn, input: Input::default(), reused, upload, to, _permit: permit }
        };
        if reuse && let Some(Idle { conn, to, .. }) = self.take() {
            return Ok(lend(conn, to, true));
        }
        let lent = self.limit - self.permits.available_permits();
        if lent + self.idle.borrow().len() > self.limit {
            self.idle.borrow_mut().pop_front();
        }
        let addresses = self.backend.borrow().clone();
        let (count, first) = (addresses.len(), self.preferred.get());
        let mut failed = Unavailable::Refused(Errno::ADDRNOTAVAIL);
        for at in (first..first + count).map(|at| at % count) {
            match self.connect(&addresses[at]).await {
                Ok(stream) => {
                    self.preferred.set(at);
                    return Ok(lend(Conn::Plain(stream), addresses[at].clone(), false));
                }
                Err(here @ (Unavailable::Here(_) | Unavailable::Taken)) => return Err(here),
                Err(refused) => failed = refused,
            }
        }
        Err(failed)
    }

    /// The idle connection that was used last, if it is of use.
    fn take(&self) -> Option<Idle> {
        let mut idle = self.idle.borrow_mut();
        let found = std::iter::from_fn(|| idle.pop_back()).find(|one| self.is_of_use(one));
        self.counters.backend_idle.set(idle.len() as u64);
        found
    }

    /// One on which the backend has closed or spoken unasked is of none: what it said would be taken
    /// for the next answer. Nor is one to an address that the backend's name has no more.
    fn is_of_use(&self, idle: &Idle) -> bool {
        self.backend.borrow().contains(&idle.to) && is_silent(idle.conn.socket())
    }

    /// Keeps a connection for the next exchange; beyond the limit the one that has been idle
    /// longest goes.
    pub(crate) fn keep(&self, upstream: Upstream) {
        let mut idle = self.idle.borrow_mut();
        idle.push_back(Idle { conn: upstream.conn, to: upstream.to, since: Instant::now() });
        if idle.len() > self.config.backend_idle {
            idle.pop_front();
        }
        self.counters.backend_idle.set(idle.len() as u64);
    }

    /// Connects. Where the queue of a unix socket is full, of which no event says when it is not, one
    /// asks again, and the others wait for it.
    async fn connect(&self, address: &Address) -> Result<Stream, Unavailable> {
        let until = Instant::now() + self.config.connect_timeout;
        let full = Unavailable::Refused(Errno::AGAIN);
        let Ok(turn) = timeout_at(until, self.asking.lock()).await else { return Err(full) };
        let mut wait = ASK_AGAIN[0];
        loop {
            let (fd, result) = start(address).map_err(Unavailable::Here)?;
            match result {
                Ok(()) | Err(Errno::INPROGRESS) => {
                    drop(turn);
                    let stream = Stream::new(Arc::new(fd));
                    let mut stream = stream.map_err(|error| Unavailable::Here(errno(&error)))?;
                    if result.is_err() {
                        let connected = timeout_at(until, stream.connected()).await;
                        let connected = connected.unwrap_or(Err(Errno::TIMEDOUT));
                        connected.map_err(Unavailable::Refused)?;
                    }
                    return Ok(stream);
                }
                // For TCP this errno means that no local port is left, which waiting may mend as well.
                Err(Errno::AGAIN) if Instant::now() < until => drop(fd),
                Err(Errno::AGAIN) if matches!(address, Address::Unix(_)) => return Err(full),
                Err(errno) if is_ours(errno) => return Err(Unavailable::Here(errno)),
                Err(errno) => return Err(Unavailable::Refused(errno)),
            }
            sleep(wait).await;
            wait = (wait * 2).min(ASK_AGAIN[1]);
        }
    }
}

/// Whether something lacks here, for which a backend is not to blame.
fn is_ours(errno: Errno) -> bool {
    matches!(errno, Errno::AGAIN | Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::NOBUFS)
}

fn start(address: &Address) -> Result<(OwnedFd, Result<(), Errno>), Errno> {
    let fd = address.socket()?;
    let result = match address {
        Address::Tcp(to) => {
            rustix::net::sockopt::set_tcp_nodelay(&fd, true)?;
            rustix::net::connect(&fd, to)
        }
        Address::Unix(path) => rustix::net::connect(&fd, &SocketAddrUnix::new(path)?),
    };
    Ok((fd, result))
}

/// Closes, again and again, connections that have been idle for too long or are of no use.
pub(crate) async fn expire(upstreams: Rc<Upstreams>, patience: Duration) {
    loop {
        sleep(LOOK.min(patience)).await;
        let mut idle = upstreams.idle.borrow_mut();
        idle.retain(|one| one.since.elapsed() < patience && upstreams.is_of_use(one));
        upstreams.counters.backend_idle.set(idle.len() as u64);
    }
}
