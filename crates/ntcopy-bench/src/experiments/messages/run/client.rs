//! The client: its ends of the connections, and what it asks over them.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::epoll::EventFlags;

use super::end::{End, Got, Side};
use super::message::Shape;
use crate::run::load::{self, Asks, Step};
use crate::run::{Failure, Patience, Poll};

/// Which event is that of the server's line.
const LINE: u64 = u64::MAX;
const LIKELY: &str = " (datagrams may be lost: see UdpRcvbufErrors in /proc/net/snmp)";

/// What went through while the clock ran; the bytes are those of requests and responses, and the
/// CPU time that of client and server.
pub type Window = load::Window<2>;

struct Asking {
    end: End,
    due_ns: u64,
    is_idle: bool,
}

pub struct NetClient {
    poll: Poll,
    conns: Vec<Asking>,
    transaction_bytes: u64,
    compares: bool,
    /// Make the next byte wrong that is compared.
    spoil: bool,
}

impl NetClient {
    /// Over these ends; the server's line can be read when something is wrong there.
    pub fn new(
        sockets: Vec<OwnedFd>,
        line: impl AsFd,
        shape: &Shape,
        patience: Patience<'_>,
    ) -> Result<NetClient, Failure> {
        let poll = Poll::new(patience, LIKELY)?;
        poll.watch(line, LINE)?;
        let mut conns = Vec::with_capacity(sockets.len());
        for (number, socket) in (0..).zip(sockets) {
            poll.watch(&socket, u64::from(number))?;
            let end = End::new(socket, number, Side::Client, shape);
            conns.push(Asking { end, due_ns: 0, is_idle: true });
        }
        Ok(NetClient {
            poll,
            conns,
            transaction_bytes: shape.request_bytes + shape.response_bytes,
            compares: false,
            spoil: false,
        })
    }

    /// Silence counts from now on.
    pub fn begin(&mut self) {
        self.poll.heard(self.poll.ns());
    }

    /// Asks `rounds` times over each connection, and compares every byte of the responses; gives
    /// how many there were.
    pub fn check(&mut self, rounds: u32, spoil: bool) -> Result<u64, Failure> {
        (self.compares, self.spoil) = (true, spoil);
        let connections = self.conns.len() as u64;
        let result = (0..rounds).try_for_each(|_| {
            self.begin();
            load::every(self, connections).map(drop)
        });
        self.compares = false;
        result.map(|()| u64::from(rounds) * connections)
    }

    fn watch(&self, number: usize, flags: EventFlags) -> Result<(), Failure> {
        self.poll.change(&self.conns[number].end, number as u64, flags)
    }

    fn answered(&mut self, number: usize) -> Result<Step, Failure> {
        let conn = &mut self.conns[number];
        conn.is_idle = true;
        if self.compares {
            conn.end.compare(std::mem::take(&mut self.spoil))?;
        }
        Ok(Step { bytes: self.transaction_bytes, answered: true })
    }
}

/// The server has said something while it was to serve.
pub fn stopped_serving() -> Failure {
    Failure::Process { name: super::message::NAME, what: "it stopped serving".to_owned() }
}

impl Asks for NetClient {
    fn connections(&self) -> usize {
        self.conns.len()
    }

    fn ns(&self) -> u64 {
        self.poll.ns()
    }

    fn ask(&mut self, number: usize, due_ns: u64) -> Result<(), Failure> {
        let conn = &mut self.conns[number];
        (conn.due_ns, conn.is_idle) = (due_ns, false);
        if conn.end.begin().map_err(Failure::os("cannot send a request"))? {
            return Ok(());
        }
        // The rest goes when there is room; no response comes before.
        self.watch(number, EventFlags::OUT)
    }

    fn wait(&mut self, at_most: Duration) -> Result<usize, Failure> {
        let Self { poll, conns, .. } = self;
        poll.wait(at_most, || conns.iter().filter(|conn| !conn.is_idle).count())
    }

    fn ready(&mut self, event: usize) -> Result<(usize, Step), Failure> {
        let (data, flags) = self.poll.event(event);
        if data == LINE {
            return Err(stopped_serving());
        }
        let number = data as usize;
        let end = &mut self.conns[number].end;
        if flags.contains(EventFlags::OUT) {
            if end.go_on().map_err(Failure::os("cannot send a request"))? {
                self.watch(number, EventFlags::IN)?;
            }
            return Ok((number, Step::default()));
        }
        match end.receive().map_err(Failure::os("cannot receive a response"))? {
            Got::Whole => Ok((number, self.answered(number)?)),
            Got::Part => Ok((number, Step::default())),
        }
    }

    fn heard(&mut self, at_ns: u64) {
        self.poll.heard(at_ns);
    }

    fn due_ns(&self, number: usize) -> u64 {
        self.conns[number].due_ns
    }

    fn is_idle(&self, number: usize) -> bool {
        self.conns[number].is_idle
    }
}
