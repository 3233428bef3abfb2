//! Waiting until one of several connections is ready, and no longer than patience and signals allow.

use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;
use rustix::time::Timespec;

use super::{Failure, Patience, Stop, ns};

/// Events that are taken at a time.
const EVENTS: usize = 256;
/// A signal and a hang are looked for this often at least.
pub const TURN: Duration = Duration::from_millis(100);

pub struct Poll {
    epoll: OwnedFd,
    events: Vec<Event>,
    begun: Instant,
    /// When something last came, nanoseconds on this clock.
    heard_ns: u64,
    patience: Duration,
    /// Why there may be silence, for its failure.
    likely: &'static str,
    stop: Stop,
}

impl Poll {
    pub fn new(patience: Patience<'_>, likely: &'static str) -> Result<Poll, Failure> {
        let epoll =
            epoll::create(CreateFlags::CLOEXEC).map_err(Failure::os("cannot make an epoll"))?;
        let events =
            vec![Event { flags: EventFlags::empty(), data: EventData::new_u64(0) }; EVENTS];
        let (begun, stop) = (Instant::now(), patience.stop.clone());
        Ok(Poll { epoll, events, begun, heard_ns: 0, patience: patience.limit, likely, stop })
    }

    /// Waits for what there is to read from now on. Closed, it leaves by itself.
    pub fn watch(&self, fd: impl AsFd, token: u64) -> Result<(), Failure> {
        epoll::add(&self.epoll, fd, EventData::new_u64(token), EventFlags::IN)
            .map_err(Failure::os("cannot watch a connection"))
    }

    /// Waits for something else of it.
    pub fn change(&self, fd: impl AsFd, token: u64, flags: EventFlags) -> Result<(), Failure> {
        epoll::modify(&self.epoll, fd, EventData::new_u64(token), flags)
            .map_err(Failure::os("cannot watch a connection"))
    }

    /// Nanoseconds on this clock.
    pub fn ns(&self) -> u64 {
        ns(self.begun.elapsed())
    }

    /// Silence counts from here on.
    pub fn heard(&mut self, at_ns: u64) {
        self.heard_ns = at_ns;
    }

    /// Waits until something is ready, or `at_most` is over, and gives how many events there are.
    /// It fails where so many answers are waited for, and nothing came for too long.
    pub fn wait(
        &mut self,
        at_most: Duration,
        waiting: impl FnOnce() -> usize,
    ) -> Result<usize, Failure> {
        self.stop.check()?;
        let timeout = Timespec::try_from(at_most.min(TURN)).ok();
        match epoll::wait(&self.epoll, &mut self.events[..], timeout.as_ref()) {
            Ok(0) | Err(Errno::INTR) => self.silence(waiting()),
            Ok(ready) => Ok(ready),
            Err(errno) => Err(Failure::os("cannot wait for an answer")(errno)),
        }
    }

    fn silence(&mut self, waiting: usize) -> Result<usize, Failure> {
        if waiting == 0 {
            self.heard_ns = self.ns();
            return Ok(0);
        }
        let silent = Duration::from_nanos(self.ns().saturating_sub(self.heard_ns));
        if silent <= self.patience {
            return Ok(0);
        }
        let (seconds, likely) = (self.patience.as_secs(), self.likely);
        Err(Failure::Answer(format!(
            "no byte came for {seconds} s, and {waiting} requests wait for their answers{likely}"
        )))
    }

    /// The token of an event, and what it is.
    pub fn event(&self, number: usize) -> (u64, EventFlags) {
        let Event { flags, data } = self.events[number];
        (data.u64(), flags)
    }
}
