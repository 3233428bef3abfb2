//! The client: its ends of the connections, and what it asks over them.

use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;
use rustix::time::Timespec;

use super::end::{End, Got, Side};
use super::message::Shape;
use crate::run::load::{self, Asks, CpuTimes, Step};
use crate::run::{Failure, Stop};

/// Events that are taken at a time.
const EVENTS: usize = 256;
/// Which event is that of the server's line.
const LINE: u64 = u64::MAX;
/// A signal and a hang are looked for this often at least.
const TURN: Duration = Duration::from_millis(100);

/// CPU time of the two processes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuNs {
    /// CPU time of this process.
    pub client: u64,
    pub server: u64,
}

impl CpuTimes for CpuNs {
    fn since(self, before: CpuNs) -> CpuNs {
        CpuNs {
            client: self.client.saturating_sub(before.client),
            server: self.server.saturating_sub(before.server),
        }
    }
}

/// What went through while the clock ran; the bytes are those of requests and responses.
pub type Window = load::Window<CpuNs>;

struct Asking {
    end: End,
    due_ns: u64,
    is_idle: bool,
}

/// The client's ends of the connections to one server.
pub struct NetClient {
    epoll: OwnedFd,
    conns: Vec<Asking>,
    transaction_bytes: u64,
    /// Every byte of a response is compared.
    compares: bool,
    /// Make the next byte wrong that is compared.
    spoil: bool,
    events: Vec<Event>,
    begun: Instant,
    /// When something last came, nanoseconds on the client's clock.
    heard_ns: u64,
    patience: Duration,
    stop: Stop,
}

impl NetClient {
    /// Over these ends; the server's line can be read when something is wrong there.
    pub fn new(
        sockets: Vec<OwnedFd>,
        line: impl AsFd,
        shape: &Shape,
        (patience, stop): (Duration, &Stop),
    ) -> Result<NetClient, Failure> {
        let epoll =
            epoll::create(CreateFlags::CLOEXEC).map_err(Failure::os("cannot make an epoll"))?;
        let watched = || Failure::os("cannot watch a connection");
        epoll::add(&epoll, line, EventData::new_u64(LINE), EventFlags::IN).map_err(watched())?;
        let mut conns = Vec::with_capacity(sockets.len());
        for (number, socket) in (0..).zip(sockets) {
            epoll::add(&epoll, &socket, EventData::new_u64(u64::from(number)), EventFlags::IN)
                .map_err(watched())?;
            let end = End::new(socket, number, Side::Client, shape);
            conns.push(Asking { end, due_ns: 0, is_idle: true });
        }
        Ok(NetClient {
            epoll,
            conns,
            transaction_bytes: shape.request_bytes + shape.response_bytes,
            compares: false,
            spoil: false,
            events: vec![Event { flags: EventFlags::empty(), data: EventData::new_u64(0) }; EVENTS],
            begun: Instant::now(),
            heard_ns: 0,
            patience,
            stop: stop.clone(),
        })
    }

    /// Silence counts from now on.
    pub fn begin(&mut self) {
        self.heard_ns = self.ns();
    }

    /// Asks `rounds` times over each connection, and compares every byte of the responses; gives
    /// how many there were.
    pub fn check(&mut self, rounds: u32, spoil: bool) -> Result<u64, Failure> {
        (self.compares, self.spoil) = (true, spoil);
        let result = (0..rounds).try_for_each(|_| self.round());
        self.compares = false;
        result.map(|()| u64::from(rounds) * self.conns.len() as u64)
    }

    fn round(&mut self) -> Result<(), Failure> {
        self.begin();
        let mut asking = self.conns.len();
        for number in 0..asking {
            self.ask(number, 0)?;
        }
        while asking > 0 {
            for event in 0..self.wait(TURN)? {
                let (_, step) = self.ready(event)?;
                asking -= usize::from(step.answered);
            }
            self.begin();
        }
        Ok(())
    }

    fn watch(&self, number: usize, flags: EventFlags) -> Result<(), Failure> {
        let data = EventData::new_u64(number as u64);
        epoll::modify(&self.epoll, &self.conns[number].end, data, flags)
            .map_err(Failure::os("cannot watch a connection"))
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
        u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX)
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
        self.stop.check()?;
        let timeout = Timespec::try_from(at_most.min(TURN)).ok();
        match epoll::wait(&self.epoll, &mut self.events[..], timeout.as_ref()) {
            Ok(0) | Err(Errno::INTR) => {
                let silent = Duration::from_nanos(self.ns().saturating_sub(self.heard_ns));
                let waiting = self.conns.iter().filter(|conn| !conn.is_idle).count();
                if waiting > 0 && silent > self.patience {
                    return Err(Failure::Answer(format!(
                        "no byte came for {} s, and {waiting} requests wait for their responses \
                         (datagrams may be lost: see UdpRcvbufErrors in /proc/net/snmp)",
                        self.patience.as_secs()
                    )));
                }
                Ok(0)
            }
            Ok(ready) => Ok(ready),
            Err(errno) => Err(Failure::os("cannot wait for a response")(errno)),
        }
    }

    fn ready(&mut self, event: usize) -> Result<(usize, Step), Failure> {
        let Event { flags, data } = self.events[event];
        let data = data.u64();
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
        self.heard_ns = at_ns;
    }

    fn due_ns(&self, number: usize) -> u64 {
        self.conns[number].due_ns
    }

    fn is_idle(&self, number: usize) -> bool {
        self.conns[number].is_idle
    }
}
