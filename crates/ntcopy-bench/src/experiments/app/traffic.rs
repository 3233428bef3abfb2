//! One sample's traffic: multigets when they are due, and large values beside them.

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use super::client::{Client, Ready};
use crate::run::load::{self, Mark, Tally};
use crate::run::meter::Meter;
use crate::run::schedule::{
    Schedule, gives_up_ns, histogram, precise_timers, record, take_answers,
};
use crate::run::{Failure, ns};

#[derive(Debug, Clone, Copy)]
pub enum Pace<'a> {
    Off,
    /// On every connection anew as soon as it is answered.
    Max,
    /// When it is due, as soon as a connection has nothing to do.
    Due(&'a [u64]),
}

pub struct Asked<'a> {
    pub small: Pace<'a>,
    pub large: Pace<'a>,
    /// What counts is what is due from here on.
    pub from_ns: u64,
    pub to_ns: u64,
}

impl<'a> Asked<'a> {
    /// Over the time of a schedule of multigets.
    pub fn of_both(small: &'a Schedule, large: Pace<'a>) -> Asked<'a> {
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
        run.issue(0, now, is_open || matches!(asked.small, Pace::Due(_)))?;
        // What is left of the multigets is answered beside the same traffic.
        run.issue(1, now, is_open || !run.is_answered())?;
        if !is_open && (run.is_answered() && !run.client.is_fetching() || run.gives_up(now)) {
            break;
        }
        run.take(opened.is_none(), is_open)?;
    }
    run.window(opened, closed)
}

impl Run<'_> {
    fn now(&self) -> u64 {
        ns(self.began.elapsed())
    }

    fn is_answered(&self) -> bool {
        let is_issued = match self.asked.small {
            Pace::Due(due) => self.issued[0] == due.len(),
            Pace::Off | Pace::Max => true,
        };
        is_issued && self.client.small_under_way().next().is_none()
    }

    fn gives_up(&self, now: u64) -> bool {
        now > gives_up_ns(self.asked.to_ns)
    }

    /// Asks for what is due of multigets (0) or of large values (1), as far as there are
    /// connections.
    fn issue(&mut self, which: usize, now: u64, is_wanted: bool) -> Result<(), Failure> {
        let pace = [self.asked.small, self.asked.large][which];
        while is_wanted && !self.idle[which].is_empty() {
            let due_ns = match pace {
                Pace::Off => return Ok(()),
                Pace::Max => now,
                Pace::Due(due) => match due.get(self.issued[which]) {
                    Some(&at) if at <= now => at,
                    _ => return Ok(()),
                },
            };
            let Some(number) = self.idle[which].pop() else { return Ok(()) };
            match which {
                0 => self.client.ask_small(number, due_ns)?,
                _ => self.client.ask_large(number)?,
            }
            self.issued[which] += 1;
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
            record(&mut self.latencies, now.saturating_sub(due_ns));
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
