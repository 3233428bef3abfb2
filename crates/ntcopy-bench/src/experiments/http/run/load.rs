//! Load of requests over sockets.

use std::time::Duration;

use super::client::Client;
use crate::run::load::{self, Asks, Step};
use crate::run::schedule::Schedule;
use crate::run::{Failure, meter};

/// Reads the clocks of client, proxy and backend, and has the hardware count.
pub type Meter<'a> = meter::Meter<'a, 3>;

/// What went through while the clock ran; the bytes are those of bodies.
pub type Window = load::Window<3>;

impl Asks for Client {
    fn connections(&self) -> usize {
        self.conns.len()
    }

    fn ns(&self) -> u64 {
        self.poll.ns()
    }

    fn ask(&mut self, number: usize, due_ns: u64) -> Result<(), Failure> {
        self.ask_next(number, due_ns)
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

impl Client {
    pub fn closed(
        &mut self,
        warm_up: Duration,
        clocked: Duration,
        meter: Meter<'_>,
    ) -> Result<Window, Failure> {
        self.revive()?;
        load::closed(self, (warm_up, clocked), false, meter)
    }

    pub fn open(&mut self, schedule: &Schedule, meter: Meter<'_>) -> Result<Window, Failure> {
        self.revive()?;
        load::open(self, schedule, meter)
    }
}

#[cfg(test)]
#[path = "load_tests.rs"]
mod tests;
