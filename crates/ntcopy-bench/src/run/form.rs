//! The clocked forms: rounds, and the free run; the others have modules of their own.

use std::collections::BTreeMap;
use std::os::fd::AsFd;

use super::clock::Stopwatch;
use super::counters::{self, Expected};
use super::message::{Order, Reader, Reply};
use super::process::Part as _;
use super::rig::Rig;
use super::{Clocked, Failure, link};
use crate::experiment::Mode;
use crate::plan::Form;

/// The order to take so many bytes out of each of the first sockets.
pub(super) fn drain_order(sockets: usize, bytes: u64) -> Vec<u8> {
    link::encode(&Order::Drain { sockets: u32::try_from(sockets).unwrap_or(u32::MAX), bytes })
}

impl Rig {
    /// Runs so many rounds or walks, or so many sends of the free-running
    /// form, and holds the reader's byte count and the kernel's counters
    /// against what was sent.
    ///
    /// # Errors
    ///
    /// Whatever kept the bytes from arriving, or did not add up.
    pub fn run(&mut self, mode: Mode, count: u64) -> Result<Clocked, Failure> {
        self.prepare(mode)?;
        let before = counters::before()?;
        self.hardware.start();
        let mut clocked = match self.cell.form {
            Form::Rounds { .. } => self.rounds(mode, count)?,
            Form::FreeRunning { .. } => self.free_run(mode, count)?,
            Form::Victim { hot_set_bytes, .. } => self.victim(mode, count, hot_set_bytes)?,
        };
        let events = self.hardware.stop();
        let sent = clocked.bytes;
        let objects = sent / self.cell.object_bytes;
        let too_small = objects * self.cell.too_small_bytes();
        clocked.counters = counters::check(&before, Expected { mode, sent, too_small })?;
        clocked.counters.extend(events);
        Ok(clocked)
    }

    fn rounds(&mut self, mode: Mode, rounds: u64) -> Result<Clocked, Failure> {
        let object = self.cell.object_bytes;
        let sockets = self.sockets.len();
        let order = drain_order(sockets, object);
        let (mut send_ns, mut drain_ns) = (0, 0);
        // The end of one round is the start of the next: where every system
        // call is dear, a third look at the clock would show.
        let clock = Stopwatch::start();
        let mut start = 0;
        for _ in 0..rounds {
            self.stop.check()?;
            for socket in 0..sockets {
                self.send_next(socket, mode)?;
            }
            let full = clock.ns();
            self.drain(&order, sockets)?;
            let empty = clock.ns();
            send_ns += full - start;
            drain_ns += empty - full;
            start = empty;
        }
        let round_bytes = object * sockets as u64;
        Ok(Clocked {
            bytes: rounds * round_bytes,
            elapsed_ns: send_ns + drain_ns,
            phases_ns: [("send".to_owned(), send_ns), ("drain".to_owned(), drain_ns)].into(),
            counters: BTreeMap::new(),
            series: BTreeMap::new(),
        })
    }

    fn free_run(&mut self, mode: Mode, iterations: u64) -> Result<Clocked, Failure> {
        let bytes = iterations * self.cell.object_bytes;
        self.reader.order(&drain_order(1, bytes))?;
        let clock = Stopwatch::start();
        self.others.iter_mut().try_for_each(|other| other.begin(mode, iterations))?;
        for _ in 0..iterations {
            self.stop.check()?;
            self.send_next(0, mode)?;
        }
        let mut drained = self.drained()?;
        for other in &mut self.others {
            drained += other.end()?;
        }
        let elapsed_ns = clock.ns().max(1);
        let bytes = bytes * (1 + self.others.len() as u64);
        if drained != bytes {
            return Err(Failure::Lost { sent: bytes, drained });
        }
        let (phases_ns, counters, series) = Default::default();
        Ok(Clocked { bytes, elapsed_ns, phases_ns, counters, series })
    }

    /// Sends the next object of the data set on a socket.
    pub(super) fn send_next(&mut self, socket: usize, mode: Mode) -> Result<(), Failure> {
        let (_, object) = self.data.next();
        let sent = self.sender.send(self.sockets[socket].as_fd(), mode, object);
        sent.map_err(|failure| self.reader.blame(failure))
    }

    /// Has the reader take one object out of each of the first sockets, as the order says.
    pub(super) fn drain(&mut self, order: &[u8], sockets: usize) -> Result<(), Failure> {
        self.reader.order(order)?;
        let drained = self.drained()?;
        let sent = self.cell.object_bytes * sockets as u64;
        if drained == sent { Ok(()) } else { Err(Failure::Lost { sent, drained }) }
    }

    /// The reader's answer: bytes taken.
    fn drained(&mut self) -> Result<u64, Failure> {
        match self.reader.reply()? {
            Reply::Drained { bytes } => Ok(bytes),
            other => Err(Reader::unexpected(&other)),
        }
    }
}
