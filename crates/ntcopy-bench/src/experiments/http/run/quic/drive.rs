//! One run of a client over QUIC.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::{Duration, Instant};

use bytes::Buf as _;
use hdrhistogram::Histogram;
use rustix::fd::OwnedFd;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::task::{JoinSet, LocalSet};

use super::{Asker, QuicClient};
use crate::experiments::http::run::body_reader::BodyReader;
use crate::experiments::http::run::load::{Meter, Window};
use crate::run::load::Tally;
use crate::run::schedule::{Answers, Schedule, gives_up_ns, histogram, take_answers};
use crate::run::{Failure, Stop};

/// A signal is looked for this often.
const TURN: Duration = Duration::from_millis(100);

/// What all connections of a run share.
struct Shared {
    paths: Vec<String>,
    next: Cell<u64>,
    object_bytes: u64,
    bytes: Cell<u64>,
    answered: Cell<u64>,
    is_closing: Cell<bool>,
    look: RefCell<BodyReader>,
    patience: Duration,
    begun: Instant,
    stop: Stop,
}

/// A run.
pub struct Drive {
    shared: Rc<Shared>,
    conns: Vec<Asker>,
}

/// A task's end: its connection's number, and when its request was due.
type Ended = Result<(usize, u64), Failure>;

impl Drive {
    /// Over the connections of a client, from the object on that is next.
    pub fn new(client: &QuicClient, look: BodyReader) -> Drive {
        let shared = Shared {
            paths: client.paths.clone(),
            next: Cell::new(client.next),
            object_bytes: client.object_bytes,
            bytes: Cell::new(0),
            answered: Cell::new(0),
            is_closing: Cell::new(false),
            look: RefCell::new(look),
            patience: client.target.patience,
            begun: Instant::now(),
            stop: client.stop.clone(),
        };
        Drive { shared: Rc::new(shared), conns: client.conns.clone() }
    }

    /// The object that is next.
    pub fn next(&self) -> u64 {
        self.shared.next.get()
    }

    /// Asks for the next objects, over all connections.
    pub async fn check(&mut self, objects: u64) -> Result<u64, Failure> {
        let left = Rc::new(Cell::new(objects));
        let local = LocalSet::new();
        let mut tasks = JoinSet::new();
        for (number, conn) in self.conns.iter().cloned().enumerate() {
            let (shared, left) = (Rc::clone(&self.shared), Rc::clone(&left));
            tasks.spawn_local_on(
                async move {
                    while left.get() > 0 {
                        left.set(left.get() - 1);
                        shared.exchange(&conn, number).await?;
                    }
                    Ok((number, 0))
                },
                &local,
            );
        }
        local.run_until(self.shared.ended(&mut tasks)).await?;
        Ok(self.shared.bytes.get())
    }

    /// The same as [`super::QuicClient::closed`].
    pub async fn closed(
        &mut self,
        warm_up: Duration,
        clocked: Duration,
        meter: Meter<'_>,
    ) -> Result<Window, Failure> {
        let local = LocalSet::new();
        let mut tasks: JoinSet<Ended> = JoinSet::new();
        for (number, conn) in self.conns.iter().cloned().enumerate() {
            let shared = Rc::clone(&self.shared);
            tasks.spawn_local_on(
                async move {
                    while !shared.is_closing.get() {
                        shared.exchange(&conn, number).await?;
                    }
                    Ok((number, 0))
                },
                &local,
            );
        }
        let shared = Rc::clone(&self.shared);
        let run = async {
            shared.pause(warm_up, &mut tasks).await?;
            let opened = shared.tally().begin(|| shared.ns(), meter)?;
            shared.pause(clocked, &mut tasks).await?;
            let closed = shared.tally().end(shared.ns(), meter)?;
            shared.is_closing.set(true);
            shared.ended(&mut tasks).await?;
            Ok(shared.tally().window(opened, closed, None))
        };
        local.run_until(run).await
    }

    /// The same as [`super::QuicClient::open`].
    pub async fn open(&mut self, schedule: &Schedule, meter: Meter<'_>) -> Result<Window, Failure> {
        let local = LocalSet::new();
        local.run_until(self.keep(schedule, meter)).await
    }

    /// Keeps a schedule.
    async fn keep(&self, schedule: &Schedule, meter: Meter<'_>) -> Result<Window, Failure> {
        let shared = &self.shared;
        let mut timer = Timer::new()?;
        let mut tasks: JoinSet<Ended> = JoinSet::new();
        let mut idle: VecDeque<usize> = (0..self.conns.len()).collect();
        let mut latencies = histogram()?;
        let mut under_way: Vec<Option<u64>> = vec![None; self.conns.len()];
        let (mut issued, mut opened) = (0, None);
        loop {
            shared.stop.check()?;
            let now = shared.ns();
            if opened.is_none() && now >= schedule.counted_from_ns {
                opened = Some(shared.tally().begin(|| shared.ns(), meter)?);
            }
            while let Some(&due) = schedule.due_ns.get(issued)
                && due <= now
                && let Some(number) = idle.pop_front()
            {
                let (conn, shared) = (self.conns[number].clone(), Rc::clone(shared));
                tasks.spawn_local(async move {
                    shared.exchange(&conn, number).await?;
                    Ok((number, shared.ns()))
                });
                under_way[number] = Some(due);
                issued += 1;
            }
            let is_over = issued == schedule.due_ns.len() && tasks.is_empty();
            if is_over || now > gives_up_ns(schedule) {
                break;
            }
            let next = schedule.due_ns.get(issued).filter(|_| !idle.is_empty());
            let begins = Some(&schedule.counted_from_ns).filter(|_| opened.is_none());
            let until = next.into_iter().chain(begins).min().copied();
            let at_most = until.map_or(TURN, |at| Duration::from_nanos(at.saturating_sub(now)));
            tokio::select! {
                Some(ended) = tasks.join_next() => {
                    let (number, at) = whole(ended)?;
                    if let Some(due) = under_way[number].take() {
                        record(&mut latencies, schedule, due, at);
                    }
                    idle.push_back(number);
                }
                waited = timer.wait(at_most.min(TURN)) => waited?,
            }
        }
        let now = shared.ns();
        let closed = shared.tally().end(now, meter)?;
        let mut late: Vec<u64> = under_way.into_iter().flatten().collect();
        late.extend(&schedule.due_ns[issued..]);
        late.retain(|due| *due >= schedule.counted_from_ns);
        late.iter().for_each(|due| record(&mut latencies, schedule, *due, now));
        let answers: Answers = take_answers(&latencies, late.len() as u64);
        let opened = opened.unwrap_or_else(|| closed.clone());
        Ok(shared.tally().window(opened, closed, Some(answers)))
    }
}

fn record(latencies: &mut Histogram<u64>, schedule: &Schedule, due: u64, at: u64) {
    if due >= schedule.counted_from_ns {
        // A histogram that grows by itself takes every number.
        let _ = latencies.record(at.saturating_sub(due).max(1));
    }
}

impl Shared {
    fn ns(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn tally(&self) -> Tally {
        Tally { bytes: self.bytes.get(), answered: self.answered.get() }
    }

    /// Waits for `time`, or until a connection fails.
    async fn pause(&self, time: Duration, tasks: &mut JoinSet<Ended>) -> Result<(), Failure> {
        let begun = Instant::now();
        while begun.elapsed() < time {
            self.stop.check()?;
            tokio::select! {
                Some(ended) = tasks.join_next() => { whole(ended)?; }
                () = tokio::time::sleep((time - begun.elapsed().min(time)).min(TURN)) => {}
            }
        }
        Ok(())
    }

    /// Waits until all connections have ended, or one failed.
    async fn ended(&self, tasks: &mut JoinSet<Ended>) -> Result<(), Failure> {
        while !tasks.is_empty() {
            self.stop.check()?;
            tokio::select! {
                Some(ended) = tasks.join_next() => { whole(ended)?; }
                () = tokio::time::sleep(TURN) => {}
            }
        }
        Ok(())
    }

    /// The next object, asked for and taken.
    async fn exchange(&self, conn: &Asker, number: usize) -> Result<(), Failure> {
        let object = self.next.get();
        self.next.set((object + 1) % self.paths.len() as u64);
        match tokio::time::timeout(self.patience, self.take(conn, number, object)).await {
            Ok(taken) => taken,
            Err(_) => {
                let what = format!("no answer came for {} s", self.patience.as_secs());
                Err(Failure::Answer(what))
            }
        }
    }

    async fn take(&self, conn: &Asker, number: usize, object: u64) -> Result<(), Failure> {
        let failed = |error: h3::error::StreamError| {
            Failure::Answer(format!("the answer over HTTP/3: {error}"))
        };
        let path = &self.paths[object as usize];
        let request = http::Request::get(format!("https://{}{path}", super::NAME)).body(());
        let request = request.map_err(|error| Failure::Answer(error.to_string()))?;
        let mut stream = conn.clone().send_request(request).await.map_err(failed)?;
        stream.finish().await.map_err(failed)?;
        let head = stream.recv_response().await.map_err(failed)?;
        if head.status() != http::StatusCode::OK {
            return Err(Failure::Answer(format!("an answer of status {}", head.status())));
        }
        let mut at = 0;
        while let Some(mut data) = stream.recv_data().await.map_err(failed)? {
            while data.has_remaining() {
                let piece = data.chunk();
                let bytes = piece.len();
                let mut look = self.look.borrow_mut();
                look.compare_piece(number as u32, object, at, piece)?;
                at += bytes as u64;
                self.bytes.set(self.bytes.get() + bytes as u64);
                drop(look);
                data.advance(bytes);
            }
        }
        if at != self.object_bytes {
            let due = self.object_bytes;
            return Err(Failure::Answer(format!("a body of {at} bytes, where {due} are due")));
        }
        self.answered.set(self.answered.get() + 1);
        Ok(())
    }
}

/// What a task came to. One that panicked is a mistake of ours.
fn whole(ended: Result<Ended, tokio::task::JoinError>) -> Ended {
    ended.unwrap_or_else(|error| Err(Failure::Answer(format!("a connection's task: {error}"))))
}

/// A timer to the nanosecond: tokio's own are rounded up to a thousandth of a second.
struct Timer(AsyncFd<OwnedFd>);

impl Timer {
    /// Within a runtime.
    fn new() -> Result<Timer, Failure> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let fd = timerfd_create(TimerfdClockId::Monotonic, flags)
            .map_err(Failure::os("cannot make a timer"))?;
        // SAFETY: the descriptor is owned by what watches it: it stays open, and the same, until
        // it is watched no more.
        let fd = unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }
            .map_err(|error| Failure::io("cannot watch a timer")(error.into()))?;
        Ok(Timer(fd))
    }

    /// Waits until `time` has passed.
    async fn wait(&mut self, time: Duration) -> Result<(), Failure> {
        if time.is_zero() {
            return Ok(());
        }
        let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
        let value = Timespec {
            tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: time.subsec_nanos().into(),
        };
        let once = Itimerspec { it_interval: zero, it_value: value };
        timerfd_settime(self.0.get_ref(), TimerfdTimerFlags::empty(), &once)
            .map_err(Failure::os("cannot set a timer"))?;
        loop {
            let mut guard =
                self.0.readable().await.map_err(Failure::io("cannot wait for a timer"))?;
            let read = guard.try_io(|fd| {
                rustix::io::read(fd.get_ref(), &mut [0; 8]).map_err(std::io::Error::from)
            });
            match read {
                Ok(Ok(_)) => return Ok(()),
                Ok(Err(error)) => return Err(Failure::io("cannot read a timer")(error)),
                // Not yet, after all.
                Err(_) => {}
            }
        }
    }
}
