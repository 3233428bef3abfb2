//! The two clocked forms: rounds, and the free run.

use std::collections::BTreeMap;
use std::os::fd::AsFd;

use super::clock::Stopwatch;
use super::message::{Order, Reply};
use super::process::unexpected;
use super::{Failure, Rig, counters, link};
use crate::experiment::Mode;
use crate::plan::Form;

/// What a clocked run gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clocked {
    /// Payload bytes: sent, taken, and both the same number.
    pub bytes: u64,
    /// Nanoseconds from first byte offered to last byte taken.
    pub elapsed_ns: u64,
    /// Nanoseconds of the phases that were clocked on their own.
    pub phases_ns: BTreeMap<String, u64>,
    /// What the kernel counted meanwhile.
    pub counters: BTreeMap<String, u64>,
}

impl Rig {
    /// Runs so many rounds, or so many sends of the free-running form, and
    /// holds the reader's byte count and the kernel's counters against what was
    /// sent.
    ///
    /// # Errors
    ///
    /// Whatever kept the bytes from arriving, or did not add up.
    pub fn run(&mut self, mode: Mode, count: u64) -> Result<Clocked, Failure> {
        self.prepare(mode)?;
        let before = counters::before()?;
        let mut clocked = match self.cell.form {
            Form::Rounds { .. } => self.rounds(mode, count)?,
            Form::FreeRunning { .. } => self.free_run(mode, count)?,
        };
        clocked.counters = counters::check(&before, mode, clocked.bytes)?;
        Ok(clocked)
    }

    fn rounds(&mut self, mode: Mode, rounds: u64) -> Result<Clocked, Failure> {
        let object = self.cell.object_bytes;
        let round_bytes = object * self.sockets.len() as u64;
        let order = link::encode(&Order::Drain { bytes: object });
        let (mut send_ns, mut drain_ns) = (0, 0);
        // The end of one round is the start of the next: where every system
        // call is dear, a third look at the clock would show.
        let clock = Stopwatch::start();
        let mut start = 0;
        for _ in 0..rounds {
            self.stop.check()?;
            for socket in &self.sockets {
                let (_, object) = self.data.next();
                let sent = self.sender.send(socket.as_fd(), mode, object);
                sent.map_err(|failure| self.reader.blame(failure))?;
            }
            let full = clock.ns();
            self.reader.order(&order)?;
            let drained = self.drained()?;
            let empty = clock.ns();
            if drained != round_bytes {
                return Err(Failure::Lost { sent: round_bytes, drained });
            }
            send_ns += full - start;
            drain_ns += empty - full;
            start = empty;
        }
        Ok(Clocked {
            bytes: rounds * round_bytes,
            elapsed_ns: send_ns + drain_ns,
            phases_ns: [("send".to_owned(), send_ns), ("drain".to_owned(), drain_ns)].into(),
            counters: BTreeMap::new(),
        })
    }

    fn free_run(&mut self, mode: Mode, iterations: u64) -> Result<Clocked, Failure> {
        let bytes = iterations * self.cell.object_bytes;
        self.reader.order(&link::encode(&Order::Drain { bytes }))?;
        let clock = Stopwatch::start();
        for _ in 0..iterations {
            self.stop.check()?;
            let (_, object) = self.data.next();
            let sent = self.sender.send(self.sockets[0].as_fd(), mode, object);
            sent.map_err(|failure| self.reader.blame(failure))?;
        }
        let drained = self.drained()?;
        let elapsed_ns = clock.ns().max(1);
        if drained != bytes {
            return Err(Failure::Lost { sent: bytes, drained });
        }
        Ok(Clocked { bytes, elapsed_ns, phases_ns: BTreeMap::new(), counters: BTreeMap::new() })
    }

    /// The reader's answer: bytes taken.
    fn drained(&mut self) -> Result<u64, Failure> {
        match self.reader.reply()? {
            Reply::Drained { bytes } => Ok(bytes),
            other => Err(unexpected(&other)),
        }
    }
}
