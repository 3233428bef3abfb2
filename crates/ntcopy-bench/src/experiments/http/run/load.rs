//! Load of requests over sockets.

use std::time::Duration;

use super::body_reader::BodyReader;
use super::client::Client;
use super::stack::CpuNs;
use crate::run::load::{self, Asks, Step};
use crate::run::schedule::Schedule;
use crate::run::{Failure, meter};

/// Reads the clocks, and has the hardware count.
pub type Meter<'a> = meter::Meter<'a, CpuNs>;

/// What went through while the clock ran; the bytes are those of bodies.
pub type Window = load::Window<CpuNs>;

/// A client that throws bodies away.
struct Discarding<'a> {
    client: &'a mut Client,
    reader: BodyReader,
}

impl Asks for Discarding<'_> {
    fn connections(&self) -> usize {
        self.client.conns.len()
    }

    fn ns(&self) -> u64 {
        self.client.ns()
    }

    fn ask(&mut self, number: usize, due_ns: u64) -> Result<(), Failure> {
        self.client.ask(number, due_ns)
    }

    fn wait(&mut self, at_most: Duration) -> Result<usize, Failure> {
        self.client.wait(at_most)
    }

    fn ready(&mut self, event: usize) -> Result<(usize, Step), Failure> {
        self.client.ready(event, &mut self.reader)
    }

    fn heard(&mut self, at_ns: u64) {
        self.client.heard(at_ns);
    }

    fn due_ns(&self, number: usize) -> u64 {
        self.client.conns[number].due_ns
    }

    fn is_idle(&self, number: usize) -> bool {
        self.client.conns[number].is_idle()
    }
}

impl Client {
    /// The same as `load::closed`.
    pub fn closed(
        &mut self,
        warm_up: Duration,
        clocked: Duration,
        meter: Meter<'_>,
    ) -> Result<Window, Failure> {
        self.revive()?;
        let mut asks = Discarding { client: self, reader: BodyReader::discarding() };
        load::closed(&mut asks, (warm_up, clocked), false, meter)
    }

    /// The same as `load::open`.
    pub fn open(&mut self, schedule: &Schedule, meter: Meter<'_>) -> Result<Window, Failure> {
        self.revive()?;
        let mut asks = Discarding { client: self, reader: BodyReader::discarding() };
        load::open(&mut asks, schedule, meter)
    }
}

#[cfg(test)]
#[path = "load_tests.rs"]
mod tests;
