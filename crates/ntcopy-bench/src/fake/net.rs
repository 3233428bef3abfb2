//! Servers that are no processes.

use std::collections::BTreeMap;
use std::time::Duration;

use super::script::{call, note};
use super::{Failure, Stop, load};
use crate::experiment::{Family, NetMode};
use crate::plan::messages::Between;

pub use super::meter::Events;
pub use super::schedule::Answers;
pub use super::schedule::Schedule;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuNs {
    pub client: u64,
    pub server: u64,
}

pub type Window = load::Window<CpuNs>;

pub struct NetClient;
pub struct PingPong;
pub struct Proof;

pub struct Pings {
    pub latencies: Answers,
    pub messages: u64,
    pub elapsed_ns: u64,
    pub cpu: CpuNs,
    pub events: BTreeMap<String, u64>,
    pub all_messages: u64,
}

pub enum Network {
    Loopback,
}

impl Network {
    pub fn make(_: Between, _: &[Family], _: &[NetMode]) -> Result<Network, Failure> {
        call(format_args!("network"))?;
        Ok(Network::Loopback)
    }
}

pub struct Setup<'a> {
    pub server_args: &'a [String],
    pub network: &'a Network,
    pub server_cpu: Option<u32>,
    pub events: &'a Events,
    pub patience: Duration,
    pub stop: &'a Stop,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Traffic {
    pub family: Family,
    pub connections: u32,
    pub request_bytes: u64,
    pub response_bytes: u64,
}

pub struct Lane<'a> {
    _setup: &'a Setup<'a>,
    mode: NetMode,
}

pub fn allow_files(connections: u32, modes: usize) -> Result<(), Failure> {
    call(format_args!("files for {connections} x {modes}")).map(drop)
}

pub fn unavailable(mode: NetMode) -> Result<Option<String>, Failure> {
    call(format_args!("is {mode} here"))?;
    Ok((mode == NetMode::Adaptive).then(|| "not on this fake".to_owned()))
}

fn window(late: bool, mode: NetMode, answered: u64) -> Window {
    Window {
        bytes: answered * 100,
        elapsed_ns: 1_000_000 + mode as u64,
        cpu: CpuNs { client: 3, server: 4 },
        events: [("cycles".to_owned(), 7)].into(),
        answered,
        all_bytes: answered * 200,
        answers: Some(Answers { latencies: vec![(5, 6), (7, 8)], unanswered: u64::from(late) }),
    }
}

impl<'a> Lane<'a> {
    pub fn new(setup: &'a Setup<'a>, mode: NetMode, number: u8) -> Result<Lane<'a>, Failure> {
        call(format_args!("lane {number} for {mode}"))?;
        Ok(Lane { _setup: setup, mode })
    }

    pub fn mode(&self) -> NetMode {
        self.mode
    }

    pub fn reset(&mut self) {
        note(format_args!("{}: reset", self.mode));
    }

    pub fn connect_client(&mut self, traffic: &Traffic) -> Result<NetClient, Failure> {
        call(format_args!("{}: connect {traffic:?}", self.mode))?;
        Ok(NetClient)
    }

    pub fn connect_pingpong(&mut self, traffic: &Traffic) -> Result<PingPong, Failure> {
        call(format_args!("{}: connect {traffic:?}", self.mode))?;
        Ok(PingPong)
    }

    pub fn check(&mut self, _: &mut NetClient, rounds: u32, spoil: bool) -> Result<(), Failure> {
        call(format_args!("{}: check {rounds}, spoil {spoil}", self.mode)).map(drop)
    }

    pub fn check_pingpong(
        &mut self,
        _: &mut PingPong,
        messages: u32,
        spoil: bool,
    ) -> Result<(), Failure> {
        call(format_args!("{}: check {messages}, spoil {spoil}", self.mode)).map(drop)
    }

    pub fn closed(
        &mut self,
        _: &mut NetClient,
        warm_up: Duration,
        clocked: Duration,
    ) -> Result<Window, Failure> {
        let late = call(format_args!("{}: closed {warm_up:?} {clocked:?}", self.mode))?;
        Ok(window(late, self.mode, 50))
    }

    pub fn open(&mut self, _: &mut NetClient, schedule: &Schedule) -> Result<Window, Failure> {
        let schedule = super::script::due(schedule);
        let late = call(format_args!("{}: open {schedule}", self.mode))?;
        Ok(window(late, self.mode, 60))
    }

    pub fn pingpong(
        &mut self,
        _: &mut PingPong,
        warm_up: Duration,
        clocked: Duration,
    ) -> Result<Pings, Failure> {
        call(format_args!("{}: ping pong {warm_up:?} {clocked:?}", self.mode))?;
        Ok(Pings {
            latencies: Answers { latencies: vec![(5, 6), (7, 8)], unanswered: 0 },
            messages: 14,
            elapsed_ns: 1_000_000 + self.mode as u64,
            cpu: CpuNs { client: 3, server: 4 },
            events: [("cycles".to_owned(), 7)].into(),
            all_messages: 20,
        })
    }

    pub fn begin_proof(&mut self) -> Result<Proof, Failure> {
        call(format_args!("{}: begin proof", self.mode))?;
        Ok(Proof)
    }

    pub fn check_proof(&self, _: &Proof, messages: u64) -> Result<BTreeMap<String, u64>, Failure> {
        call(format_args!("{}: proof of {messages}", self.mode))?;
        Ok(if self.mode == NetMode::Nt {
            [("nontemporal".to_owned(), 1)].into()
        } else {
            [].into()
        })
    }

    pub fn whole(&self, window: &Window) -> Option<u64> {
        let late = window.answers.as_ref().is_some_and(|answers| answers.unanswered > 0);
        (!late).then_some(window.answered * 2)
    }
}
