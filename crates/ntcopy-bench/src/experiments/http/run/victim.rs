//! A victim on the backend's CPU: what do the backend's sends leave of a hot set?
//!
//! It is a thread of this program, not of the backend. For the caches that is the same: they know
//! physical lines and no processes, and the backend's copies go through those of the CPU that both
//! are on. What a switch between processes costs the victim, it costs in every mode.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::stack::CpuNs;
use crate::experiments::http::plan::HotSetPlan;
use crate::run::cpu_clock::of_this_thread_ns;
use crate::run::hot_set::HotSet;
use crate::run::schedule::precise_timers;
use crate::run::{Failure, Stop, cpus};

/// A signal is looked for this often at least.
const TURN: Duration = Duration::from_millis(50);

/// A hot set, and how it is walked.
pub struct Victim {
    hot_set: HotSet,
    every: Duration,
    cpu: u32,
}

/// One walk: when it began, and its nanoseconds.
type Walk = (Instant, u64);

/// What the walking thread and the one that asks know of each other.
#[derive(Default)]
struct Shared {
    is_over: AtomicBool,
    /// CPU time of the walking thread so far.
    cpu_ns: AtomicU64,
}

pub struct Walking<'a> {
    shared: &'a Shared,
    /// When the clocks were read: at the window's beginning and at its end.
    marks: RefCell<Vec<Instant>>,
}

impl Walking<'_> {
    /// Notes that a window begins or ends.
    fn mark(&self) {
        self.marks.borrow_mut().push(Instant::now());
    }

    /// The same, of a window that CPU time is taken of as well. The victim is a part of this
    /// process, but not of the client: its time goes, but for that of a walk under way.
    pub fn read(&self, cpu: CpuNs) -> CpuNs {
        self.mark();
        let walking = self.shared.cpu_ns.load(Ordering::Relaxed);
        CpuNs { client: cpu.client.saturating_sub(walking), ..cpu }
    }
}

impl Victim {
    pub fn new(plan: &HotSetPlan) -> Result<Victim, Failure> {
        let HotSetPlan { bytes, every, cpu } = *plan;
        Ok(Victim { hot_set: HotSet::new(bytes)?, every, cpu })
    }

    /// Walks while something else is done, which marks one window. Gives what came of that, and
    /// the nanoseconds of each walk that lay in the window.
    pub fn beside<T>(
        &self,
        what: impl FnOnce(&Walking<'_>) -> Result<T, Failure>,
    ) -> Result<(T, Vec<u64>), Failure> {
        let shared = Shared::default();
        let (done, marks, walks) = thread::scope(|scope| {
            let thread = scope.spawn(|| self.walk(&shared));
            let walking = Walking { shared: &shared, marks: RefCell::default() };
            // Also where what is done panics: the scope waits for the thread.
            let over = Over(&shared.is_over);
            let done = what(&walking);
            drop(over);
            let walks = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            (done, walking.marks.into_inner(), walks)
        });
        let done = done?;
        Ok((done, in_window(&walks?, &marks)))
    }

    /// Walks with no other process at work: gives the window's nanoseconds and those of each walk.
    pub fn alone(
        &self,
        warm_up: Duration,
        clocked: Duration,
        stop: &Stop,
    ) -> Result<(u64, Vec<u64>), Failure> {
        self.beside(|walking| {
            rest(warm_up, stop)?;
            walking.mark();
            let begun = Instant::now();
            rest(clocked, stop)?;
            walking.mark();
            Ok(u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX).max(1))
        })
    }

    /// The victim's thread: a walk whenever one is due.
    fn walk(&self, shared: &Shared) -> Result<Vec<Walk>, Failure> {
        cpus::pin(self.cpu)?;
        precise_timers()?;
        let mut walks = Vec::new();
        let mut due = Instant::now();
        while !shared.is_over.load(Ordering::Relaxed) {
            let begun = Instant::now();
            walks.push((begun, self.hot_set.walk()));
            shared.cpu_ns.store(of_this_thread_ns(), Ordering::Relaxed);
            // What was missed is not made up for: a walk right after another finds the set warm.
            let now = Instant::now();
            while due <= now {
                due += self.every;
            }
            thread::sleep(due - now);
        }
        Ok(walks)
    }
}

/// Ends the walks when it goes.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Sleeps, unless a signal comes.
fn rest(time: Duration, stop: &Stop) -> Result<(), Failure> {
    let end = Instant::now() + time;
    loop {
        stop.check()?;
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        thread::sleep(left.min(TURN));
    }
}

/// The walks from the first mark to the last; none without both.
fn in_window(walks: &[Walk], marks: &[Instant]) -> Vec<u64> {
    let (Some(&from), Some(&to)) = (marks.first(), marks.last()) else { return Vec::new() };
    let lies_in = |&&(begun, ns): &&Walk| begun >= from && begun + Duration::from_nanos(ns) <= to;
    walks.iter().filter(lies_in).map(|(_, ns)| *ns).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn victim() -> Victim {
        let cpu = cpus::cpus().unwrap().allowed[0];
        let every = Duration::from_micros(200);
        Victim::new(&HotSetPlan { bytes: 4096, every, cpu }).unwrap()
    }

    #[test]
    fn alone_it_walks_until_the_window_closes() {
        let clocked = Duration::from_millis(20);
        let (ns, walks) = victim().alone(Duration::ZERO, clocked, &Stop::default()).unwrap();
        assert!(u128::from(ns) >= clocked.as_nanos());
        assert!(walks.iter().all(|walk| *walk > 0 && *walk <= ns), "{walks:?}");
    }

    #[test]
    fn walks_count_that_lie_between_the_marks() {
        let start = Instant::now();
        let at = |us: u64| start + Duration::from_micros(us);
        let walks = [(at(0), 500), (at(10), 2000), (at(20), 3000), (at(28), 5000)];
        assert_eq!(in_window(&walks, &[at(10), at(30)]), [2000, 3000]);
        assert!(in_window(&walks, &[]).is_empty());
    }

    #[test]
    fn the_victims_cpu_time_is_not_the_clients() {
        let (left, _) = victim()
            .beside(|walking| {
                // Until a walk has been counted: a victim that does not walk never ends this.
                while walking.shared.cpu_ns.load(Ordering::Relaxed) == 0 {
                    thread::yield_now();
                }
                Ok(walking.read(CpuNs { client: u64::MAX, proxy: 2, backend: 3 }))
            })
            .unwrap();
        assert!(left.client < u64::MAX);
        assert_eq!((left.proxy, left.backend), (2, 3));
    }

    #[test]
    fn what_goes_wrong_beside_it_ends_the_walks() {
        let wrong = Failure::Answer("wrong".to_owned());
        let failed = victim().beside(|_| Err::<(), _>(wrong.clone()));
        assert_eq!(failed, Err(wrong));
        let stop = Stop::default();
        stop.ask(2);
        let stopped = victim().alone(Duration::ZERO, Duration::from_secs(600), &stop);
        assert_eq!(stopped, Err(Failure::Stopped(2)));
    }
}
