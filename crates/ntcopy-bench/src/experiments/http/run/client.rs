//! The client: its connections, and what it does with bodies.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;
use rustix::time::Timespec;

use super::body_reader::BodyReader;
use super::conn::Conn;
use super::data;
use super::stack::Running;
use super::wire::{Target, Wire};
use crate::experiments::http::plan::HttpCell;
use crate::run::load::Step;
use crate::run::{Failure, Stop};

/// Events that are taken at a time.
const EVENTS: usize = 256;
/// A signal and a hang are looked for this often at least.
const TURN: Duration = Duration::from_millis(100);
/// Connections to one proxy, and what is asked over them.
pub struct Client {
    target: Target,
    epoll: OwnedFd,
    pub(super) conns: Vec<Conn>,
    requests: Vec<Vec<u8>>,
    next: usize,
    object_bytes: u64,
    events: Vec<Event>,
    begun: Instant,
    /// When a byte last came, nanoseconds on the client's clock.
    heard_ns: u64,
    pub(super) stop: Stop,
}

impl Client {
    /// Connects as often as the cell says.
    pub fn connect(running: &Running, cell: &HttpCell, stop: &Stop) -> Result<Client, Failure> {
        let data = (cell.objects(), cell.object_bytes);
        Client::to(running.target(), cell.connections, data, stop)
    }

    pub(super) fn to(
        target: Target,
        connections: u32,
        (objects, object_bytes): (u64, u64),
        stop: &Stop,
    ) -> Result<Client, Failure> {
        let epoll =
            epoll::create(CreateFlags::CLOEXEC).map_err(Failure::os("cannot make an epoll"))?;
        let requests = (0..objects).map(|object| request(&data::path(object))).collect();
        let mut client = Client {
            target,
            epoll,
            conns: Vec::new(),
            requests,
            next: 0,
            object_bytes,
            events: vec![Event { flags: EventFlags::empty(), data: EventData::new_u64(0) }; EVENTS],
            begun: Instant::now(),
            heard_ns: 0,
            stop: stop.clone(),
        };
        for number in 0..connections {
            stop.check()?;
            let conn = client.connect_one(number)?;
            client.conns.push(conn);
        }
        Ok(client)
    }

    fn connect_one(&self, number: u32) -> Result<Conn, Failure> {
        let wire = Wire::open(&self.target)?;
        epoll::add(&self.epoll, &wire, EventData::new_u64(number.into()), EventFlags::IN)
            .map_err(Failure::os("cannot watch a connection"))?;
        Ok(Conn::new(wire, number, self.object_bytes))
    }

    /// Connects anew where a connection was closed, or was left with an answer under way.
    pub fn revive(&mut self) -> Result<(), Failure> {
        for number in 0..self.conns.len() {
            if !self.conns[number].is_idle() || !self.conns[number].wire.is_quiet() {
                // The old socket leaves the epoll as it is closed.
                self.conns[number] = self.connect_one(number as u32)?;
            }
        }
        self.heard_ns = self.ns();
        Ok(())
    }

    /// Nanoseconds on the client's clock.
    pub(super) fn ns(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Objects take turns over all connections.
    pub(super) fn ask(&mut self, number: usize, due_ns: u64) -> Result<(), Failure> {
        let object = self.next;
        self.next = (object + 1) % self.requests.len();
        self.conns[number].ask(&self.requests[object], object as u64, due_ns)
    }

    /// Waits until an answer may be read, or `at_most` is over, and gives how many connections
    /// [`Client::ready`] has.
    pub(super) fn wait(&mut self, at_most: Duration) -> Result<usize, Failure> {
        self.stop.check()?;
        let timeout = Timespec::try_from(at_most.min(TURN)).ok();
        match epoll::wait(&self.epoll, &mut self.events[..], timeout.as_ref()) {
            Ok(0) | Err(Errno::INTR) => {
                let silent = Duration::from_nanos(self.ns().saturating_sub(self.heard_ns));
                let is_asking = self.conns.iter().any(|conn| !conn.is_idle());
                if is_asking && silent > self.target.patience {
                    let what = format!("no byte came for {} s", self.target.patience.as_secs());
                    return Err(Failure::Answer(what));
                }
                Ok(0)
            }
            Ok(ready) => Ok(ready),
            Err(errno) => Err(Failure::os("cannot wait for an answer")(errno)),
        }
    }

    /// Reads on from a connection that is ready, and gives its number.
    pub(super) fn ready(
        &mut self,
        event: usize,
        look: &mut BodyReader,
    ) -> Result<(usize, Step), Failure> {
        let number = self.events[event].data.u64() as usize;
        let step = self.conns[number].advance(look)?;
        Ok((number, step))
    }

    pub(super) fn heard(&mut self, at_ns: u64) {
        self.heard_ns = at_ns;
    }

    /// Asks for the next `objects` in turn, over all connections, and compares every byte of them.
    /// All of them are asked for where `objects` is their number.
    pub fn check(&mut self, objects: u64, mut look: BodyReader) -> Result<u64, Failure> {
        self.revive()?;
        let (mut asked, mut answered, mut bytes) = (0, 0, 0);
        for number in 0..self.conns.len() {
            if asked < objects {
                self.ask(number, 0)?;
                asked += 1;
            }
        }
        while answered < objects {
            for event in 0..self.wait(TURN)? {
                let (number, step) = self.ready(event, &mut look)?;
                bytes += step.bytes;
                answered += u64::from(step.answered);
                if step.answered && asked < objects {
                    self.ask(number, 0)?;
                    asked += 1;
                }
            }
            let now = self.ns();
            self.heard(now);
        }
        Ok(bytes)
    }
}

fn request(path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nUser-Agent: ntcopy\r\n\r\n").into_bytes()
}
