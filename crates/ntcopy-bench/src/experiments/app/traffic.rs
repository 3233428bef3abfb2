//! One sample's traffic: multigets when they are due, and large values beside them.

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use super::client::{Client, Ready};
use crate::run::Failure;
use crate::run::load::{self, Mark, Tally};
use crate::run::meter::Meter;
use crate::run::schedule::{Schedule, gives_up_ns, histogram, precise_timers, take_answers};

/// When something is asked for.
#[derive(Debug, Clone, Copy)]
pub enum Pace<'a> {
    Off,
    /// On every connection anew as soon as it is answered.
    Max,
    /// When it is due, as soon as a connection has nothing to do.
    Due(&'a [u64]),
}

/// What is asked, and for how long.
pub struct Asked<'a> {
    pub small: Pace<'a>,
    pub large: Pace<'a>,
    /// What counts is what is due from here on.
    pub from_ns: u64,
    pub to_ns: u64,
}

impl<'a> Asked<'a> {
    /// Over the time of a schedule of multigets.
    pub fn beside(small: &'a Schedule, large: Pace<'a>) -> Asked<'a> {
        let (from_ns, to_ns) = (small.counted_from_ns, small.end_ns);
        Asked { small: Pace::Due(&small.due_ns), large, from_ns, to_ns }
    }
}

/// Bytes are those of large values; answers, of multigets, took from when they were due. CPU time is
/// that of client and server.
pub type Window = load::Window<2>;

struct Run<'a> {
    client: &'a mut Client,
    asked: &'a Asked<'a>,
    began: Instant,
    /// Multigets, and large values, of a schedule that were asked for.
    issued: [usize; 2],
    /// Connections with nothing to do. The one that was answered last asks first, so that its
    /// buffer is in the cache.
    idle: [Vec<usize>; 2],
    latencies: Histogram<u64>,
    tally: Tally,
}

pub fn run(client: &mut Client, asked: &Asked<'_>, meter: Meter<'_, 2>) -> Result<Window, Failure> {
    precise_timers()?;
    let idle = client.connections().map(|count| (0..count).rev().collect());
    let mut run = Run {
        client,
        asked,
        began: Instant::now(),
        issued: [0; 2],
        idle,
        latencies: histogram()?,
        tally: Tally::default(),
    };
    let (mut opened, mut closed) = (None, None);
    loop {
        let now = run.now();
        if opened.is_none() && now >= asked.from_ns {
            opened = Some(run.tally.begin(|| run.now(), meter)?);
        }
        if closed.is_none() && now >= asked.to_ns {
            closed = Some(run.tally.end(run.now(), meter)?);
        }
        let is_open = closed.is_none();
        run.issue_small(now, is_open)?;
        // What is left of the multigets is answered beside the same traffic.
        run.issue_large(now, is_open || !run.is_answered())?;
        if !is_open && (run.is_answered() && !run.client.is_fetching() || run.gives_up(now)) {
            break;
        }
        run.take(opened.is_none(), is_open)?;
    }
    run.window(opened, closed)
}

impl Run<'_> {
    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Whether every multiget that was due is answered.
    fn is_answered(&self) -> bool {
        let is_issued = match self.asked.small {
            Pace::Due(due) => self.issued[0] == due.len(),
            Pace::Off | Pace::Max => true,
        };
        is_issued && self.client.small_under_way().next().is_none()
    }

    /// Whether no answer is waited for any more.
    fn gives_up(&self, now: u64) -> bool {
        let schedule = Schedule {
            due_ns: Vec::new(),
            counted_from_ns: self.asked.from_ns,
            end_ns: self.asked.to_ns,
        };
        now > gives_up_ns(&schedule)
    }

    fn issue_small(&mut self, now: u64, is_open: bool) -> Result<(), Failure> {
        match self.asked.small {
            Pace::Off => {}
            Pace::Max => {
                while is_open && let Some(number) = self.idle[0].pop() {
                    self.client.ask_small(number, now)?;
                }
            }
            Pace::Due(due) => {
                while let Some(&at) = due.get(self.issued[0])
                    && at <= now
                    && let Some(number) = self.idle[0].pop()
                {
                    self.client.ask_small(number, at)?;
                    self.issued[0] += 1;
                }
            }
        }
        Ok(())
    }

    fn issue_large(&mut self, now: u64, is_wanted: bool) -> Result<(), Failure> {
        match self.asked.large {
            Pace::Off => {}
            Pace::Max => {
                while is_wanted && let Some(number) = self.idle[1].pop() {
                    self.client.ask_large(number)?;
                }
            }
            Pace::Due(due) => {
                while is_wanted
                    && let Some(&at) = due.get(self.issued[1])
                    && at <= now
                    && let Some(number) = self.idle[1].pop()
                {
                    self.client.ask_large(number)?;
                    self.issued[1] += 1;
                }
            }
        }
        Ok(())
    }

    /// When something is to be done that is no answer.
    fn next_ns(&self, is_warming_up: bool, is_open: bool) -> u64 {
        let next = |pace: Pace<'_>, which: usize| match pace {
            Pace::Due(due) if !self.idle[which].is_empty() => due.get(self.issued[which]).copied(),
            _ => None,
        };
        let edges = [
            is_warming_up.then_some(self.asked.from_ns),
            is_open.then_some(self.asked.to_ns),
            next(self.asked.small, 0),
            next(self.asked.large, 1).filter(|_| is_open),
        ];
        edges.into_iter().flatten().min().unwrap_or(u64::MAX)
    }

    /// Waits for an answer, or until something is to be done, and takes what there is.
    fn take(&mut self, is_warming_up: bool, is_open: bool) -> Result<(), Failure> {
        let until = self.next_ns(is_warming_up, is_open);
        let wait = Duration::from_nanos(until.saturating_sub(self.now()).max(1));
        let ready = self.client.wait(wait)?;
        for event in 0..ready {
            match self.client.ready(event) {
                Ready::Small(number) => {
                    if let Some(due_ns) = self.client.read_small(number)? {
                        self.tally.answered += 1;
                        self.record(due_ns, self.now());
                        self.idle[0].push(number);
                    }
                }
                Ready::Large(number) => {
                    let (bytes, is_whole) = self.client.read_large(number)?;
                    self.tally.bytes += bytes;
                    if is_whole {
                        self.idle[1].push(number);
                    }
                }
            }
        }
        if ready > 0 {
            self.client.heard();
        }
        Ok(())
    }

    fn record(&mut self, due_ns: u64, now: u64) {
        if due_ns >= self.asked.from_ns {
            // A histogram that grows by itself takes every number.
            let _ = self.latencies.record(now.saturating_sub(due_ns).max(1));
        }
    }

    /// What was due and is not answered counts with its time until now.
    fn window(
        mut self,
        opened: Option<Mark<2>>,
        closed: Option<Mark<2>>,
    ) -> Result<Window, Failure> {
        let now = self.now();
        let mut late: Vec<u64> = self.client.small_under_way().collect();
        if let Pace::Due(due) = self.asked.small {
            late.extend(&due[self.issued[0]..]);
        }
        late.retain(|due_ns| *due_ns >= self.asked.from_ns);
        for due_ns in &late {
            self.record(*due_ns, now);
        }
        let (Some(from), Some(to)) = (opened, closed) else {
            return Err(Failure::Answer("the clock never ran".to_owned()));
        };
        let answers = take_answers(&self.latencies, late.len() as u64);
        Ok(self.tally.window(from, to, Some(answers)))
    }
}
