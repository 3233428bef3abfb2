//! Senders beside the rig's own, which run at the same time: each is a process with a data set of
//! its own, on a socket of its own, before a reader of its own.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::memory::DATA_SET_SEED;
use super::message::{Order, Reader, drain_order};
use super::pipe::Pipe;
use super::process::Process;
use super::{Failure, RigOptions, Stop, link, sockets};
use crate::experiment::Mode;
use crate::plan::{CellPlan, CpuPair};

/// One of them, with its reader.
pub struct Beside {
    sender: Reader,
    reader: Reader,
    /// The sender's end, which it has as well: what is set on one is set on both.
    socket: OwnedFd,
    object_bytes: u64,
    dataset_bytes: u64,
    next: u64,
}

impl Beside {
    /// Starts both processes on their CPUs and has the sender fill its data set.
    pub fn start(
        cell: &CellPlan,
        cpus: CpuPair,
        options: &RigOptions,
        stop: &Stop,
    ) -> Result<Beside, Failure> {
        let (args, patience) = (&options.reader_args, options.patience);
        let set_up = |cpu, pipe_bytes, pipe_exact| Order::SetUp {
            cpu,
            pipe_bytes,
            pipe_exact,
            datagrams: false,
            patience_ms: u64::try_from(patience.as_millis()).unwrap_or(u64::MAX),
        };
        let pipe_bytes = Pipe::bytes_for_object(cell.object_bytes);
        let start = |name| Process::start(name, args, (patience, stop), |c| Ok(c.spawn()));
        let mut sender: Reader = start("a sending process")?;
        sender.ask(&set_up(cpus.sender, pipe_bytes, false))?;
        let mut reader: Reader = start("the reading process")?;
        let (bytes, exact) = (cell.pipe_bytes.unwrap_or(pipe_bytes), cell.pipe_bytes.is_some());
        reader.ask(&set_up(cpus.reader, bytes, exact))?;
        let (ours, theirs) = sockets::make_one(cell, patience)?;
        let sockets = |count| Order::Sockets { count };
        reader.give(&[theirs], sockets)?;
        let given = [ours];
        sender.give(&given, sockets)?;
        let [socket] = given;
        let CellPlan { object_bytes, dataset_bytes, .. } = *cell;
        sender.ask(&Order::Data { dataset_bytes, object_bytes })?;
        Ok(Beside { sender, reader, socket, object_bytes, dataset_bytes, next: 0 })
    }

    pub fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Has it send `objects` objects, and does not wait.
    pub fn begin(&mut self, mode: Mode, objects: u64) -> Result<(), Failure> {
        let bytes = objects * self.object_bytes;
        self.reader.order(&drain_order(1, bytes))?;
        let objects_of_it = self.dataset_bytes / self.object_bytes;
        let start = self.next;
        self.next = (start / self.object_bytes + objects) % objects_of_it * self.object_bytes;
        self.order(mode, start, bytes, false)
    }

    /// Waits for what was begun: the bytes that its reader took.
    pub fn end(&mut self) -> Result<u64, Failure> {
        self.sender.done()?;
        self.reader.drained()
    }

    /// Has it send bytes of its data set from `start` on, no more than an object, and its reader
    /// compare each of them.
    pub fn compare(
        &mut self,
        mode: Mode,
        (start, bytes): (u64, u64),
        spoil: bool,
    ) -> Result<(), Failure> {
        let order = Order::Compare { sockets: 1, bytes, seed: DATA_SET_SEED, start };
        self.reader.order(&link::encode(&order))?;
        self.order(mode, start, bytes, spoil)?;
        self.sender.done()?;
        self.reader.done()
    }

    pub fn spot_check(&mut self, mode: Mode) -> Result<(), Failure> {
        self.compare(mode, (self.next, self.object_bytes), false)
    }

    fn order(&mut self, mode: Mode, start: u64, bytes: u64, spoil: bool) -> Result<(), Failure> {
        let order = Order::Send { mode: mode.to_string(), start, bytes, spoil };
        self.sender.order(&link::encode(&order))
    }
}
