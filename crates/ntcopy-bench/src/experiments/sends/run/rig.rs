//! Everything that one cell needs, set up once: memory, sockets, both processes; and what is done
//! with it, compared or clocked: rounds, the free run, and sends with a victim between them.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use memmap2::{Advice, MmapMut};
use ntcopy::socket::Setting;
use ntcopy_judge::random::SplitMix64;
use ntcopy_kernel::process::Group;
use ntcopy_record::Params;

use super::super::{CellPlan, Form};
use super::data_set::{DATA_SET_SEED, DataSet};
use super::hot_set::HotSet;
use super::message::{Order, Reader, Reply, drain_order};
use super::sockets;
use crate::experiment::Mode;
use crate::hardware::Hardware;
use crate::run::clock::{Stopwatch, Ticks, ticks_now};
use crate::run::process::Process;
use crate::run::proof::{Due, Proof};
use crate::run::send::{self, Sender};
use crate::run::{Failure, Patience, Pipe, Stop, cpus, link, map, pattern};

#[derive(Debug, Clone)]
pub struct RigOptions {
    /// The arguments of this program that lead to [`super::reader::main`].
    pub reader_args: Vec<String>,
    pub patience: Duration,
    /// Make a byte wrong before it is sent, to see that it is noticed: for tests.
    pub spoil: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Clocked {
    /// Payload bytes: sent, taken, and both the same number.
    pub bytes: u64,
    /// Nanoseconds from first byte offered to last byte taken.
    pub elapsed_ns: u64,
    /// Nanoseconds of the phases that were clocked on their own.
    pub phases_ns: BTreeMap<String, u64>,
    pub counters: BTreeMap<String, u64>,
    /// Figures of parts of the run, in order, by name.
    pub series: BTreeMap<String, Vec<u64>>,
}

/// A cell, ready to run.
pub struct Rig {
    cell: CellPlan,
    sockets: Vec<OwnedFd>,
    data: DataSet,
    sender: Sender,
    reader: Reader,
    /// The small sender that has turns between the sends of this one.
    small: Option<Box<Rig>>,
    stop: Stop,
    /// The victim's, once there is one, and what its walks are clocked by.
    hot_set: Option<(HotSet, Ticks)>,
    /// Counts this thread and, since it was opened before it, the reader.
    hardware: Hardware,
    setting: Setting,
    pipe_bytes: u64,
    spoil: bool,
}

impl Rig {
    /// Maps and touches the data set, makes the sockets, starts the reader.
    /// `kept` is the memory of another rig's data set, used again if it has
    /// the size.
    ///
    /// The calling thread stays on the sender's CPU from here on.
    pub(crate) fn open(
        cell: &CellPlan,
        options: &RigOptions,
        kept: Option<MmapMut>,
        stop: &Stop,
    ) -> Result<Rig, Failure> {
        cpus::pin(cell.cpus.sender)?;
        let hardware = Hardware::open();
        let patience = options.patience;
        let (name, args) = ("the reading process", &options.reader_args);
        let mut reader: Reader =
            Process::start(name, args, Patience { limit: patience, stop }, |command| {
                Ok(Group::start(command))
            })?;
        let pipe_bytes = cell.pipe_bytes.unwrap_or(Pipe::bytes_for_object(cell.object_bytes));
        let order = Order::SetUp {
            cpu: cell.cpus.reader,
            pipe_bytes,
            pipe_exact: cell.pipe_bytes.is_some(),
            datagrams: cell.family.is_datagram(),
            patience_ms: u64::try_from(patience.as_millis()).unwrap_or(u64::MAX),
        };
        let pipe_bytes = match reader.ask(&order)? {
            Reply::Ready { pipe_bytes } => pipe_bytes,
            other => return Err(reader.unexpected(&other)),
        };
        let (ours, theirs): (Vec<_>, Vec<_>) = sockets::make(cell, patience)?.into_iter().unzip();
        reader.give(&theirs, |count| Order::Sockets { count })?;
        // With the reader's ends closed here, its death shows on the sockets.
        drop(theirs);
        let small = cell.small().map(|small| Rig::alone(&small, options, stop)).transpose()?;
        Ok(Rig {
            small: small.map(Box::new),
            data: DataSet::new(cell.dataset_bytes, cell.object_bytes, kept)?,
            sender: Sender::new(cell.family, cell.object_bytes, patience, stop.clone())?,
            hot_set: None,
            hardware,
            setting: Setting::None,
            cell: cell.clone(),
            sockets: ours,
            reader,
            stop: stop.clone(),
            pipe_bytes,
            spoil: options.spoil,
        })
    }

    /// Opens a rig on memory of its own.
    pub fn alone(cell: &CellPlan, options: &RigOptions, stop: &Stop) -> Result<Rig, Failure> {
        Rig::open(cell, options, None, stop)
    }

    /// Ends the reader, and gives the data set's memory to the next rig.
    pub(crate) fn into_memory(self) -> MmapMut {
        self.data.into_buffer()
    }

    /// The cell's parameters, with the sizes of pipe and send buffer that were set.
    pub fn params(&self, iterations: Option<u64>) -> Params {
        let actual = CellPlan {
            pipe_bytes: Some(self.pipe_bytes),
            sndbuf_bytes: Some(sockets::sndbuf_bytes(&self.cell)),
            ..self.cell.clone()
        };
        actual.params(iterations)
    }

    /// Sends patterned data the way the mode sends, on at most this number of the
    /// sockets, and lets the reader compare every byte.
    pub fn verify(&mut self, mode: Mode, most_sockets: u32) -> Result<(), Failure> {
        if mode == Mode::Idle {
            return Ok(());
        }
        self.prepare(mode)?;
        let object = self.cell.object_bytes;
        if self.cell.form.holds_objects() {
            let sockets = self.sockets.len().min(most_sockets as usize);
            let mut buffer = map(sockets as u64 * object, Advice::Normal)?;
            let sizes = odd_sizes(object);
            for (number, &size) in sizes.iter().enumerate() {
                let spoil = self.spoil && number + 1 == sizes.len();
                self.verify_round(mode, &mut buffer, sockets, size as usize, spoil)?;
            }
            return match &mut self.small {
                Some(small) => small.verify(mode, most_sockets),
                None => Ok(()),
            };
        }
        // A tail that fills no page and no object.
        let total = 4 * object + object / 3 + 1;
        let mut buffer = map(total, Advice::Normal)?;
        self.verify_stream(mode, &mut buffer)
    }

    fn verify_round(
        &mut self,
        mode: Mode,
        buffer: &mut MmapMut,
        sockets: usize,
        size: usize,
        spoil: bool,
    ) -> Result<(), Failure> {
        let slot = self.cell.object_bytes as usize;
        let seed = u64::from(mode as u8) << 32 | 1;
        // Where it fits, begin off a page's and a line's boundary.
        let into = if size + 13 <= slot { 13 } else { 0 };
        for number in 0..sockets {
            let at = number * slot + into;
            pattern::fill(seed + number as u64, 0, &mut buffer[at..at + size]);
        }
        if spoil {
            buffer[(sockets - 1) * slot + into + size / 2] ^= 1;
        }
        for number in 0..sockets {
            let at = number * slot + into;
            self.send(number, mode, &buffer[at..at + size])?;
        }
        self.compare(sockets, size as u64, seed, 0)
    }

    fn verify_stream(&mut self, mode: Mode, buffer: &mut MmapMut) -> Result<(), Failure> {
        let total = buffer.len();
        let seed = u64::from(mode as u8) << 32 | 2;
        pattern::fill(seed, 0, buffer);
        if self.spoil {
            buffer[total - 1] ^= 1;
        }
        let order = Order::Compare { sockets: 1, bytes: total as u64, seed, start: 0 };
        self.reader.order(&link::encode(&order))?;
        let object = self.cell.object_bytes as usize;
        for at in (0..total).step_by(object) {
            self.send(0, mode, &buffer[at..total.min(at + object)])?;
        }
        self.reader.done()
    }

    pub fn spot_check(&mut self, mode: Mode) -> Result<(), Failure> {
        if mode == Mode::Idle {
            return Ok(());
        }
        let bytes = self.cell.object_bytes;
        let (at, object) = self.data.next();
        let start = at as u64;
        let order = Order::Compare { sockets: 1, bytes, seed: DATA_SET_SEED, start };
        self.reader.order(&link::encode(&order))?;
        let sent = self.sender.send(self.sockets[0].as_fd(), mode, object);
        sent.map_err(|failure| self.reader.blame(failure))?;
        self.reader.done()?;
        self.small.iter_mut().try_for_each(|small| small.spot_check(mode))
    }

    fn compare(
        &mut self,
        sockets: usize,
        bytes: u64,
        seed: u64,
        start: u64,
    ) -> Result<(), Failure> {
        let sockets = u32::try_from(sockets).unwrap_or(u32::MAX);
        self.reader.order(&link::encode(&Order::Compare { sockets, bytes, seed, start }))?;
        self.reader.done()
    }

    fn send(&mut self, number: usize, mode: Mode, bytes: &[u8]) -> Result<(), Failure> {
        self.stop.check()?;
        let sent = self.sender.send(self.sockets[number].as_fd(), mode, bytes);
        sent.map_err(|failure| self.reader.blame(failure))
    }

    /// Runs `count` rounds, walks, or sends of the free-running form, and holds the reader's byte
    /// count and the kernel's counters against what was sent.
    pub fn run(&mut self, mode: Mode, count: u64) -> Result<Clocked, Failure> {
        self.prepare(mode)?;
        let proof = Proof::begin(None)?;
        self.hardware.start();
        let mut unclocked = Clocked::default();
        let mut clocked = match self.cell.form {
            Form::Rounds { .. } => self.rounds(mode, count)?.0,
            Form::TwoSenders { small, .. } => {
                let (bulk, of_small) = self.rounds(mode, count)?;
                let (clocked, other) =
                    if small.is_clocked { (of_small, bulk) } else { (bulk, of_small) };
                unclocked = other;
                clocked
            }
            Form::FreeRunning { .. } => self.free_run(mode, count)?,
            Form::Victim { hot_set_bytes, .. } => self.victim(mode, count, hot_set_bytes)?,
        };
        let events = self.hardware.stop();
        let sent = clocked.bytes + unclocked.bytes;
        let is_small_clocked =
            matches!(self.cell.form, Form::TwoSenders { small, .. } if small.is_clocked);
        let bulk_bytes = if is_small_clocked { unclocked.bytes } else { clocked.bytes };
        let objects = bulk_bytes / self.cell.object_bytes;
        let due = Due::All { bytes: sent, bypassed: objects * self.cell.bypassing_bytes() };
        clocked.counters = proof.check(&format!("mode {mode} sent {sent} bytes"), mode, due)?;
        clocked.counters.extend(events);
        Ok(clocked)
    }

    /// Rounds of this sender, and what the small one did between its sends: it is not in the time of
    /// these.
    fn rounds(&mut self, mode: Mode, rounds: u64) -> Result<(Clocked, Clocked), Failure> {
        let object = self.cell.object_bytes;
        let sockets = self.sockets.len();
        let order = drain_order(sockets, object);
        let (mut send_ns, mut drain_ns) = (0, 0);
        let (mut random, mut small) = (SplitMix64(DATA_SET_SEED), Clocked::default());
        // The end of one round is the start of the next: where every system
        // call is dear, a third look at the clock would show.
        let clock = Stopwatch::start();
        let mut start = 0;
        for _ in 0..rounds {
            self.stop.check()?;
            let small_before = small.elapsed_ns;
            for socket in 0..sockets {
                self.send_next(socket, mode)?;
                self.small_rounds(mode, &mut random, &mut small)?;
            }
            let full = clock.ns();
            self.drain(&order, sockets)?;
            let empty = clock.ns();
            send_ns += full - start - (small.elapsed_ns - small_before);
            drain_ns += empty - full;
            start = empty;
        }
        let round_bytes = object * sockets as u64;
        let clocked = Clocked {
            bytes: rounds * round_bytes,
            elapsed_ns: send_ns + drain_ns,
            phases_ns: [("send".to_owned(), send_ns), ("drain".to_owned(), drain_ns)].into(),
            ..Clocked::default()
        };
        Ok((clocked, small))
    }

    /// What the small sender does after an object of this one; in every mode the same.
    fn small_rounds(
        &mut self,
        mode: Mode,
        random: &mut SplitMix64,
        total: &mut Clocked,
    ) -> Result<(), Failure> {
        let (Form::TwoSenders { small, .. }, Some(rig)) = (&self.cell.form, &mut self.small) else {
            return Ok(());
        };
        let rounds = random.below(2 * small.per_object as usize + 1) as u64;
        let (clocked, _) = rig.rounds(mode, rounds)?;
        total.bytes += clocked.bytes;
        total.elapsed_ns += clocked.elapsed_ns;
        for (name, ns) in clocked.phases_ns {
            *total.phases_ns.entry(name).or_default() += ns;
        }
        Ok(())
    }

    fn free_run(&mut self, mode: Mode, iterations: u64) -> Result<Clocked, Failure> {
        let bytes = iterations * self.cell.object_bytes;
        self.reader.order(&drain_order(1, bytes))?;
        let clock = Stopwatch::start();
        for _ in 0..iterations {
            self.stop.check()?;
            self.send_next(0, mode)?;
        }
        let drained = self.reader.drained()?;
        let elapsed_ns = clock.ns().max(1);
        if drained != bytes {
            return Err(Failure::Lost { sent: bytes, drained });
        }
        Ok(Clocked { bytes, elapsed_ns, ..Clocked::default() })
    }

    fn send_next(&mut self, socket: usize, mode: Mode) -> Result<(), Failure> {
        let (_, object) = self.data.next();
        let sent = self.sender.send(self.sockets[socket].as_fd(), mode, object);
        sent.map_err(|failure| self.reader.blame(failure))
    }

    /// Has the reader take one object out of each of the first sockets, as the order says.
    fn drain(&mut self, order: &[u8], sockets: usize) -> Result<(), Failure> {
        self.reader.order(order)?;
        let drained = self.reader.drained()?;
        let sent = self.cell.object_bytes * sockets as u64;
        if drained == sent { Ok(()) } else { Err(Failure::Lost { sent, drained }) }
    }

    /// One send, then one walk of the victim, `walks` times. In mode `idle` only the walks.
    fn victim(&mut self, mode: Mode, walks: u64, hot_set_bytes: u64) -> Result<Clocked, Failure> {
        let (mut hot_set, ticks) = match self.hot_set.take() {
            Some(kept) => kept,
            None => (HotSet::new(hot_set_bytes, Advice::Normal)?, Ticks::calibrate()),
        };
        let lines = hot_set.lines();
        let mut took = Vec::with_capacity(usize::try_from(walks).unwrap_or(0));
        let (mut send_ns, mut drain_ns) = (0, 0);
        let clock = Stopwatch::start();
        let mut filled = 0;
        for walk in 0..walks {
            self.stop.check()?;
            if mode != Mode::Idle {
                let start = clock.ns();
                self.send_next(filled, mode)?;
                filled += 1;
                let sent = clock.ns();
                send_ns += sent - start;
                if filled == self.sockets.len() || walk + 1 == walks {
                    self.drain(&drain_order(filled, self.cell.object_bytes), filled)?;
                    filled = 0;
                    drain_ns += clock.ns() - sent;
                }
            }
            let start = ticks_now();
            hot_set.walk(lines);
            took.push(ticks.ns(start, ticks_now()));
        }
        let elapsed_ns = clock.ns().max(1);
        self.hot_set = Some((hot_set, ticks));
        let walk_ns = took.iter().sum();
        let phases = [("send", send_ns), ("drain", drain_ns), ("walk", walk_ns)];
        Ok(Clocked {
            bytes: if mode == Mode::Idle { 0 } else { walks * self.cell.object_bytes },
            elapsed_ns,
            phases_ns: phases.map(|(name, ns)| (name.to_owned(), ns)).into(),
            counters: BTreeMap::new(),
            series: [("walk_ns".to_owned(), took)].into(),
        })
    }

    fn prepare(&mut self, mode: Mode) -> Result<(), Failure> {
        let setting = send::setting(mode);
        if setting != self.setting {
            let mut sockets = self.sockets.iter().map(AsFd::as_fd);
            sockets.try_for_each(|socket| send::prepare(socket, setting))?;
            self.setting = setting;
        }
        self.small.iter_mut().try_for_each(|small| small.prepare(mode))
    }
}

/// Sizes to verify with: the object, and some that are no multiples of a page.
fn odd_sizes(object_bytes: u64) -> Vec<u64> {
    let mut sizes = vec![1, 4097, object_bytes - object_bytes / 4, object_bytes];
    if sizes[2] % 2 == 0 {
        sizes[2] -= 1;
    }
    sizes.retain(|size| (1..=object_bytes).contains(size));
    sizes.dedup();
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_to_verify_end_with_the_object_and_hold_odd_ones() {
        assert_eq!(odd_sizes(1 << 20), [1, 4097, 786_431, 1 << 20]);
        assert_eq!(odd_sizes(1), [1]);
        assert_eq!(odd_sizes(4096), [1, 3071, 4096]);
        for object in 1..5000 {
            assert_eq!(odd_sizes(object).last(), Some(&object));
        }
    }
}
