//! Load: without a pause, or on a schedule.

use std::collections::VecDeque;
use std::time::Duration;

use hdrhistogram::Histogram;

use super::client::{Look, SocketClient};
use super::schedule::Schedule;
use crate::run::Failure;

/// Significant digits that the histogram keeps of a latency.
const DIGITS: u8 = 3;
/// After the schedule's end, so many times its length, and this much more, is waited for answers.
const GRACE: u64 = 2;
const GRACE_NS: u64 = 1_000_000_000;

/// CPU time of the processes so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuNs {
    /// Of this process.
    pub client: u64,
    /// Of the proxy and what it started.
    pub proxy: u64,
    /// Of the backend and what it started.
    pub backend: u64,
}

impl CpuNs {
    fn since(self, before: CpuNs) -> CpuNs {
        CpuNs {
            client: self.client.saturating_sub(before.client),
            proxy: self.proxy.saturating_sub(before.proxy),
            backend: self.backend.saturating_sub(before.backend),
        }
    }
}

/// Reads the clocks.
pub type Meter<'a> = &'a dyn Fn() -> Result<CpuNs, Failure>;

/// How long answers took.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answers {
    /// Nanoseconds from when a request was due to the last byte of its answer (to three digits),
    /// and how many took so long, ascending.
    pub latencies: Vec<(u64, u64)>,
    /// Of these, how many were not complete when no more was waited for; they are counted with
    /// how long they had taken until then.
    pub unanswered: u64,
}

/// What went through while the clock ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    /// Bytes of bodies.
    pub bytes: u64,
    /// Nanoseconds.
    pub elapsed_ns: u64,
    /// CPU time meanwhile.
    pub cpu: CpuNs,
    /// Answers meanwhile.
    pub answered: u64,
    /// Bytes of bodies of the whole run, before and after the clock ran included: what the
    /// kernel's counters are held against.
    pub all_bytes: u64,
    /// Of a schedule: how long the answers took.
    pub answers: Option<Answers>,
}

/// Where a window began.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark {
    at_ns: u64,
    bytes: u64,
    answered: u64,
    cpu: CpuNs,
}

/// What has come so far.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) bytes: u64,
    pub(super) answered: u64,
}

impl Tally {
    pub(super) fn mark(&self, at_ns: u64, meter: Meter<'_>) -> Result<Mark, Failure> {
        Ok(Mark { at_ns, bytes: self.bytes, answered: self.answered, cpu: meter()? })
    }

    pub(super) fn window(&self, from: Mark, to: Mark, answers: Option<Answers>) -> Window {
        Window {
            bytes: to.bytes - from.bytes,
            elapsed_ns: (to.at_ns - from.at_ns).max(1),
            cpu: to.cpu.since(from.cpu),
            answered: to.answered - from.answered,
            all_bytes: self.bytes,
            answers,
        }
    }
}

impl SocketClient {
    /// Every connection asks anew as soon as it is answered. The clock runs over the middle, when
    /// all of them are busy; at the end what is under way is taken, unclocked.
    ///
    /// # Errors
    ///
    /// What went wrong.
    pub fn closed(
        &mut self,
        warm_up: Duration,
        clocked: Duration,
        meter: Meter<'_>,
    ) -> Result<Window, Failure> {
        self.revive()?;
        let mut look = Look::discarding();
        let begin_ns = self.ns();
        let opens_ns = begin_ns + ns(warm_up);
        let mut tally = Tally::default();
        let (mut opened, mut closed) = (None, None);
        let mut asking = self.conns.len();
        for number in 0..asking {
            self.ask(number, 0)?;
        }
        while asking > 0 {
            let edge_ns = match (opened, closed) {
                (None, _) => opens_ns,
                (Some(Mark { at_ns, .. }), None) => at_ns + ns(clocked),
                (Some(_), Some(_)) => u64::MAX,
            };
            let now = self.ns();
            let ready = self.wait(Duration::from_nanos(edge_ns.saturating_sub(now).max(1)))?;
            for event in 0..ready {
                let (number, step) = self.ready(event, &mut look)?;
                tally.bytes += step.bytes;
                tally.answered += u64::from(step.answered);
                match (step.answered, closed.is_none()) {
                    (true, true) => self.ask(number, 0)?,
                    (true, false) => asking -= 1,
                    (false, _) => {}
                }
            }
            let now = self.ns();
            if ready > 0 {
                self.heard(now);
            }
            if opened.is_none() && now >= opens_ns {
                opened = Some(tally.mark(now, meter)?);
            } else if closed.is_none() && now >= edge_ns {
                closed = Some(tally.mark(now, meter)?);
            }
        }
        match (opened, closed) {
            (Some(opened), Some(closed)) => Ok(tally.window(opened, closed, None)),
            _ => Err(Failure::Answer("no connection asked to the end".to_owned())),
        }
    }

    /// Requests go out when they are due, on whatever connection has nothing to do, or as soon as
    /// one has; how long an answer took counts from when the request was due.
    ///
    /// # Errors
    ///
    /// What went wrong.
    pub fn open(&mut self, schedule: &Schedule, meter: Meter<'_>) -> Result<Window, Failure> {
        self.revive()?;
        precise_timers()?;
        let mut run = OpenRun::new(self, schedule)?;
        let gives_up_ns = gives_up_ns(schedule);
        let mut opened = None;
        loop {
            let now = run.now();
            if opened.is_none() && now >= schedule.counted_from_ns {
                opened = Some(run.tally.mark(now, meter)?);
            }
            run.issue(now)?;
            if run.is_over() || now > gives_up_ns {
                break;
            }
            run.take(opened.is_none())?;
        }
        let now = run.now();
        let closed = run.tally.mark(now, meter)?;
        let answers = run.answers(now);
        let opened = opened.unwrap_or(closed);
        Ok(run.tally.window(opened, closed, Some(answers)))
    }
}

/// A schedule being kept.
struct OpenRun<'a> {
    client: &'a mut SocketClient,
    schedule: &'a Schedule,
    look: Look,
    begin_ns: u64,
    /// Requests of the schedule that went out.
    issued: usize,
    /// Connections with nothing to do, that which waits longest first.
    idle: VecDeque<usize>,
    latencies: Histogram<u64>,
    tally: Tally,
}

impl<'a> OpenRun<'a> {
    fn new(client: &'a mut SocketClient, schedule: &'a Schedule) -> Result<OpenRun<'a>, Failure> {
        let latencies = histogram()?;
        let idle = (0..client.conns.len()).collect();
        let begin_ns = client.ns();
        Ok(OpenRun {
            client,
            schedule,
            look: Look::discarding(),
            begin_ns,
            issued: 0,
            idle,
            latencies,
            tally: Tally::default(),
        })
    }

    /// Nanoseconds since the schedule began.
    fn now(&self) -> u64 {
        self.client.ns() - self.begin_ns
    }

    fn is_over(&self) -> bool {
        self.issued == self.schedule.due_ns.len() && self.idle.len() == self.client.conns.len()
    }

    /// Sends what is due, as far as there are connections.
    fn issue(&mut self, now: u64) -> Result<(), Failure> {
        while let Some(&due) = self.schedule.due_ns.get(self.issued)
            && due <= now
            && let Some(number) = self.idle.pop_front()
        {
            self.client.ask(number, due)?;
            self.issued += 1;
        }
        Ok(())
    }

    /// Waits for an answer or until the next request is due, and takes what there is.
    fn take(&mut self, is_warming_up: bool) -> Result<(), Failure> {
        let now = self.now();
        let next = self.schedule.due_ns.get(self.issued).filter(|_| !self.idle.is_empty());
        let begins = Some(&self.schedule.counted_from_ns).filter(|_| is_warming_up);
        let until = next.into_iter().chain(begins).min();
        let at_most =
            until.map_or(Duration::MAX, |at| Duration::from_nanos(at.saturating_sub(now).max(1)));
        let ready = self.client.wait(at_most)?;
        for event in 0..ready {
            let (number, step) = self.client.ready(event, &mut self.look)?;
            self.tally.bytes += step.bytes;
            if step.answered {
                self.tally.answered += 1;
                let due = self.client.conns[number].due_ns;
                let now = self.now();
                self.record(due, now);
                self.idle.push_back(number);
            }
        }
        if ready > 0 {
            let now = self.client.ns();
            self.client.heard(now);
        }
        Ok(())
    }

    fn record(&mut self, due: u64, now: u64) {
        if due >= self.schedule.counted_from_ns {
            // A histogram that grows by itself takes every number.
            let _ = self.latencies.record(now.saturating_sub(due).max(1));
        }
    }

    /// The histogram; what was due and is not answered counts with its time until now.
    fn answers(&mut self, now: u64) -> Answers {
        let under_way = self.client.conns.iter().filter(|conn| !conn.is_idle());
        let mut late: Vec<u64> = under_way.map(|conn| conn.due_ns).collect();
        late.extend(&self.schedule.due_ns[self.issued..]);
        late.retain(|due| *due >= self.schedule.counted_from_ns);
        for due in &late {
            self.record(*due, now);
        }
        take_answers(&self.latencies, late.len() as u64)
    }
}

/// After so long no answer is waited for any more.
pub(super) fn gives_up_ns(schedule: &Schedule) -> u64 {
    schedule.end_ns * GRACE + GRACE_NS
}

/// An empty histogram.
pub(super) fn histogram() -> Result<Histogram<u64>, Failure> {
    Histogram::new(DIGITS).map_err(|error| Failure::Answer(format!("no histogram: {error}")))
}

/// What a histogram holds.
pub(super) fn take_answers(latencies: &Histogram<u64>, unanswered: u64) -> Answers {
    let recorded = latencies.iter_recorded();
    let steps = recorded.map(|step| (step.value_iterated_to(), step.count_at_value()));
    Answers { latencies: steps.collect(), unanswered }
}

/// Timers of this thread fire when they are due, not up to 50 us later with others.
fn precise_timers() -> Result<(), Failure> {
    rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1))
        .map_err(Failure::os("cannot set the timer slack"))
}

fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
#[path = "load_tests.rs"]
mod tests;
