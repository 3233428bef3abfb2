//! A worker's connections to backends: lent to exchanges, or idle and bounded in number.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use httpd::{Address, Input, Stream, is_silent};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore};

use crate::backend::Backend;
use crate::conn::Conn;
use crate::metrics::Counters;

/// How soon a unix backend whose queue was full is asked again, and how late at last: by one who
/// waits, whoever many they are.
const ASK_AGAIN: [Duration; 2] = [Duration::from_millis(2), Duration::from_millis(32)];

/// A connection to a backend.
#[derive(Debug)]
pub(crate) struct Upstream {
    pub(crate) conn: Conn,
    /// What was read and not used yet: a head, and what came with it.
    pub(crate) input: Input,
    gate: Rc<Gate>,
    /// That of an exchange; an idle connection has none.
    permit: Option<OwnedSemaphorePermit>,
    idle_since: Instant,
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.gate.open.set(self.gate.open.get() - 1);
    }
}

/// The way to one backend.
#[derive(Debug)]
struct Gate {
    backend: Arc<Backend>,
    /// Connections, idle ones included.
    open: Cell<usize>,
    /// As many exchanges as may have one.
    permits: Arc<Semaphore>,
    /// Held by who asks the backend for a connection: where its queue is full the others wait.
    asking: Mutex<()>,
}

/// All connections of a worker to backends.
#[derive(Debug)]
pub(crate) struct Upstreams {
    gates: Vec<Rc<Gate>>,
    /// Connections to one backend; 0: no limit.
    limit: usize,
    /// Idle connections, the one that was used last at the end.
    idle: RefCell<VecDeque<Upstream>>,
    idle_limit: usize,
    counters: Arc<Counters>,
}

impl Upstreams {
    pub(crate) fn new(
        backends: &[Arc<Backend>],
        limit: usize,
        idle_limit: usize,
        counters: Arc<Counters>,
    ) -> Upstreams {
        let permits = if limit == 0 { Semaphore::MAX_PERMITS } else { limit };
        let gate = |backend: &Arc<Backend>| {
            Rc::new(Gate {
                backend: Arc::clone(backend),
                open: Cell::new(0),
                permits: Arc::new(Semaphore::new(permits)),
                asking: Mutex::new(()),
            })
        };
        let gates = backends.iter().map(gate).collect();
        Upstreams { gates, limit, idle: RefCell::default(), idle_limit, counters }
    }

    /// A connection, and whether it has served before; `reuse` says whether it may have. While
    /// others' connections are what it waits for, `waits` is set.
    pub(crate) async fn get(
        &self,
        backend: &Arc<Backend>,
        address: &Address,
        reuse: bool,
        waits: &Cell<bool>,
    ) -> Result<(Upstream, bool), Errno> {
        let gate = self.gates.iter().find(|gate| Arc::ptr_eq(&gate.backend, backend));
        let gate = gate.ok_or(Errno::INVAL)?;
        waits.set(true);
        let permit = Arc::clone(&gate.permits).acquire_owned().await.map_err(|_| Errno::INVAL)?;
        if reuse && let Some(mut upstream) = self.take(gate) {
            waits.set(false);
            self.counters.backend_reuses.up();
            upstream.permit = Some(permit);
            return Ok((upstream, true));
        }
        if self.limit > 0 && gate.open.get() >= self.limit {
            self.drop_oldest(gate);
        }
        let (fd, is_connected) = start(gate, address).await?;
        waits.set(false);
        self.counters.backend_connections.up();
        let stream = Stream::new(Arc::new(fd));
        let stream = stream.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        gate.open.set(gate.open.get() + 1);
        let mut upstream = Upstream {
            conn: Conn::Plain(stream),
            input: Input::default(),
            gate: Rc::clone(gate),
            permit: Some(permit),
            idle_since: Instant::now(),
        };
        if !is_connected {
            upstream.conn.socket_mut().connected().await?;
        }
        Ok((upstream, false))
    }

    /// An idle connection to that backend, the one that was used last. One on which the backend
    /// has closed or spoken unasked is none: what it said would be taken for the next answer.
    fn take(&self, gate: &Rc<Gate>) -> Option<Upstream> {
        let mut idle = self.idle.borrow_mut();
        loop {
            let at = idle.iter().rposition(|upstream| Rc::ptr_eq(&upstream.gate, gate))?;
            let upstream = idle.remove(at)?;
            self.counters.backend_idle.set(idle.len() as u64);
            if is_silent(upstream.conn.socket()) {
                return Some(upstream);
            }
        }
    }

    /// Keeps a connection for the next exchange; beyond the limit the one that has been idle
    /// longest goes.
    pub(crate) fn keep(&self, mut upstream: Upstream) {
        let mut idle = self.idle.borrow_mut();
        upstream.input = Input::default();
        upstream.idle_since = Instant::now();
        let _for_the_next = upstream.permit.take();
        idle.push_back(upstream);
        if idle.len() > self.idle_limit {
            idle.pop_front();
        }
        self.counters.backend_idle.set(idle.len() as u64);
    }

    fn drop_oldest(&self, gate: &Rc<Gate>) {
        let mut idle = self.idle.borrow_mut();
        if let Some(at) = idle.iter().position(|upstream| Rc::ptr_eq(&upstream.gate, gate)) {
            idle.remove(at);
        }
        self.counters.backend_idle.set(idle.len() as u64);
    }

    /// Closes those that have been idle for too long, that their backend has closed, and on which
    /// it speaks without having been asked.
    pub(crate) fn expire(&self, patience: Duration) {
        let mut idle = self.idle.borrow_mut();
        idle.retain(|upstream| {
            upstream.idle_since.elapsed() < patience && is_silent(upstream.conn.socket())
        });
        self.counters.backend_idle.set(idle.len() as u64);
    }
}

/// Starts to connect; true if it is done already. Where the queue of a unix socket is full, of
/// which no event says when it is not, one asks again, and the others wait for it.
async fn start(gate: &Gate, address: &Address) -> Result<(OwnedFd, bool), Errno> {
    let _turn = gate.asking.lock().await;
    let mut wait = ASK_AGAIN[0];
    loop {
        let (fd, result) = connect(address)?;
        match result {
            Ok(()) => return Ok((fd, true)),
            Err(Errno::INPROGRESS) => return Ok((fd, false)),
            // For TCP this errno means that no local port is left, which waiting may mend as well.
            Err(Errno::AGAIN) => drop(fd),
            Err(errno) => return Err(errno),
        }
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(ASK_AGAIN[1]);
    }
}

fn connect(address: &Address) -> Result<(OwnedFd, Result<(), Errno>), Errno> {
    let socket = |family| {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        rustix::net::socket_with(family, SocketType::STREAM, flags, None)
    };
    match address {
        Address::Tcp(to) => {
            let family = match to {
                SocketAddr::V4(_) => AddressFamily::INET,
                SocketAddr::V6(_) => AddressFamily::INET6,
            };
            let fd = socket(family)?;
            rustix::net::sockopt::set_tcp_nodelay(&fd, true)?;
            let result = rustix::net::connect(&fd, to);
            Ok((fd, result))
        }
        Address::Unix(path) => {
            let fd = socket(AddressFamily::UNIX)?;
            let result = rustix::net::connect(&fd, &SocketAddrUnix::new(path)?);
            Ok((fd, result))
        }
    }
}
