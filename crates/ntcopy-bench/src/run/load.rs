//! Load: without a pause, or on a schedule, whatever it is that is asked.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use hdrhistogram::Histogram;

use super::meter::{CpuNs, Meter, cpu_since};
use super::schedule::{
    Answers, Schedule, gives_up_ns, histogram, precise_timers, record, take_answers,
};
use super::{Failure, TURN, ns};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window<const N: usize> {
    pub bytes: u64,
    pub elapsed_ns: u64,
    pub cpu: CpuNs<N>,
    /// What the hardware counted meanwhile.
    pub events: BTreeMap<String, u64>,
    pub answered: u64,
    /// Bytes of the whole run, before and after the clock ran included: what the kernel's
    /// counters are held against.
    pub all_bytes: u64,
    /// How long the answers took: those of a schedule, or where round trips were timed.
    pub answers: Option<Answers>,
}

impl<const N: usize> Window<N> {
    /// Whether everything was answered that was asked.
    pub fn is_whole(&self) -> bool {
        self.answers.as_ref().is_none_or(|answers| answers.unanswered == 0)
    }
}

/// Where a window began, or where it ended.
#[derive(Debug, Clone)]
pub struct Mark<const N: usize> {
    at_ns: u64,
    bytes: u64,
    answered: u64,
    cpu: CpuNs<N>,
    events: BTreeMap<String, u64>,
}

#[derive(Debug, Default)]
pub struct Tally {
    pub bytes: u64,
    pub answered: u64,
}

impl Tally {
    /// The window begins; its clock is read when the counters are on.
    pub fn begin<const N: usize>(
        &self,
        clock_ns: impl Fn() -> u64,
        meter: Meter<'_, N>,
    ) -> Result<Mark<N>, Failure> {
        let (cpu, events) = (meter.start()?, BTreeMap::new());
        Ok(Mark { at_ns: clock_ns(), bytes: self.bytes, answered: self.answered, cpu, events })
    }

    pub fn end<const N: usize>(&self, at_ns: u64, meter: Meter<'_, N>) -> Result<Mark<N>, Failure> {
        let (cpu, events) = meter.stop()?;
        Ok(Mark { at_ns, bytes: self.bytes, answered: self.answered, cpu, events })
    }

    pub fn window<const N: usize>(
        &self,
        from: Mark<N>,
        to: Mark<N>,
        answers: Option<Answers>,
    ) -> Window<N> {
        Window {
            bytes: to.bytes - from.bytes,
            elapsed_ns: (to.at_ns - from.at_ns).max(1),
            cpu: cpu_since(to.cpu, from.cpu),
            events: to.events,
            answered: to.answered - from.answered,
            all_bytes: self.bytes,
            answers,
        }
    }
}

/// What reading from a connection came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Step {
    pub bytes: u64,
    pub answered: bool,
}

/// Connections over which something can be asked, one thing at a time over each.
pub trait Asks {
    fn connections(&self) -> usize;
    /// Nanoseconds on the clock of those that ask.
    fn ns(&self) -> u64;
    /// Asks over a connection that waits for nothing.
    fn ask(&mut self, number: usize, due_ns: u64) -> Result<(), Failure>;
    /// Waits until a connection is ready, or `at_most` is over, and gives how many are.
    fn wait(&mut self, at_most: Duration) -> Result<usize, Failure>;
    /// Goes on with one of those that are ready, and gives its number.
    fn ready(&mut self, event: usize) -> Result<(usize, Step), Failure>;
    fn heard(&mut self, at_ns: u64);
    fn due_ns(&self, number: usize) -> u64;
    fn is_idle(&self, number: usize) -> bool;
}

/// Asks so often, over all connections, and waits until all is answered; gives the bytes that came.
pub fn every<A: Asks>(asks: &mut A, times: u64) -> Result<u64, Failure> {
    let (mut asked, mut answered, mut bytes) = (0, 0, 0);
    for number in 0..asks.connections() {
        if asked < times {
            asks.ask(number, 0)?;
            asked += 1;
        }
    }
    while answered < times {
        for event in 0..asks.wait(TURN)? {
            let (number, step) = asks.ready(event)?;
            bytes += step.bytes;
            answered += u64::from(step.answered);
            if step.answered && asked < times {
                asks.ask(number, 0)?;
                asked += 1;
            }
        }
        asks.heard(asks.ns());
    }
    Ok(bytes)
}

/// Every connection asks anew as soon as it is answered. The clock runs over the middle, when all
/// of them are busy; at the end what is under way is taken, unclocked.
///
/// `times_answers`: a clock is read for each answer, and how long each took is kept.
pub fn closed<A: Asks, const N: usize>(
    asks: &mut A,
    warm_up: Duration,
    clocked: Duration,
    times_answers: bool,
    meter: Meter<'_, N>,
) -> Result<Window<N>, Failure> {
    let opens_ns = asks.ns() + ns(warm_up);
    let mut tally = Tally::default();
    let mut latencies = times_answers.then(histogram).transpose()?;
    let (mut opened, mut closed) = (None::<Mark<N>>, None::<Mark<N>>);
    let mut asking = asks.connections();
    let clock = |asks: &A| if times_answers { asks.ns() } else { 0 };
    for number in 0..asking {
        let now = clock(asks);
        asks.ask(number, now)?;
    }
    while asking > 0 {
        let edge_ns = match (&opened, &closed) {
            (None, _) => opens_ns,
            (Some(opened), None) => opened.at_ns + ns(clocked),
            (Some(_), Some(_)) => u64::MAX,
        };
        let now = asks.ns();
        let ready = asks.wait(Duration::from_nanos(edge_ns.saturating_sub(now).max(1)))?;
        for event in 0..ready {
            let (number, step) = asks.ready(event)?;
            tally.bytes += step.bytes;
            if !step.answered {
                continue;
            }
            tally.answered += 1;
            let now = clock(asks);
            if let Some(latencies) = &mut latencies
                && opened.is_some()
                && closed.is_none()
            {
                record(latencies, now.saturating_sub(asks.due_ns(number)));
            }
            match closed {
                None => asks.ask(number, now)?,
                Some(_) => asking -= 1,
            }
        }
        let now = asks.ns();
        if ready > 0 {
            asks.heard(now);
        }
        if opened.is_none() && now >= opens_ns {
            opened = Some(tally.begin(|| asks.ns(), meter)?);
        } else if closed.is_none() && now >= edge_ns {
            closed = Some(tally.end(now, meter)?);
        }
    }
    let answers = latencies.map(|latencies| take_answers(&latencies, 0));
    match (opened, closed) {
        (Some(opened), Some(closed)) => Ok(tally.window(opened, closed, answers)),
        _ => Err(Failure::Answer("no connection asked to the end".to_owned())),
    }
}

/// Requests go out when they are due, on whatever connection has nothing to do, or as soon as one
/// has; how long an answer took counts from when the request was due.
pub fn open<A: Asks, const N: usize>(
    asks: &mut A,
    schedule: &Schedule,
    meter: Meter<'_, N>,
) -> Result<Window<N>, Failure> {
    precise_timers()?;
    let mut run = OpenRun::new(asks, schedule)?;
    let gives_up_ns = gives_up_ns(schedule.end_ns);
    let mut opened = None;
    loop {
        let now = run.now();
        if opened.is_none() && now >= schedule.counted_from_ns {
            opened = Some(run.tally.begin(|| run.now(), meter)?);
        }
        run.issue(now)?;
        if run.is_over() || now > gives_up_ns {
            break;
        }
        run.take(opened.is_none())?;
    }
    let now = run.now();
    let closed = run.tally.end(now, meter)?;
    let answers = run.answers(now);
    let opened = opened.unwrap_or_else(|| closed.clone());
    Ok(run.tally.window(opened, closed, Some(answers)))
}

struct OpenRun<'a, A> {
    asks: &'a mut A,
    schedule: &'a Schedule,
    begin_ns: u64,
    /// Requests of the schedule that went out.
    issued: usize,
    /// Connections with nothing to do, that which waits longest first.
    idle: VecDeque<usize>,
    latencies: Histogram<u64>,
    tally: Tally,
}

impl<'a, A: Asks> OpenRun<'a, A> {
    fn new(asks: &'a mut A, schedule: &'a Schedule) -> Result<OpenRun<'a, A>, Failure> {
        let latencies = histogram()?;
        let idle = (0..asks.connections()).collect();
        let begin_ns = asks.ns();
        let tally = Tally::default();
        Ok(OpenRun { asks, schedule, begin_ns, issued: 0, idle, latencies, tally })
    }

    fn now(&self) -> u64 {
        self.asks.ns() - self.begin_ns
    }

    fn is_over(&self) -> bool {
        self.issued == self.schedule.due_ns.len() && self.idle.len() == self.asks.connections()
    }

    /// Sends what is due, as far as there are connections.
    fn issue(&mut self, now: u64) -> Result<(), Failure> {
        while let Some(&due) = self.schedule.due_ns.get(self.issued)
            && due <= now
            && let Some(number) = self.idle.pop_front()
        {
            self.asks.ask(number, due)?;
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
        let ready = self.asks.wait(at_most)?;
        for event in 0..ready {
            let (number, step) = self.asks.ready(event)?;
            self.tally.bytes += step.bytes;
            if step.answered {
                self.tally.answered += 1;
                let due = self.asks.due_ns(number);
                let now = self.now();
                self.record(due, now);
                self.idle.push_back(number);
            }
        }
        if ready > 0 {
            let now = self.asks.ns();
            self.asks.heard(now);
        }
        Ok(())
    }

    fn record(&mut self, due: u64, now: u64) {
        if due >= self.schedule.counted_from_ns {
            record(&mut self.latencies, now.saturating_sub(due));
        }
    }

    /// The histogram; what was due and is not answered counts with its time until now.
    fn answers(&mut self, now: u64) -> Answers {
        let under_way = (0..self.asks.connections()).filter(|number| !self.asks.is_idle(*number));
        let mut late: Vec<u64> = under_way.map(|number| self.asks.due_ns(number)).collect();
        late.extend(&self.schedule.due_ns[self.issued..]);
        late.retain(|due| *due >= self.schedule.counted_from_ns);
        for due in &late {
            self.record(*due, now);
        }
        take_answers(&self.latencies, late.len() as u64)
    }
}
