//! One mode while it is measured: its server, and the connections to it.

use std::time::Duration;

use ntcopy_kernel::process::Group;
use rustix::process::getpid;

use super::super::NetMode;
use super::client::{NetClient, Window, stopped_serving};
use super::message::{NAME, Order, Reply, Server, Shape};
use super::network::Network;
use super::pingpong::PingPong;
use crate::experiment::Family;
use crate::plan::SURELY_IN_PAGES_BYTES;
use crate::run::cpu_clock::CpuClock;
use crate::run::load;
use crate::run::meter::{Events, Meter};
use crate::run::process::Process;
use crate::run::proof::{Due, Proof};
use crate::run::schedule::Schedule;
use crate::run::{self, Failure, Patience, send};

pub fn unavailable(mode: NetMode) -> Result<Option<String>, Failure> {
    run::unavailable(mode.sends())
}

pub struct Setup<'a> {
    /// The arguments of this program that lead to [`super::server_main`].
    pub server_args: &'a [String],
    pub network: &'a Network,
    pub server_cpu: Option<u32>,
    /// Hardware counters: opened before any server, they are of all of them.
    pub events: &'a Events,
    pub patience: Patience<'a>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Traffic {
    pub family: Family,
    pub connections: u32,
    pub request_bytes: u64,
    pub response_bytes: u64,
}

pub struct Lane<'a> {
    setup: &'a Setup<'a>,
    mode: NetMode,
    number: u8,
    ourselves: CpuClock,
    /// The server, and the clock of its CPU time.
    server: Option<(Server, CpuClock)>,
    shape: Shape,
}

impl<'a> Lane<'a> {
    /// The lane of a mode; `number` is that of its devices.
    pub fn new(setup: &'a Setup<'a>, mode: NetMode, number: u8) -> Result<Lane<'a>, Failure> {
        let ourselves = CpuClock::new(getpid())?;
        let shape = Shape { datagrams: false, request_bytes: 0, response_bytes: 0, hint: false };
        Ok(Lane { setup, mode, number, ourselves, server: None, shape })
    }

    pub fn mode(&self) -> NetMode {
        self.mode
    }

    /// After a failure: nothing is known of the server, and the next cell gets another.
    pub fn reset(&mut self) {
        self.server = None;
    }

    fn server(&mut self) -> Result<&mut Server, Failure> {
        let missing = || Failure::Process { name: NAME, what: "it is not there".to_owned() };
        self.server.as_mut().map(|(server, _)| server).ok_or_else(missing)
    }

    /// Makes new connections, and gives the server its ends of them.
    fn connect(&mut self, traffic: &Traffic) -> Result<Vec<std::os::fd::OwnedFd>, Failure> {
        let setup = self.setup;
        self.shape = Shape {
            datagrams: traffic.family.is_datagram(),
            request_bytes: traffic.request_bytes,
            response_bytes: traffic.response_bytes,
            hint: self.mode.sends().is_hinted(),
        };
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..traffic.connections {
            setup.patience.stop.check()?;
            let (our_end, their_end) = setup.network.pair(self.number, traffic.family)?;
            if self.shape.hint {
                let setting = send::setting(self.mode.sends());
                for end in [&our_end, &their_end] {
                    send::prepare(std::os::fd::AsFd::as_fd(end), setting)?;
                }
            }
            ours.push(our_end);
            theirs.push(their_end);
        }
        if self.server.is_none() {
            let (args, patience) = (setup.server_args, setup.patience);
            let server: Server = Process::start(NAME, args, patience, |command| {
                setup.network.at_server(|| Group::start(command))
            })?;
            let clock = CpuClock::new(server.pid())?;
            let (server, _) = self.server.insert((server, clock));
            if let Some(cpu) = setup.server_cpu {
                server.ask(&Order::Place { cpu })?;
            }
        }
        let server = self.server()?;
        server.ask(&Order::Forget)?;
        server.give(&theirs, |count| Order::Sockets { count })?;
        Ok(ours)
    }

    pub fn connect_client(&mut self, traffic: &Traffic) -> Result<NetClient, Failure> {
        let sockets = self.connect(traffic)?;
        let (shape, patience) = (self.shape, self.setup.patience);
        NetClient::new(sockets, &*self.server()?, &shape, patience)
    }

    pub fn connect_pingpong(&mut self, traffic: &Traffic) -> Result<PingPong, Failure> {
        let socket = self.connect(&Traffic { connections: 1, ..*traffic })?.pop();
        let socket = socket.ok_or_else(|| Failure::Answer("no connection was made".to_owned()))?;
        PingPong::new(socket, &self.shape, self.setup.patience)
    }

    fn cpu(&self) -> Result<[u64; 2], Failure> {
        let server = self.server.as_ref().map_or(Ok(0), |(_, clock)| clock.ns())?;
        Ok([self.ourselves.ns()?, server])
    }

    /// Does something while the server serves, and holds how often it answered against how often
    /// the client says it was answered.
    fn serving<T>(
        &mut self,
        compares: bool,
        what: impl FnOnce(&Lane<'a>) -> Result<(T, u64), Failure>,
    ) -> Result<T, Failure> {
        let shape = self.shape;
        self.server()?.ask(&Order::Serve { shape, compares })?;
        let done = what(self);
        let (value, answered) = match done {
            // It has said why.
            Err(Failure::Process { .. }) => {
                return Err(self.server()?.reply().err().unwrap_or_else(stopped_serving));
            }
            Err(failure) => return Err(failure),
            Ok(done) => done,
        };
        match self.server()?.ask(&Order::Pause)? {
            Reply::Answered { responses } if responses >= answered => Ok(value),
            Reply::Answered { responses } => Err(Failure::Answer(format!(
                "the server sent {responses} responses, and {answered} came"
            ))),
            other => Err(self.server()?.unexpected(&other)),
        }
    }

    /// Compares every byte of some requests and responses of each connection.
    pub fn check(
        &mut self,
        client: &mut NetClient,
        rounds: u32,
        spoil: bool,
    ) -> Result<(), Failure> {
        self.serving(true, |_| client.check(rounds, spoil).map(|answered| ((), answered)))
    }

    /// A run without a pause; how long each exchange took is kept.
    pub fn closed(
        &mut self,
        client: &mut NetClient,
        warm_up: Duration,
        clocked: Duration,
    ) -> Result<Window, Failure> {
        client.begin();
        self.serving(false, |lane| {
            lane.metered(|meter| load::closed(client, warm_up, clocked, true, meter))
        })
    }

    pub fn open(&mut self, client: &mut NetClient, schedule: &Schedule) -> Result<Window, Failure> {
        client.begin();
        self.serving(false, |lane| lane.metered(|meter| load::open(client, schedule, meter)))
    }

    /// Has both processes metered; gives how many messages came as well.
    fn metered(
        &self,
        run: impl FnOnce(Meter<'_, 2>) -> Result<Window, Failure>,
    ) -> Result<(Window, u64), Failure> {
        let cpu = || self.cpu();
        let window = run(Meter::new(&cpu).counting(self.setup.events))?;
        let answered = self.messages(&window);
        Ok((window, answered))
    }

    pub fn messages(&self, window: &Window) -> u64 {
        window.all_bytes / (self.shape.request_bytes + self.shape.response_bytes).max(1)
    }

    /// Compares every byte of the messages that came back.
    pub fn check_pingpong(
        &mut self,
        client: &mut PingPong,
        messages: u32,
        spoil: bool,
    ) -> Result<(), Failure> {
        self.echoing(|_| client.check(messages, spoil).map(|answered| ((), answered)))
    }

    pub fn pingpong(
        &mut self,
        client: &mut PingPong,
        warm_up: Duration,
        clocked: Duration,
    ) -> Result<Window, Failure> {
        self.echoing(|lane| lane.metered(|meter| client.sample(warm_up, clocked, meter)))
    }

    fn echoing<T>(
        &mut self,
        what: impl FnOnce(&Lane<'a>) -> Result<(T, u64), Failure>,
    ) -> Result<T, Failure> {
        let shape = self.shape;
        self.server()?.ask(&Order::Echo { shape })?;
        let (value, answered) = what(self)?;
        match self.server()?.reply()? {
            Reply::Answered { responses } if responses == answered => Ok(value),
            other => Err(Failure::Answer(format!("{answered} messages came back, but {other:?}"))),
        }
    }

    /// Reads the kernel's counters, and makes sure that the devices are as the mode says.
    pub fn begin_proof(&mut self) -> Result<Proof, Failure> {
        self.setup.network.is_as(self.number, self.mode)?;
        let pid = self.server()?.pid().as_raw_nonzero().get().cast_unsigned();
        Proof::begin(self.setup.network.is_apart().then_some(pid))
    }

    /// Holds what the kernel counted against the messages of each side.
    pub fn check_proof(
        &self,
        proof: &Proof,
        messages: u64,
    ) -> Result<std::collections::BTreeMap<String, u64>, Failure> {
        self.setup.network.is_as(self.number, self.mode)?;
        let Shape { request_bytes, response_bytes, .. } = self.shape;
        // The kernel may read a datagram itself, to checksum it while it copies.
        let is_sure = |bytes: u64| !self.shape.datagrams && bytes >= SURELY_IN_PAGES_BYTES;
        let bypassing = |bytes: u64| if is_sure(bytes) { bytes } else { 0 };
        let bytes = messages * (request_bytes + response_bytes);
        let bypassed = messages * (bypassing(request_bytes) + bypassing(response_bytes));
        let what = format!("client and server sent {bytes} bytes in mode {}", self.mode);
        let due = Due::All { bytes, bypassed };
        proof.check(&what, self.mode.sends(), due)
    }
}
