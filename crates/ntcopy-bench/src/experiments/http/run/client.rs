//! The client: its connections, what it does with bodies, and load of requests over it.

use std::time::Duration;

use super::body_reader::BodyReader;
use super::conn::Conn;
use super::data;
use super::stack::Running;
use super::wire::{Target, Wire};
use crate::experiments::http::HttpCell;
use crate::run::load::{self, Asks, Step};
use crate::run::schedule::Schedule;
use crate::run::{Failure, Patience, Poll, Stop, meter};

/// Reads the clocks of client, proxy and backend, and has the hardware count.
pub type Meter<'a> = meter::Meter<'a, 3>;

/// What went through while the clock ran; the bytes are those of bodies.
pub type Window = load::Window<3>;

/// Connections to one proxy, and what is asked over them.
pub struct Client {
    target: Target,
    poll: Poll,
    conns: Vec<Conn>,
    requests: Vec<Vec<u8>>,
    next: usize,
    object_bytes: u64,
    reader: BodyReader,
}

impl Client {
    pub fn connect(running: &Running, cell: &HttpCell, stop: &Stop) -> Result<Client, Failure> {
        let HttpCell { connections, object_bytes, .. } = *cell;
        Client::to(running.target(), connections, cell.objects(), object_bytes, stop)
    }

    fn to(
        target: Target,
        connections: u32,
        objects: u64,
        object_bytes: u64,
        stop: &Stop,
    ) -> Result<Client, Failure> {
        let poll = Poll::new(Patience { limit: target.patience, stop }, "")?;
        let requests = (0..objects).map(|object| request(&data::path(object))).collect();
        let reader = BodyReader::discarding();
        let (conns, next) = (Vec::new(), 0);
        let mut client = Client { target, poll, conns, requests, next, object_bytes, reader };
        for number in 0..connections {
            stop.check()?;
            let conn = client.connect_one(number)?;
            client.conns.push(conn);
        }
        Ok(client)
    }

    fn connect_one(&self, number: u32) -> Result<Conn, Failure> {
        let wire = Wire::open(&self.target)?;
        self.poll.watch(&wire, number.into())?;
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
        self.poll.heard(self.poll.ns());
        Ok(())
    }

    /// Asks for the next `objects` in turn, over all connections, and compares every byte of them.
    /// All of them are asked for where `objects` is their number.
    pub fn check(&mut self, objects: u64, reader: BodyReader) -> Result<u64, Failure> {
        self.revive()?;
        let before = std::mem::replace(&mut self.reader, reader);
        let checked = load::every(self, objects);
        self.reader = before;
        checked
    }

    pub fn closed(
        &mut self,
        warm_up: Duration,
        clocked: Duration,
        meter: Meter<'_>,
    ) -> Result<Window, Failure> {
        self.revive()?;
        load::closed(self, warm_up, clocked, false, meter)
    }

    pub fn open(&mut self, schedule: &Schedule, meter: Meter<'_>) -> Result<Window, Failure> {
        self.revive()?;
        load::open(self, schedule, meter)
    }
}

impl Asks for Client {
    fn connections(&self) -> usize {
        self.conns.len()
    }

    fn ns(&self) -> u64 {
        self.poll.ns()
    }

    /// Objects take turns over all connections.
    fn ask(&mut self, number: usize, due_ns: u64) -> Result<(), Failure> {
        let object = self.next;
        self.next = (object + 1) % self.requests.len();
        self.conns[number].ask(&self.requests[object], object as u64, due_ns)
    }

    fn wait(&mut self, at_most: Duration) -> Result<usize, Failure> {
        let Self { poll, conns, .. } = self;
        poll.wait(at_most, || conns.iter().filter(|conn| !conn.is_idle()).count())
    }

    fn ready(&mut self, event: usize) -> Result<(usize, Step), Failure> {
        let number = self.poll.event(event).0 as usize;
        let step = self.conns[number].advance(&mut self.reader)?;
        Ok((number, step))
    }

    fn heard(&mut self, at_ns: u64) {
        self.poll.heard(at_ns);
    }

    fn due_ns(&self, number: usize) -> u64 {
        self.conns[number].due_ns
    }

    fn is_idle(&self, number: usize) -> bool {
        self.conns[number].is_idle()
    }
}

fn request(path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nUser-Agent: ntcopy\r\n\r\n").into_bytes()
}

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;
