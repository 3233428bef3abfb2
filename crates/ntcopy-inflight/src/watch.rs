//! Looks at programs again and again, at less than a hundredth of a CPU.

use std::collections::{HashMap, HashSet};
use std::io;
use std::time::{Duration, Instant};

use crate::diagnostics::Diagnostics;
use crate::follow::{Readers, Sum, sum};
use crate::processes::{self, Descriptors, Pid, Process};
use crate::sockets::{Inode, Sockets};

/// Between two samples at least.
const SHORTEST: Duration = Duration::from_millis(50);
/// So many times as long as a sample took CPU time passes until the next.
const TIMES_ITS_COST: u32 = 150;
/// Signals are looked for as often.
const SLICE: Duration = Duration::from_millis(100);

/// Processes that are told of as one.
#[derive(Debug, Clone)]
pub struct Program {
    pub name: String,
    pub processes: Vec<Process>,
}

impl Program {
    fn pids(&self) -> Vec<Pid> {
        self.processes.iter().map(|process| process.pid).collect()
    }

    fn is_there(&self) -> bool {
        self.processes.iter().any(Process::is_there)
    }
}

/// What was seen of a program.
#[derive(Debug, Clone, Default)]
pub struct Series {
    pub samples: Vec<Sum>,
    /// What its TCP connections sent between the first sample and the last, as far as they were
    /// there to be seen.
    pub tcp_sent_bytes: u64,
    /// What write(), writev() and sendfile() moved in that time, files included, send() not.
    pub written_bytes: Option<u64>,
    /// When it was found to have ended.
    pub ended_after: Option<Duration>,
    sent_by: HashMap<Inode, u64>,
    written_at_first: Option<u64>,
}

/// A look that lasted.
#[derive(Debug, Clone)]
pub struct Seen {
    /// As the programs.
    pub series: Vec<Series>,
    /// From the first sample to the last.
    pub elapsed: Duration,
    pub cpu: Duration,
    /// Families of which this kernel has no diagnostics.
    pub missing: Vec<&'static str>,
}

pub struct Watch {
    diagnostics: Diagnostics,
    pub programs: Vec<Program>,
    /// The sockets of each program; None where all of it has ended.
    own: Vec<Option<HashSet<Inode>>>,
    own_read: Reading,
    /// Those that were there when `own` was read.
    known: HashSet<Inode>,
    readers: Readers,
    readers_read: Reading,
}

/// When something was read, and what that took of a CPU.
#[derive(Debug, Clone, Copy)]
struct Reading {
    at: Instant,
    cost: Duration,
}

impl Reading {
    fn now<T>(what: impl FnOnce() -> T) -> (T, Reading) {
        let (read, cost) = costs(what);
        (read, Reading { at: Instant::now(), cost })
    }

    fn is_old(self) -> bool {
        self.at.elapsed() > self.cost * (2 * TIMES_ITS_COST)
    }
}

impl Watch {
    pub fn new(mut diagnostics: Diagnostics, programs: Vec<Program>) -> io::Result<Watch> {
        let known = diagnostics.sockets()?.inodes().collect();
        let (readers, readers_read) = Reading::now(read_readers);
        let of =
            |program: &Program| program.is_there().then(|| readers.sockets_of(&program.pids()));
        let (own, own_read) = (programs.iter().map(of).collect(), readers_read);
        Ok(Watch { diagnostics, programs, own, own_read, known, readers, readers_read })
    }

    /// Samples for a while, or until every program has ended or `is_over` says so.
    pub fn look(&mut self, lasting: Duration, is_over: &dyn Fn() -> bool) -> io::Result<Seen> {
        let (began, cpu_before) = (Instant::now(), thread_cpu());
        let mut series = vec![Series::default(); self.programs.len()];
        let mut count = 0;
        let (elapsed, missing) = loop {
            let at = began.elapsed();
            let (sampled, cost) = costs(|| self.sample(&mut series, at));
            let missing = sampled?;
            count += 1;
            let is_ended = series.iter().all(|series| series.ended_after.is_some());
            if is_ended || is_over() || at >= lasting {
                break (at, missing);
            }
            pause(until_next(cost, count).min(lasting.saturating_sub(began.elapsed())), is_over);
        };
        for (series, program) in series.iter_mut().zip(&self.programs) {
            let now = written(program);
            series.written_bytes =
                now.zip(series.written_at_first).map(|(now, first)| now.saturating_sub(first));
        }
        Ok(Seen { series, elapsed, cpu: thread_cpu() - cpu_before, missing })
    }

    fn sample(&mut self, all: &mut [Series], at: Duration) -> io::Result<Vec<&'static str>> {
        let sockets = self.diagnostics.sockets()?;
        self.find_own(&sockets);
        let mut unseen = 0;
        for ((program, series), own) in self.programs.iter().zip(&mut *all).zip(&self.own) {
            let Some(own) = own.as_ref().filter(|_| program.is_there()) else {
                series.ended_after.get_or_insert(at);
                continue;
            };
            let sum = sum(own, &program.pids(), &sockets, &self.readers);
            unseen += sum.unseen_readers;
            if series.samples.is_empty() {
                series.written_at_first = written(program);
            }
            series.samples.push(sum);
            note_tcp(series, own, &sockets);
        }
        // A reader that came meanwhile is looked for, unless that would take too much time.
        if unseen > 0 && self.readers_read.is_old() {
            (self.readers, self.readers_read) = Reading::now(read_readers);
        }
        Ok(sockets.missing)
    }

    /// Reads the programs' descriptors again where sockets came that were not there, or none came
    /// for long: a socket may be handed over. With thousands of them that takes most of a sample.
    fn find_own(&mut self, sockets: &Sockets) {
        if self.own_read.is_old() || sockets.inodes().any(|inode| !self.known.contains(&inode)) {
            let programs = &self.programs;
            let (read, own_read): (Vec<Option<Own>>, Reading) =
                Reading::now(|| programs.iter().map(descriptors_of).collect());
            let of =
                |own: &Own| own.iter().flat_map(|(_, found)| &found.sockets).copied().collect();
            self.own = read.iter().map(|own| own.as_ref().map(of)).collect();
            self.own_read = own_read;
            self.readers.renew(read.into_iter().flatten().flatten().collect());
            self.known = sockets.inodes().collect();
        }
    }
}

/// A program's processes and what they have.
type Own = Vec<(Process, Descriptors)>;

/// None where every process of it has ended.
fn descriptors_of(program: &Program) -> Option<Own> {
    let there = program.processes.iter().filter(|process| process.is_there());
    let of = |process: &Process| {
        (process.clone(), processes::descriptors(process.pid).unwrap_or_default())
    };
    let own: Own = there.map(of).collect();
    (!own.is_empty()).then_some(own)
}

fn note_tcp(series: &mut Series, own: &HashSet<Inode>, sockets: &Sockets) {
    let is_first = series.samples.len() == 1;
    let sent: HashMap<Inode, u64> = own
        .iter()
        .filter_map(|inode| Some((*inode, sockets.inet(*inode)?.tcp?.sent_bytes)))
        .collect();
    if !is_first {
        let grown = sent.iter().map(|(inode, now)| {
            now.saturating_sub(series.sent_by.get(inode).copied().unwrap_or_default())
        });
        series.tcp_sent_bytes += grown.sum::<u64>();
    }
    series.sent_by = sent;
}

fn written(program: &Program) -> Option<u64> {
    program.processes.iter().map(|process| processes::written_bytes(process.pid)).sum()
}

fn read_readers() -> Readers {
    let all = processes::all().into_iter();
    let seen = all.filter_map(|process| {
        let descriptors = processes::descriptors(process.pid).ok()?;
        (descriptors != Descriptors::default()).then_some((process, descriptors))
    });
    Readers::new(seen.collect())
}

/// Longer and shorter in turn, so that a program with a beat of its own is not seen at one point
/// of it always.
fn until_next(cost: Duration, count: u32) -> Duration {
    const GOLDEN: f64 = 0.618_033_988_749_895;
    let part = (f64::from(count) * GOLDEN).fract();
    SHORTEST.max(cost * TIMES_ITS_COST).mul_f64(0.75 + part / 2.0)
}

fn pause(time: Duration, is_over: &dyn Fn() -> bool) {
    let until = Instant::now() + time;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() || is_over() {
            return;
        }
        std::thread::sleep(left.min(SLICE));
    }
}

fn costs<T>(what: impl FnOnce() -> T) -> (T, Duration) {
    let before = thread_cpu();
    let done = what();
    (done, thread_cpu() - before)
}

/// What this thread took, the kernel's part included.
fn thread_cpu() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // By the C library: rustix wants more of a vDSO than a user-mode kernel has.
    // SAFETY: the pointer is to a local, which the call writes.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    debug_assert_eq!(failed, 0, "the clock is there since Linux 2.6.12");
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or_default())
}

/// A percentile of fewer values would be the largest of them.
const ENOUGH_FOR_P99: usize = 100;

/// Nearest-rank percentiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Percentiles {
    pub p50: u64,
    pub p90: u64,
    /// None of fewer than a hundred values.
    pub p99: Option<u64>,
    pub max: u64,
}

impl Percentiles {
    /// None of nothing.
    pub fn of(values: impl IntoIterator<Item = u64>) -> Option<Percentiles> {
        let mut sorted: Vec<u64> = values.into_iter().collect();
        sorted.sort_unstable();
        let at = |hundredths: usize| {
            let rank = (sorted.len() * hundredths).div_ceil(100);
            sorted.get(rank.saturating_sub(1)).copied()
        };
        let p99 = at(99).filter(|_| sorted.len() >= ENOUGH_FOR_P99);
        Some(Percentiles { p50: at(50)?, p90: at(90)?, p99, max: at(100)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_were_seen() {
        assert_eq!(Percentiles::of([]), None);
        let one = Percentiles { p50: 7, p90: 7, p99: None, max: 7 };
        assert_eq!(Percentiles::of([7]), Some(one));
        assert_eq!(Percentiles::of(1..=99).unwrap().p99, None);
        let all = Percentiles::of((1..=200).rev()).unwrap();
        assert_eq!((all.p50, all.p90, all.p99, all.max), (100, 180, Some(198), 200));
    }

    #[test]
    fn the_next_sample_is_a_hundred_times_its_cost_away_at_least_on_average() {
        let mean = |cost| (1..1000).map(|n| until_next(cost, n)).sum::<Duration>() / 999;
        assert!(mean(Duration::from_millis(30)) > Duration::from_millis(3000));
        assert!(mean(Duration::ZERO) >= SHORTEST - Duration::from_millis(1));
    }
}
