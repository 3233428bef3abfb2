//! The loop of a worker, with the deadlines of its sessions.

use std::cmp::Reverse;
use std::collections::hash_map::Entry;
use std::collections::{BinaryHeap, HashMap};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustix::event::epoll::{self, CreateFlags, Event, EventFlags};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd};
use rustix::io::Errno;
use rustix::net::SocketFlags;
use slab::Slab;

use super::context::{Context, Shared, Stop};
use super::session::{Next, Session};
use super::upstreams::Upstreams;
use super::{EVENTS, GENERATIONS, Key, Token};
use crate::access::AccessLog;
use crate::conn::{Conn, Layer};
use crate::http::Scheme;
use crate::metrics::{Counters, add, set};
use crate::net::{Address, BACKLOG, Listener, origin};
use crate::pipe::Pool;
use crate::tls::Session as Tls;

/// Events that one wait takes.
const EVENTS_AT_ONCE: usize = 256;
/// Connections that one event of a listener takes, so that the others get their turn.
const ACCEPTS_AT_ONCE: usize = 64;
/// How long nothing is accepted once the system has no descriptor left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// What has no deadline of its own, the log and idle connections, is looked after this often.
const TICK: Duration = Duration::from_secs(1);

/// Whether a connection waits to be accepted.
fn is_waited_at(listener: &Listener) -> bool {
    let mut asked = [PollFd::new(listener, PollFlags::IN)];
    rustix::event::poll(&mut asked, Some(&Timespec::default())) == Ok(1)
}

/// Where clients come in.
#[derive(Debug, Clone)]
pub struct Door {
    /// The socket.
    pub listener: Listener,
    /// Where it was asked to listen.
    pub asked: Address,
    /// What they speak.
    pub scheme: Scheme,
}

/// A worker, before and while it runs.
pub struct Worker {
    context: Context,
    sessions: Slab<Session>,
    timers: Timers,
    later: Vec<Key>,
    doors: Vec<Door>,
    /// Whether the doors are watched, and when they will be again if not.
    doors_open: bool,
    reopen_at: Option<Instant>,
    wake: Arc<OwnedFd>,
    generation: u32,
    /// Connections by client.
    origins: HashMap<IpAddr, usize>,
    reloaded: u64,
    ticked: Instant,
    /// When a graceful stop becomes a hard one.
    stop_at: Option<Instant>,
}

impl Worker {
    /// A worker behind these doors.
    ///
    /// # Errors
    ///
    /// The system has no epoll or event descriptor left, or the access log can't be opened.
    pub fn new(
        doors: Vec<Door>,
        shared: Arc<Shared>,
        counters: Arc<Counters>,
    ) -> std::io::Result<Worker> {
        let poll = epoll::create(CreateFlags::CLOEXEC)?;
        let wake = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        epoll::add(&poll, &wake, Token::Wake.data(), EventFlags::IN)?;
        let reloaded = shared.generation();
        let settings = &shared.settings;
        let context = Context {
            poll,
            upstreams: Upstreams::new(Arc::clone(&counters)),
            pipes: Pool::new(settings.limits.pipes, settings.limits.pipe_bytes),
            log: AccessLog::open(shared.log.as_deref())?,
            policies: doors.iter().map(|door| settings.edges.policy(&door.asked)).collect(),
            tls: shared.tls(),
            shared,
            counters,
            now: Instant::now(),
            draining: false,
            turn: 0,
        };
        let mut worker = Worker {
            ticked: context.now,
            context,
            sessions: Slab::new(),
            timers: Timers::default(),
            later: Vec::new(),
            doors,
            doors_open: false,
            reopen_at: None,
            wake,
            generation: 0,
            origins: HashMap::new(),
            reloaded,
            stop_at: None,
        };
        worker.open_doors()?;
        Ok(worker)
    }

    /// What is written to (eight bytes) after something was asked of the workers.
    pub fn wake(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.wake)
    }

    /// Runs until it is asked to stop.
    pub fn run(mut self) {
        let mut events: Vec<Event> = Vec::with_capacity(EVENTS_AT_ONCE);
        while !self.is_over() {
            let timeout = self.timeout().map(|wait| Timespec {
                tv_sec: wait.as_secs() as i64,
                tv_nsec: i64::from(wait.subsec_nanos()),
            });
            events.clear();
            let buffer = rustix::buffer::spare_capacity(&mut events);
            match epoll::wait(&self.context.poll, buffer, timeout.as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => {
                    tracing::error!(%errno, "epoll_wait: this worker ends");
                    break;
                }
            }
            self.context.now = Instant::now();
            for event in &events {
                self.on_event(Token::from_data(event.data), event.flags);
            }
            for key in std::mem::take(&mut self.later) {
                self.drive(key, |session, context| {
                    session.queued = false;
                    session.drive(context)
                });
            }
            self.call_waiting();
            while let Some((at, key)) = self.timers.pop(self.context.now) {
                self.drive(key, |session, context| {
                    if session.timer != Some(at) {
                        return Next::Wait;
                    }
                    session.timer = None;
                    session.on_timer(context)
                });
            }
            self.tick();
        }
        for session in std::mem::take(&mut self.sessions) {
            session.1.dispose(&mut self.context);
        }
    }

    fn timeout(&self) -> Option<Duration> {
        let now = Instant::now();
        if !self.later.is_empty() {
            return Some(Duration::ZERO);
        }
        let until = |at: Option<Instant>| at.map(|at| at.saturating_duration_since(now));
        let busy = self.context.log.has_lines() || self.context.upstreams.has_idle();
        let tick = busy.then_some(TICK);
        let called = self.context.upstreams.gates.wait_until(now);
        [self.timers.wait(now), until(called), until(self.reopen_at), until(self.stop_at), tick]
            .into_iter()
            .flatten()
            .min()
    }

    /// Those whose turn it is for a connection to a backend. One that is gone leaves it to the next.
    fn call_waiting(&mut self) {
        loop {
            let called = self.context.upstreams.gates.called(self.context.now);
            if called.is_empty() {
                return;
            }
            for (key, backend) in called {
                let session = self.sessions.get_mut(key.index as usize);
                let session = session.filter(|session| session.key == key);
                if session.is_some_and(|session| session.called(&backend)) {
                    self.drive(key, Session::drive);
                } else {
                    self.context.upstreams.gates.call(&backend);
                }
            }
        }
    }

    fn on_event(&mut self, token: Token, flags: EventFlags) {
        match token {
            Token::Door(index) => self.accept(index as usize, ACCEPTS_AT_ONCE),
            Token::Wake => self.woken(),
            Token::Client(key) => self.drive(key, |session, context| {
                session.conn.on_event(flags);
                session.drive(context)
            }),
            Token::Upstream(key) => {
                let Some(session) = self.context.upstreams.on_event(key, flags) else { return };
                self.drive(session, |session, context| {
                    let up = session.exchange.as_mut().and_then(|exchange| exchange.up.as_mut());
                    if let Some(up) = up.filter(|up| up.is_at(key)) {
                        up.conn.on_event(flags);
                    }
                    session.drive(context)
                });
            }
        }
    }

    fn drive(&mut self, key: Key, work: impl FnOnce(&mut Session, &mut Context) -> Next) {
        let index = key.index as usize;
        let Some(session) = self.sessions.get_mut(index).filter(|session| session.key == key)
        else {
            return;
        };
        match work(session, &mut self.context) {
            Next::Close => {
                let session = self.sessions.remove(index);
                self.forget(session.origin);
                session.dispose(&mut self.context);
                self.open_doors_if_room();
            }
            next => {
                if next == Next::Later && !session.queued {
                    session.queued = true;
                    self.later.push(key);
                }
                let deadline = session.deadline(&self.context.shared.settings.timeouts);
                if session.timer.is_none_or(|timer| deadline < timer) {
                    session.timer = Some(deadline);
                    self.timers.push(deadline, key);
                }
            }
        }
    }

    /// One connection fewer of that client.
    fn forget(&mut self, origin: Option<IpAddr>) {
        let Some(origin) = origin else { return };
        if let Entry::Occupied(mut held) = self.origins.entry(origin) {
            *held.get_mut() -= 1;
            if *held.get() == 0 {
                held.remove();
            }
        }
    }

    /// Closes the clients that have been idle longest, some at a time, so that looking for them
    /// does not cost more than it brings.
    fn make_room(&mut self) {
        let idle = self.sessions.iter().filter(|(_, session)| session.is_between());
        let mut idle: Vec<_> = idle.map(|(_, session)| (session.since, session.key)).collect();
        let some = self.sessions.len() / 64 + 1;
        if idle.len() > some {
            idle.select_nth_unstable(some);
            idle.truncate(some);
        }
        for (_, key) in &idle {
            add(&self.context.counters.connections_evicted, 1);
            self.drive(*key, |session, context| session.evict(context.now));
        }
    }

    fn accept(&mut self, index: usize, at_most: usize) {
        for _ in 0..at_most {
            let limit = self.context.shared.settings.limits.connections;
            if self.sessions.len() >= limit {
                // No session is closed for a connection that isn't there.
                if !self.doors.get(index).is_some_and(|door| is_waited_at(&door.listener)) {
                    return;
                }
                self.make_room();
                if self.sessions.len() >= limit {
                    return self.close_doors(None);
                }
            }
            let Some(door) = self.doors.get(index) else { return };
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            let (scheme, tcp) = (door.scheme, !door.listener.is_shared());
            match rustix::net::acceptfrom_with(&door.listener, flags) {
                Ok((fd, peer)) => {
                    let peer = peer.and_then(|peer| SocketAddr::try_from(peer).ok());
                    if let Err(error) = self.admit(fd, peer, scheme, tcp, index) {
                        add(&self.context.counters.connections_refused, 1);
                        tracing::debug!(%error, "a connection is closed unserved");
                    }
                }
                Err(Errno::AGAIN) => return,
                // The client was quicker, or another worker.
                Err(Errno::INTR | Errno::CONNABORTED | Errno::PROTO) => {}
                Err(errno) => {
                    tracing::warn!(%errno, "accept: nothing is accepted for a moment");
                    return self.close_doors(Some(Instant::now() + ACCEPT_PAUSE));
                }
            }
        }
    }

    fn admit(
        &mut self,
        fd: OwnedFd,
        peer: Option<SocketAddr>,
        scheme: Scheme,
        tcp: bool,
        door: usize,
    ) -> Result<(), Box<dyn std::error::Error>> {
        if tcp {
            rustix::net::sockopt::set_tcp_nodelay(&fd, true)?;
        }
        self.context.shared.mode.mark(&fd)?;
        let peer = peer.map(|peer| peer.ip().to_canonical());
        let most = self.context.shared.settings.limits.connections_per_client;
        let origin = peer.map(origin);
        let held = origin.and_then(|origin| self.origins.get(&origin)).copied().unwrap_or(0);
        if most > 0 && held >= most {
            return Err("its client has as many as it may".into());
        }
        let layer = match (scheme, &self.context.tls) {
            (Scheme::Http, _) => Layer::Plain,
            (Scheme::Https, Some(tls)) => {
                let kernel = self.context.shared.kernel_tls;
                Layer::Tls(Box::new(Tls::new(Arc::clone(tls), kernel)?))
            }
            (Scheme::Https, None) => return Err("no certificate".into()),
        };
        self.generation = self.generation.wrapping_add(1) & GENERATIONS;
        let entry = self.sessions.vacant_entry();
        let key = Key { index: entry.key() as u32, generation: self.generation };
        epoll::add(&self.context.poll, &fd, Token::Client(key).data(), EVENTS)?;
        let conn = Conn::new(fd, layer);
        entry.insert(Session::new(key, conn, (peer, scheme, door), origin, self.context.now));
        if let Some(origin) = origin {
            *self.origins.entry(origin).or_insert(0) += 1;
        }
        add(&self.context.counters.connections_accepted, 1);
        self.context.counters.connections_open.fetch_add(1, Ordering::Relaxed);
        self.drive(key, Session::drive);
        Ok(())
    }

    fn open_doors(&mut self) -> Result<(), Errno> {
        for (index, door) in self.doors.iter().enumerate() {
            // Level-triggered: who stops accepting early is called again. A shared socket wakes
            // one worker, not all.
            let mut flags = EventFlags::IN;
            flags.set(EventFlags::EXCLUSIVE, door.listener.is_shared());
            epoll::add(
                &self.context.poll,
                door.listener.as_fd(),
                Token::Door(index as u32).data(),
                flags,
            )?;
        }
        self.doors_open = true;
        self.reopen_at = None;
        Ok(())
    }

    fn close_doors(&mut self, reopen_at: Option<Instant>) {
        if std::mem::take(&mut self.doors_open) {
            for door in &self.doors {
                let _ = epoll::delete(&self.context.poll, door.listener.as_fd());
            }
        }
        self.reopen_at = reopen_at;
    }

    fn open_doors_if_room(&mut self) {
        let room = self.sessions.len() < self.context.shared.settings.limits.connections;
        if room && !self.doors_open && self.reopen_at.is_none() {
            let _ = self.open_doors();
        }
    }

    /// Something was asked of the workers.
    fn woken(&mut self) {
        let _ = rustix::io::read(&self.wake, &mut [0; 8]);
        if self.reloaded != self.context.shared.generation() {
            self.reloaded = self.context.shared.generation();
            self.context.tls = self.context.shared.tls();
            match AccessLog::open(self.context.shared.log.as_deref()) {
                Ok(log) => self.context.log = log,
                Err(error) => tracing::error!(%error, "access log: the old one stays"),
            }
        }
        if self.context.shared.stopping() != Stop::No && !self.context.draining {
            self.drain();
        }
    }

    /// Accepts those that wait in the queue, for they were promised a connection, then no more;
    /// closes what is idle.
    fn drain(&mut self) {
        for index in 0..self.doors.len() {
            // Until the queue is empty; if others keep coming, those who were in it.
            self.accept(index, BACKLOG as usize + 1);
        }
        self.close_doors(None);
        self.doors.clear();
        self.context.draining = true;
        let within = Duration::from_millis(self.context.shared.settings.timeouts.shutdown_ms);
        self.stop_at = Some(self.context.now + within);
        let idle: Vec<Key> = self
            .sessions
            .iter()
            .filter_map(|(_, session)| session.is_idle().then_some(session.key))
            .collect();
        for key in idle {
            self.drive(key, Session::drive);
        }
    }

    fn is_over(&self) -> bool {
        let late = self.stop_at.is_some_and(|at| at <= self.context.now);
        self.context.shared.stopping() == Stop::Now
            || (self.context.draining && (self.sessions.is_empty() || late))
    }

    fn tick(&mut self) {
        let now = self.context.now;
        if self.reopen_at.is_some_and(|at| at <= now) {
            let _ = self.open_doors();
        }
        // Each time, for nothing may wake the worker after the last exchange.
        let (pipes, counted) =
            (self.context.pipes.open() as u64, &self.context.counters.pipes_open);
        if counted.load(Ordering::Relaxed) != pipes {
            set(counted, pipes);
        }
        if now.saturating_duration_since(self.ticked) < TICK {
            return;
        }
        self.ticked = now;
        self.context.log.flush();
        let idle = Duration::from_millis(self.context.shared.settings.timeouts.backend_idle_ms);
        self.context.upstreams.expire(now, idle);
    }
}

/// Deadlines of sessions, soonest first. It is a heap that forgets nothing: an entry whose session
/// is gone, or has moved its deadline, is recognised when its time comes. A deadline that moves
/// with every byte therefore costs nothing.
#[derive(Debug, Default)]
struct Timers(BinaryHeap<Reverse<(Instant, Key)>>);

impl Timers {
    pub(super) fn push(&mut self, at: Instant, key: Key) {
        self.0.push(Reverse((at, key)));
    }

    /// The next whose time has come, with that time: a session that has set an earlier one since
    /// does not mean this one.
    pub(super) fn pop(&mut self, now: Instant) -> Option<(Instant, Key)> {
        match self.0.peek() {
            Some(Reverse((at, _))) if *at <= now => self.0.pop().map(|Reverse(entry)| entry),
            _ => None,
        }
    }

    /// How long until there is one.
    pub(super) fn wait(&self, now: Instant) -> Option<Duration> {
        self.0.peek().map(|Reverse((at, _))| at.saturating_duration_since(now))
    }
}
