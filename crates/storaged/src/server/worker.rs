//! A thread that serves connections.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustix::event::{Timespec, epoll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;

use super::accept::{Accepted, Door, say_no_room};
use super::connection::{Connection, Context, Fate};
use super::listen::BACKLOG;
use super::log::Lines;
use super::shared::Shared;
use super::slab::{Id, Slab};
use crate::config::Tunables;
use crate::http::Clock;
use crate::send::Sender;

const TICK: Duration = Duration::from_millis(250);
const SCRATCH_BYTES: usize = 256 << 10;
const EVENTS: usize = 256;
/// The mailbox, among the numbers of connections.
const MAILBOX: u64 = u64::MAX;

/// A worker, before it runs.
pub struct Worker {
    number: usize,
    shared: Arc<Shared>,
    epoll: OwnedFd,
    /// Doors have the numbers below the mailbox's.
    doors: Vec<Door>,
    connections: Slab<Connection>,
    /// Those with more to do.
    again: Vec<Id>,
    /// The doors are not watched, since there is no descriptor for who comes: left watched, they
    /// would wake this worker without end.
    shut: bool,
    scratch: Vec<u8>,
    clock: Clock,
    sender: Sender,
    lines: Lines,
    tuned: u64,
    tunables: Tunables,
}

impl Worker {
    pub fn new(number: usize, shared: Arc<Shared>, doors: Vec<Door>) -> Result<Worker, Errno> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let bell = shared.mailboxes[number].bell();
        epoll::add(&epoll, bell, epoll::EventData::new_u64(MAILBOX), epoll::EventFlags::IN)?;
        for (at, door) in doors.iter().enumerate() {
            watch(&epoll, at, door)?;
        }
        let (tuned, tunables) = shared.tunables();
        Ok(Worker {
            number,
            shared,
            epoll,
            doors,
            connections: Slab::new(),
            again: Vec::new(),
            shut: false,
            scratch: vec![0; SCRATCH_BYTES],
            clock: Clock::new(),
            sender: Sender::default(),
            lines: Lines::default(),
            tuned,
            tunables,
        })
    }

    /// Serves until the daemon is asked to end, and what is in flight is done.
    pub fn run(mut self) {
        let mut events = Vec::with_capacity(EVENTS);
        let mut ticked = Instant::now();
        loop {
            self.wait(&mut events);
            let now = Instant::now();
            if self.shared.tuned() != self.tuned {
                (self.tuned, self.tunables) = self.shared.tunables();
            }
            for event in events.drain(..) {
                self.take_event(event, now);
            }
            for id in std::mem::take(&mut self.again) {
                self.turn(id, now, |connection, ctx| connection.run(ctx));
            }
            if now - ticked >= TICK {
                ticked = now;
                self.tick(now);
            }
            // Asked late: what has come with the news of the end has had its turn.
            if self.shared.is_draining() && self.drain(now) {
                break;
            }
            if self.again.is_empty()
                && let Some(log) = &self.shared.access_log
            {
                self.lines.flush(log);
            }
        }
        if let Some(log) = &self.shared.access_log {
            self.lines.flush(log);
        }
    }

    fn wait(&mut self, events: &mut Vec<epoll::Event>) {
        let timeout = match (self.again.is_empty(), self.connections.len()) {
            (false, _) => Some(Duration::ZERO),
            (true, 0) if !self.shut => None,
            _ => Some(TICK),
        };
        let timeout = timeout.map(|time| Timespec::try_from(time).expect("a quarter of a second"));
        events.clear();
        let room = rustix::buffer::spare_capacity(events);
        match epoll::wait(&self.epoll, room, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => {
                tracing::error!(%errno, "epoll_wait failed");
                std::thread::sleep(TICK);
            }
        }
    }

    fn take_event(&mut self, event: epoll::Event, now: Instant) {
        let number = event.data.u64();
        if number == MAILBOX {
            let shared = Arc::clone(&self.shared);
            for (id, outcome) in shared.mailboxes[self.number].take() {
                self.turn(id, now, |connection, ctx| match connection.deliver(outcome, ctx) {
                    true => connection.run(ctx),
                    false => Fate::Close,
                });
            }
            return;
        }
        let door = (MAILBOX - 1 - number) as usize;
        if door < self.doors.len() {
            self.accept(door, now);
            return;
        }
        let flags = event.flags;
        let end = epoll::EventFlags::RDHUP | epoll::EventFlags::HUP | epoll::EventFlags::ERR;
        let readable = flags.contains(epoll::EventFlags::IN);
        let writable = flags.intersects(epoll::EventFlags::OUT | epoll::EventFlags::ERR);
        self.turn(Id::from_u64(number), now, |connection, ctx| {
            connection.woken(readable, writable, flags.intersects(end));
            connection.run(ctx)
        });
    }

    /// Takes one connection; false if none waits.
    fn accept(&mut self, door: usize, now: Instant) -> bool {
        let shared = Arc::clone(&self.shared);
        let door = &self.doors[door];
        let sndbuf = shared.config.sndbuf;
        let (socket, peer) = match door.accept(&shared.store, sndbuf) {
            Accepted::Connection(socket, peer) => (socket, peer),
            Accepted::NoDescriptor => {
                self.shut_doors();
                return false;
            }
            Accepted::Nobody => return false,
        };
        let admin = door.admin;
        let counters = &shared.counters[self.number];
        let open = shared.connections.fetch_add(1, Ordering::Relaxed);
        if open >= shared.config.connections_max && !admin && !self.make_room(now) {
            shared.connections.fetch_sub(1, Ordering::Relaxed);
            say_no_room(&socket);
            counters.turned_away.up();
            return true;
        }
        let until = now + self.tunables.idle_timeout;
        let epoll = &self.epoll;
        let mut added = Ok(());
        let id = self.connections.insert(|id| {
            let flags = epoll::EventFlags::IN
                | epoll::EventFlags::OUT
                | epoll::EventFlags::RDHUP
                | epoll::EventFlags::ET;
            added = epoll::add(epoll, &socket, epoll::EventData::new_u64(id.to_u64()), flags);
            Connection::new(socket, peer, admin, until)
        });
        counters.accepted.up();
        counters.open.up();
        match added {
            Ok(()) => self.turn(id, now, |connection, ctx| connection.run(ctx)),
            Err(errno) => {
                tracing::error!(%errno, "cannot watch a connection");
                self.turn(id, now, |_, _| Fate::Close);
            }
        }
        true
    }

    /// Closes the one that has been idle longest; false if none is.
    fn make_room(&mut self, now: Instant) -> bool {
        let ids = self.connections.ids();
        let idle = ids.into_iter().filter_map(|id| {
            let until = self.connections.get_mut(id).and_then(|one| one.idle_until());
            until.map(|until| (until, id))
        });
        let Some((_, id)) = idle.min_by_key(|(until, _)| *until) else { return false };
        self.shared.counters[self.number].evicted.up();
        self.turn(id, now, |_, _| Fate::Close);
        true
    }

    fn turn(
        &mut self,
        id: Id,
        now: Instant,
        act: impl FnOnce(&mut Connection, &mut Context<'_>) -> Fate,
    ) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        let shared = Arc::clone(&self.shared);
        let mut ctx = Context {
            shared: &shared,
            worker: self.number,
            id,
            now,
            tunables: &self.tunables,
            counters: &shared.counters[self.number],
            scratch: &mut self.scratch,
            clock: &mut self.clock,
            sender: &mut self.sender,
            lines: &mut self.lines,
            draining: shared.is_draining(),
        };
        match act(connection, &mut ctx) {
            Fate::Wait => {}
            Fate::Again => self.again.push(id),
            Fate::Close => {
                if let Some(connection) = self.connections.remove(id) {
                    connection.close(&mut ctx);
                }
                shared.counters[self.number].open.down();
                shared.connections.fetch_sub(1, Ordering::Relaxed);
            }
        }
        let rescued = std::mem::take(&mut self.sender.rescued);
        shared.counters[self.number].rescued.add(rescued);
    }

    /// Clients wait in the queue until there is a descriptor again.
    fn shut_doors(&mut self) {
        if std::mem::replace(&mut self.shut, true) {
            return;
        }
        self.shared.counters[self.number].shut.up();
        tracing::warn!("out of descriptors: no connection is accepted until there are some again");
        for door in &self.doors {
            let _ = epoll::delete(&self.epoll, door.socket());
        }
    }

    fn open_doors(&mut self) {
        self.shut = false;
        for (at, door) in self.doors.iter().enumerate() {
            if let Err(errno) = watch(&self.epoll, at, door) {
                tracing::error!(%errno, "cannot watch a listening socket");
            }
        }
    }

    fn tick(&mut self, now: Instant) {
        if self.shut {
            self.open_doors();
        }
        for id in self.connections.ids() {
            let due = |connection: &mut Connection| connection.deadline().is_some_and(|d| d <= now);
            if self.connections.get_mut(id).is_some_and(due) {
                self.turn(id, now, |connection, ctx| connection.expire(ctx));
            }
        }
    }

    /// Ends what is idle, and at last everything; whether all is done.
    fn drain(&mut self, now: Instant) -> bool {
        for door in 0..self.doors.len() {
            // They were promised a connection. Until the queue is empty; if others keep coming,
            // those who were in it.
            let waiting = (0..=BACKLOG).take_while(|_| self.accept(door, now)).count();
            tracing::debug!(waiting, "the last connections");
        }
        for door in self.doors.drain(..) {
            let _ = epoll::delete(&self.epoll, door.socket());
        }
        let over = self.shared.is_drained(now);
        for id in self.connections.ids() {
            if over {
                self.turn(id, now, |_, _| Fate::Close);
            } else if self.connections.get_mut(id).is_some_and(|one| one.is_idle()) {
                // A request that is already here is still answered.
                self.turn(id, now, |connection, ctx| connection.run(ctx));
            }
        }
        self.connections.len() == 0
    }
}

/// One worker a connection, where several listen on one socket.
fn watch(epoll: &OwnedFd, at: usize, door: &Door) -> Result<(), Errno> {
    let flags = epoll::EventFlags::IN | epoll::EventFlags::EXCLUSIVE;
    epoll::add(epoll, door.socket(), epoll::EventData::new_u64(MAILBOX - 1 - at as u64), flags)
}
