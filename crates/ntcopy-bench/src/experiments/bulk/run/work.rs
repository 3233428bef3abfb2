//! The worker: owns the memory, and carries out orders.

use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use memmap2::MmapMut;
use ntcopy::Path;

use super::calls::Call;
use super::counters::{self, Counting, Counts};
use super::lanes::{Lane, Places, Stand};
use super::matrix;
use super::message::{Order, Reply, Traffic};
use super::pages;
use super::peers::Peers;
use super::{SEED, map_memory};
use crate::experiment::LINE_BYTES;
use crate::experiments::bulk::task::{
    Action, Heat, MatrixTask, PageWay, ReadBack, Task, Walk, Way,
};
use crate::hardware::Hardware;
use crate::run::process;
use crate::run::{Failure, cpus};

/// Runs the worker until its line is closed.
///
/// Meant to be all that a hidden verb of the program does.
pub fn main() -> ExitCode {
    let mut worker = None;
    process::serve("the worker", |_, order, _| Ok(carry_out(&mut worker, order)?))
}

fn carry_out(worker: &mut Option<Work>, order: Order) -> Result<Reply, Failure> {
    let too_early = || Failure::Answer("an order before the memory is there".to_owned());
    match order {
        Order::SetUp { source_bytes, destination_bytes, huge_pages, cpus } => {
            let work = Work::new(source_bytes, destination_bytes, huge_pages, cpus)?;
            let libc = crate::c_library::Libc::detect();
            let reply = Reply::Ready {
                libc_threshold_bytes: libc.memcpy_nt_threshold_bytes,
                memset_threshold_bytes: libc.memset_nt_threshold_bytes,
                missing_peers: work.peers.missing(),
            };
            *worker = Some(work);
            Ok(reply)
        }
        Order::Cell { task, size_bytes, threads } => {
            worker.as_mut().ok_or_else(too_early)?.cell(task, size_bytes, threads)
        }
        Order::Verify { way, spoil } => worker.as_mut().ok_or_else(too_early)?.verify(&way, spoil),
        Order::Sample { way, warm_up_ns, warm_up_bytes, sample_ns } => {
            let worker = worker.as_mut().ok_or_else(too_early)?;
            worker.sample(&way, warm_up_ns, warm_up_bytes, sample_ns).map(Reply::Sample)
        }
    }
}

struct Work {
    source: MmapMut,
    destination: MmapMut,
    cpus: Vec<u32>,
    peers: Peers,
    machine: Hardware,
    task: Task,
    size: usize,
    /// Bytes of the source's memory before what is copied from.
    source_offset: usize,
    stands: Vec<Stand>,
}

#[derive(Clone, Copy)]
enum Doing {
    Copy(Call),
    Fill(Call, u8),
    Walk(MatrixTask, Walk),
    Pages(Action, ReadBack, PageWay),
}

impl Doing {
    /// Does it `calls` times; gives the path that the library chose, and the sum of what was
    /// read.
    fn run(self, lane: &mut Lane<'_>, calls: u64) -> (Option<Path>, u64) {
        match self {
            Doing::Copy(call) => (call.copies(lane, calls), 0),
            Doing::Fill(call, value) => (call.fills(lane, calls, value), 0),
            Doing::Walk(task, walk) => (None, matrix::walk(lane, task, walk, calls)),
            Doing::Pages(action, read_back, way) => {
                (None, pages::run(lane, action, read_back, way, calls))
            }
        }
    }

    /// The value, of a fill.
    fn value(self) -> Option<u8> {
        match self {
            Doing::Fill(_, value) => Some(value),
            Doing::Pages(Action::Clear, ..) => Some(0),
            Doing::Copy(_) | Doing::Walk(..) | Doing::Pages(..) => None,
        }
    }

    /// Compares what was read back with what should have been.
    fn check_read(self, lane: &mut Lane<'_>, sum: u64) -> Result<(), Failure> {
        match self {
            Doing::Pages(action, read_back, _) => pages::check_read(lane, action, read_back, sum),
            _ => Ok(()),
        }
    }
}

struct Clocked {
    begin: Instant,
    end: Instant,
    path: Option<Path>,
    events: Counts,
    /// The counts of the whole machine, in one of the threads.
    machine: Counts,
}

impl Work {
    fn new(
        source_bytes: u64,
        destination_bytes: u64,
        huge_pages: bool,
        on: Vec<u32>,
    ) -> Result<Work, Failure> {
        // That each CPU will take a thread shows here, before threads wait for each other.
        on.iter().try_for_each(|cpu| cpus::pin(*cpu))?;
        Ok(Work {
            source: map_memory(source_bytes, huge_pages, Some(SEED))?,
            destination: map_memory(destination_bytes, huge_pages, None)?,
            cpus: on,
            peers: Peers::load(),
            machine: Hardware::of_machine(),
            task: Task::Matrix(MatrixTask::Sum),
            size: 0,
            source_offset: 0,
            stands: Vec::new(),
        })
    }

    fn cell(&mut self, task: Task, size_bytes: u64, threads: u32) -> Result<Reply, Failure> {
        let (source, destination) = match task {
            Task::Copy { source, destination, .. } => (source, destination),
            Task::Fill { destination, .. } => (Heat::Hot, destination),
            Task::Matrix(_) | Task::Pages { .. } => (Heat::Hot, Heat::Hot),
        };
        self.task = task;
        self.size = usize::try_from(size_bytes).unwrap_or(usize::MAX);
        let part = |len: usize| part(len, threads as usize);
        self.source_offset = match task {
            Task::Copy { offset_bytes, .. } => offset_bytes as usize,
            _ => 0,
        };
        let source_len = self.source.len().saturating_sub(self.source_offset);
        let (from, to) = (part(source_len), part(self.destination.len()));
        let needs_source =
            !matches!(task, Task::Fill { .. } | Task::Pages { action: Action::Clear, .. });
        if to < self.size
            || (needs_source && from < self.size)
            || threads as usize > self.cpus.len()
        {
            return Err(Failure::Answer("a cell larger than the memory that was set up".into()));
        }
        let stand = Stand {
            source: Places::new(from, self.size, source),
            destination: Places::new(to, self.size, destination),
        };
        self.stands = vec![stand; threads as usize];
        Ok(Reply::Done)
    }

    fn doing(&self, name: &str) -> Result<Doing, Failure> {
        let way = self.task.way(name).map_err(|error| Failure::Answer(error.to_string()))?;
        let call = |way| {
            let (size, region) = (self.size as u64, self.destination.len() as u64);
            Call::find(way, self.task, size, region, &self.peers)
        };
        Ok(match (self.task, way) {
            (Task::Matrix(task), Way::Walk(walk)) => Doing::Walk(task, walk),
            (Task::Pages { action, read_back }, Way::Page(way)) => {
                Doing::Pages(action, read_back, way)
            }
            (Task::Fill { value, .. }, way) => Doing::Fill(call(way)?, value),
            (_, way) => Doing::Copy(call(way)?),
        })
    }

    fn lanes(&mut self) -> Vec<Lane<'_>> {
        let threads = self.stands.len();
        let (source, size) = (&self.source[self.source_offset.min(self.source.len())..], self.size);
        let offset = self.source_offset;
        let is_read_back = matches!(self.task, Task::Copy { read_back: ReadBack::All, .. });
        let (from, to) = (part(source.len(), threads), part(self.destination.len(), threads));
        let destinations = self.destination.chunks_mut(to.max(1));
        let lanes = self.stands.iter_mut().zip(destinations).enumerate();
        lanes
            .map(|(thread, (stand, destination))| Lane {
                source: &source[thread * from..(thread + 1) * from],
                source_start: (offset + thread * from) as u64,
                destination,
                stand,
                size,
                is_read_back,
            })
            .collect()
    }

    fn verify(&mut self, name: &str, spoil: bool) -> Result<Reply, Failure> {
        let doing = self.doing(name)?;
        let cpus = self.cpus.clone();
        let paths = together(self.lanes(), &cpus, |mut lane| {
            let place = lane.stale();
            let (path, sum) = doing.run(&mut lane, 1);
            if spoil {
                lane.destination[place.to] ^= 1;
            }
            let sum = if spoil { sum ^ 1 } else { sum };
            match doing {
                Doing::Walk(task, _) => matrix::verify(&mut lane, task, sum)?,
                _ => lane.verify(place, doing.value())?,
            }
            doing.check_read(&mut lane, sum)?;
            Ok(path)
        })?;
        let path = paths.into_iter().flatten().next();
        Ok(Reply::Verified { path: path.map(|path| path.to_string()) })
    }

    fn sample(
        &mut self,
        name: &str,
        warm_up_ns: u64,
        warm_up_bytes: u64,
        sample_ns: u64,
    ) -> Result<Traffic, Failure> {
        let doing = self.doing(name)?;
        let cpus = self.cpus.clone();
        let (size, threads) = (self.size as u64, self.stands.len());
        let least = (warm_up_bytes / threads as u64).div_ceil(size.max(1));
        let rates = together(self.lanes(), &cpus, |mut lane| {
            Ok(warm_up(doing, &mut lane, warm_up_ns, least))
        })?;
        let rate = rates.iter().sum::<f64>() / threads as f64;
        let calls = ((rate * sample_ns as f64) as u64).max(1);
        let (start, finish) = (Start::new(threads), Start::new(threads));
        let mut machine = std::mem::take(&mut self.machine);
        let mut one = Some(&mut machine);
        let lanes = self.lanes().into_iter().map(|lane| (lane, one.take())).collect();
        let clocked = together(lanes, &cpus, |(mut lane, machine)| {
            let counting = Counting::open(machine);
            clock(doing, &mut lane, calls, counting, &start, &finish)
        });
        self.machine = machine;
        let clocked = clocked?;
        Ok(traffic(&clocked, calls * size * threads as u64))
    }
}

/// Runs until time and bytes have passed; calls by nanosecond.
fn warm_up(doing: Doing, lane: &mut Lane<'_>, ns: u64, least_calls: u64) -> f64 {
    let begin = Instant::now();
    let (mut done, mut batch) = (0, 1);
    loop {
        doing.run(lane, batch);
        done += batch;
        let elapsed = begin.elapsed().as_nanos().max(1) as u64;
        if elapsed >= ns && done >= least_calls {
            return done as f64 / elapsed as f64;
        }
        // Batches of about a tenth of the time, so that reading the clock doesn't count.
        let a_tenth = (done as f64 / elapsed as f64 * ns as f64 / 10.0) as u64;
        batch = a_tenth.clamp(1, batch * 2);
    }
}

fn clock(
    doing: Doing,
    lane: &mut Lane<'_>,
    calls: u64,
    mut counting: Counting<'_>,
    start: &Start,
    finish: &Start,
) -> Result<Clocked, Failure> {
    let last = lane.last(calls);
    let is_matrix = matches!(doing, Doing::Walk(..));
    if !is_matrix {
        lane.spoil_last(calls, doing.value());
    }
    counting.start_of_machine();
    start.wait();
    counting.start();
    let begin = Instant::now();
    let (path, sum) = doing.run(lane, calls);
    let end = Instant::now();
    let events = counting.stop();
    // What one compares must not disturb another that still runs.
    finish.wait();
    let machine = counting.stop_of_machine();
    match doing {
        Doing::Walk(task, _) => matrix::verify(lane, task, sum)?,
        _ => lane.check(last, doing.value())?,
    }
    doing.check_read(lane, sum)?;
    Ok(Clocked { begin, end, path, events, machine })
}

fn traffic(clocked: &[Clocked], bytes: u64) -> Traffic {
    let begin = clocked.iter().map(|one| one.begin).min();
    let end = clocked.iter().map(|one| one.end).max();
    let elapsed = end.zip(begin).map_or(0, |(end, begin)| (end - begin).as_nanos() as u64);
    let events: Vec<&Counts> = clocked.iter().map(|one| &one.events).collect();
    let mut counters = counters::total(&events);
    for one in clocked {
        counters.extend(one.machine.clone());
    }
    if clocked.iter().any(|one| one.path.is_some_and(Path::is_nontemporal)) {
        counters.insert("nontemporal_bytes".to_owned(), bytes);
    }
    Traffic { bytes, elapsed_ns: elapsed.max(1), counters }
}

/// A thread's part of the bytes, in whole lines where there are several threads.
fn part(len: usize, threads: usize) -> usize {
    let line = LINE_BYTES as usize;
    if threads <= 1 { len } else { len / threads / line * line }
}

/// Threads that start together: each spins until all are there.
struct Start {
    missing: AtomicUsize,
}

impl Start {
    fn new(threads: usize) -> Start {
        Start { missing: AtomicUsize::new(threads) }
    }

    fn wait(&self) {
        self.missing.fetch_sub(1, Ordering::AcqRel);
        while self.missing.load(Ordering::Acquire) > 0 {
            std::hint::spin_loop();
        }
    }
}

/// Does it on a thread for each item, pinned to the CPU of the same number.
fn together<T: Send, R: Send>(
    items: Vec<T>,
    on: &[u32],
    work: impl Fn(T) -> Result<R, Failure> + Sync,
) -> Result<Vec<R>, Failure> {
    thread::scope(|scope| {
        let work = &work;
        let start = |(item, cpu): (T, &u32)| {
            let cpu = *cpu;
            // One that can't be pinned must not stay behind in a spin: pinning comes first for
            // all, and is the same call on CPUs that the plan has seen to be allowed.
            scope.spawn(move || {
                cpus::pin(cpu)?;
                work(item)
            })
        };
        let threads: Vec<_> = items.into_iter().zip(on).map(start).collect();
        threads
            .into_iter()
            .map(|thread| {
                let panicked = |_| Failure::Answer("a thread of it panicked".to_owned());
                thread.join().map_err(panicked)?
            })
            .collect()
    })
}
