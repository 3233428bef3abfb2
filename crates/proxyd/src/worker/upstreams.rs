//! Connections to backends: lent to sessions, or idle and bounded in number.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustix::event::epoll::{self, EventFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use slab::Slab;

use super::gates::Gates;
use super::{EVENTS, GENERATIONS, Key, Token};
use crate::backend::Backend;
use crate::buffer::Buffer;
use crate::conn::{Conn, Layer};
use crate::metrics::{Counters, add, set};
use crate::net::Address;

/// A connection to a backend.
#[derive(Debug)]
pub(super) struct Upstream {
    pub(super) conn: Conn,
    /// What was read and not used yet: a head, and what came with it.
    pub(super) input: Buffer,
    pub(super) backend: Arc<Backend>,
    slot: Key,
    idle_since: Instant,
}

impl Upstream {
    /// Whether events of that key are for it.
    pub(super) fn is_at(&self, key: Key) -> bool {
        self.slot == key
    }
}

#[derive(Debug)]
enum State {
    Lent(Key),
    Idle(Upstream),
}

#[derive(Debug)]
struct Slot {
    generation: u32,
    backend: Arc<Backend>,
    state: State,
}

/// All connections of a worker to backends.
#[derive(Debug)]
pub(super) struct Upstreams {
    slots: Slab<Slot>,
    /// Slots of idle connections, the one that was used last at the end.
    idle: Vec<u32>,
    generation: u32,
    pub(super) gates: Gates,
    counters: Arc<Counters>,
}

/// What became of opening a connection.
pub(super) enum Opened {
    /// It is there.
    Ready(Upstream),
    /// An event will say.
    Pending(Upstream),
    /// There are as many as there may be, or a unix backend's queue is full, of which no event
    /// says when it is not: the session waits, and is called.
    Busy,
}

impl Upstreams {
    pub(super) fn new(counters: Arc<Counters>) -> Upstreams {
        let (slots, idle, gates) = (Slab::new(), Vec::new(), Gates::default());
        Upstreams { slots, idle, generation: 0, gates, counters }
    }

    /// An idle connection to that backend, the one that was used last. One on which the backend
    /// has closed or spoken unasked, and no event said so yet, is none: what it said would be
    /// taken for the next answer.
    pub(super) fn take(&mut self, backend: &Arc<Backend>, session: Key) -> Option<Upstream> {
        loop {
            let at = self.idle.iter().rposition(|slot| {
                matches!(&self.slots[*slot as usize].state,
                    State::Idle(upstream) if Arc::ptr_eq(&upstream.backend, backend))
            })?;
            let index = self.idle.remove(at) as usize;
            self.count_idle();
            match std::mem::replace(&mut self.slots[index].state, State::Lent(session)) {
                State::Idle(upstream) if upstream.conn.is_silent() => {
                    add(&self.counters.backend_reuses, 1);
                    return Some(upstream);
                }
                _ => self.remove(index),
            }
        }
    }

    /// A new connection.
    pub(super) fn open(
        &mut self,
        poll: &OwnedFd,
        (backend, address): (&Arc<Backend>, usize),
        session: Key,
        (limit, again): (usize, bool),
        now: Instant,
    ) -> Result<Opened, Errno> {
        if limit > 0 && self.gates.open(backend) >= limit && !self.drop_oldest(backend) {
            self.gates.wait(backend, session, again);
            return Ok(Opened::Busy);
        }
        if !again && self.gates.is_full(backend) {
            self.gates.wait(backend, session, false);
            return Ok(Opened::Busy);
        }
        let (fd, connected) = connect(&backend.place.addresses()[address])?;
        let Some((fd, ready)) = connected.map(|ready| (fd, ready)) else {
            self.gates.full(backend, now);
            self.gates.wait(backend, session, again);
            return Ok(Opened::Busy);
        };
        self.generation = self.generation.wrapping_add(1) & GENERATIONS;
        let generation = self.generation;
        let (state, to) = (State::Lent(session), Arc::clone(backend));
        let index = self.slots.insert(Slot { generation, backend: to, state });
        self.gates.opened(backend);
        let slot = Key { index: index as u32, generation };
        if let Err(errno) = epoll::add(poll, &fd, Token::Upstream(slot).data(), EVENTS) {
            self.remove(index);
            return Err(errno);
        }
        add(&self.counters.backend_connections, 1);
        let conn = if ready { Conn::new(fd, Layer::Plain) } else { Conn::connecting(fd) };
        let backend = Arc::clone(backend);
        let upstream = Upstream { conn, input: Buffer::default(), backend, slot, idle_since: now };
        Ok(if ready { Opened::Ready(upstream) } else { Opened::Pending(upstream) })
    }

    /// Keeps a connection for the next exchange; beyond `limit` the one that has been idle
    /// longest goes.
    pub(super) fn keep(&mut self, mut upstream: Upstream, limit: usize, now: Instant) {
        if limit == 0 {
            return self.close(upstream);
        }
        upstream.input.release();
        upstream.idle_since = now;
        let backend = Arc::clone(&upstream.backend);
        let index = upstream.slot.index;
        self.slots[index as usize].state = State::Idle(upstream);
        self.idle.push(index);
        if self.idle.len() > limit {
            let oldest = self.idle.remove(0);
            self.remove(oldest as usize);
        }
        self.count_idle();
        self.gates.call(&backend);
    }

    /// Closes a connection that was lent.
    pub(super) fn close(&mut self, upstream: Upstream) {
        self.remove(upstream.slot.index as usize);
    }

    fn remove(&mut self, index: usize) {
        let slot = self.slots.remove(index);
        self.gates.closed(&slot.backend);
    }

    /// Closes the connection to that backend that has been idle longest; false if there is none.
    fn drop_oldest(&mut self, backend: &Arc<Backend>) -> bool {
        let slots = &self.slots;
        let at =
            self.idle.iter().position(|slot| Arc::ptr_eq(&slots[*slot as usize].backend, backend));
        let Some(at) = at else { return false };
        let index = self.idle.remove(at);
        self.remove(index as usize);
        self.count_idle();
        true
    }

    /// The session that an event is for. An idle connection with one is closed: the backend has
    /// closed it, or speaks without having been asked.
    pub(super) fn on_event(&mut self, key: Key, flags: EventFlags) -> Option<Key> {
        let slot = self.slots.get(key.index as usize)?;
        if slot.generation != key.generation {
            return None;
        }
        match &slot.state {
            State::Lent(session) => Some(*session),
            State::Idle(upstream) => {
                // An event may be older than the last exchange, whose bytes were all read.
                let only_room = flags.difference(EventFlags::OUT).is_empty();
                if !only_room && !upstream.conn.is_silent() {
                    self.drop_idle(|slot, _| slot == key.index);
                }
                None
            }
        }
    }

    /// Closes those that have been idle for too long.
    pub(super) fn expire(&mut self, now: Instant, idle: Duration) {
        self.drop_idle(|_, upstream| now.saturating_duration_since(upstream.idle_since) >= idle);
    }

    pub(super) fn has_idle(&self) -> bool {
        !self.idle.is_empty()
    }

    fn drop_idle(&mut self, gone: impl Fn(u32, &Upstream) -> bool) {
        let (slots, gates) = (&mut self.slots, &mut self.gates);
        self.idle.retain(|index| {
            let drop = match &slots[*index as usize].state {
                State::Idle(upstream) => gone(*index, upstream),
                State::Lent(_) => true,
            };
            if drop {
                gates.closed(&slots.remove(*index as usize).backend);
            }
            !drop
        });
        self.count_idle();
    }

    fn count_idle(&self) {
        let idle = self.idle.len() as u64;
        if self.counters.backend_idle.load(Ordering::Relaxed) != idle {
            set(&self.counters.backend_idle, idle);
        }
    }
}

/// Starts to connect: `Some(true)` if it is done, `Some(false)` if an event will say, `None` if
/// the queue of a unix socket is full.
fn connect(address: &Address) -> Result<(OwnedFd, Option<bool>), Errno> {
    let socket = |family| {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        rustix::net::socket_with(family, SocketType::STREAM, flags, None)
    };
    let (fd, result) = match address {
        Address::Tcp(to) => {
            let family = match to {
                SocketAddr::V4(_) => AddressFamily::INET,
                SocketAddr::V6(_) => AddressFamily::INET6,
            };
            let fd = socket(family)?;
            rustix::net::sockopt::set_tcp_nodelay(&fd, true)?;
            let result = rustix::net::connect(&fd, to);
            (fd, result)
        }
        Address::Unix(path) => {
            let fd = socket(AddressFamily::UNIX)?;
            let result = rustix::net::connect(&fd, &SocketAddrUnix::new(path)?);
            (fd, result)
        }
    };
    match result {
        Ok(()) => Ok((fd, Some(true))),
        Err(Errno::INPROGRESS) => Ok((fd, Some(false))),
        // For TCP this errno means that no local port is left, which waiting may mend as well.
        Err(Errno::AGAIN) => Ok((fd, None)),
        Err(errno) => Err(errno),
    }
}
