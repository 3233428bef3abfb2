//! The form with copies of experiment `retention`: a streamer, and a victim that feels it.

mod pace;
mod stream;

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use memmap2::Advice;
use ntcopy_record::stats::quantile_ns;

use self::pace::Window;
use self::stream::Stream;
use super::CopyMode;
use super::plan::{CopiesCell, CopiesPlan};
use crate::experiment::LINE_BYTES;
use crate::hardware::Hardware;
use crate::run::cpus;
use crate::run::hot_set::HotSet;
use crate::run::schedule::{histogram, record, take_answers};
use crate::run::{Failure, Stop, ns};

pub use stream::path;

/// The time that the streamer's thread gets to be where it belongs, before its schedule begins.
const HEAD_START: Duration = Duration::from_millis(1);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Felt {
    pub bytes: u64,
    pub offered_bytes: u64,
    pub elapsed_ns: u64,
    /// Nanoseconds of the victim's passes (`walk`) and of the copies (`copy`).
    pub phases_ns: BTreeMap<String, u64>,
    /// What the hardware counted while the clock ran, of victim and streamer together.
    pub counters: BTreeMap<String, u64>,
    /// The passes: nanoseconds of each (to three digits), and how many took them, ascending.
    pub passes: Vec<(u64, u64)>,
}

impl Felt {
    pub fn median_pass_ns(&self) -> u64 {
        quantile_ns(&self.passes, 0.5).map_or(0, |ns| ns as u64)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// Streamer and victim at the same time: warm-up, then so long, at this rate (none: as fast
    /// as it goes).
    Time { warm_up: Duration, clocked: Duration, rate_bytes_per_s: Option<u64> },
    /// In turns: this number of passes, each with an object before it.
    Passes { warm_up: u64, clocked: u64 },
}

/// The streamer's memory and the victim's, ready to run.
pub struct Bench {
    stream: Stream,
    hot_set: HotSet,
    pass_lines: u64,
    streamer_cpu: u32,
    hardware: Hardware,
    stop: Stop,
}

impl Bench {
    /// Maps and touches everything, or takes over the memory of the cell before. The calling
    /// thread stays on the victim's CPU from here on.
    pub fn open(
        plan: &CopiesPlan,
        cell: &CopiesCell,
        streamer_cpu: u32,
        before: Option<Bench>,
        stop: &Stop,
    ) -> Result<Bench, Failure> {
        cpus::pin(cell.victim_cpu)?;
        let stream = match before {
            // Not both hot sets at once: the old one goes first.
            Some(Bench { stream, hot_set, .. }) => {
                drop(hot_set);
                stream.cut_into(cell.object_bytes)
            }
            None => Stream::new(plan.dataset_bytes, cell.object_bytes)?,
        };
        Ok(Bench {
            stream,
            hot_set: HotSet::new(cell.hot_set_bytes, Advice::HugePage)?,
            pass_lines: (cell.pass_bytes / LINE_BYTES).max(1),
            streamer_cpu,
            hardware: Hardware::open(),
            stop: stop.clone(),
        })
    }

    pub fn passes_in_hot_set(&self) -> u64 {
        self.hot_set.lines().div_ceil(self.pass_lines)
    }

    /// Copies odd sizes off every boundary the way the mode copies, and compares every byte.
    pub fn verify(&mut self, mode: CopyMode, spoil: bool) -> Result<(), Failure> {
        self.stream.verify(mode, spoil)
    }

    /// Compares what the last run copied: evenly spaced objects, the last one among them.
    pub fn check(&mut self) -> Result<(), Failure> {
        self.stream.check()
    }

    pub fn run(&mut self, mode: CopyMode, length: Length) -> Result<Felt, Failure> {
        self.stream.begin();
        match length {
            Length::Passes { warm_up, clocked } => self.in_turns(mode, warm_up, clocked),
            Length::Time { warm_up, clocked, rate_bytes_per_s } => {
                let window = Window {
                    start: Instant::now() + HEAD_START,
                    from: warm_up,
                    to: warm_up + clocked,
                    rate_bytes_per_s,
                };
                self.side_by_side(mode, &window)
            }
        }
    }

    /// An object, a pass, an object, a pass.
    fn in_turns(&mut self, mode: CopyMode, warm_up: u64, clocked: u64) -> Result<Felt, Failure> {
        let mut passes = Passes::new()?;
        let mut copy_ns = 0;
        let mut clock = Instant::now();
        for number in 0..warm_up + clocked {
            self.stop.check()?;
            if number == warm_up {
                self.hardware.start();
                clock = Instant::now();
            }
            let start = Instant::now();
            if mode != CopyMode::Idle {
                self.stream.copy_next(mode);
            }
            let copied = Instant::now();
            self.hot_set.walk(self.pass_lines);
            if number >= warm_up {
                passes.add(copied.elapsed());
                copy_ns += ns(copied - start);
            }
        }
        let elapsed_ns = ns(clock.elapsed()).max(1);
        passes.counters = self.hardware.stop();
        let is_idle = mode == CopyMode::Idle;
        let bytes = if is_idle { 0 } else { clocked * self.stream.object_bytes() };
        Ok(passes.felt(bytes, bytes, elapsed_ns, (!is_idle).then_some(copy_ns)))
    }

    /// The streamer on its own CPU, the victim here.
    fn side_by_side(&mut self, mode: CopyMode, window: &Window) -> Result<Felt, Failure> {
        let (stream, hot_set, stop) = (&mut self.stream, &mut self.hot_set, &self.stop);
        let hardware = &mut self.hardware;
        let (cpu, lines) = (self.streamer_cpu, self.pass_lines);
        let (streamed, passes) = thread::scope(|scope| {
            let streamer = (mode != CopyMode::Idle).then(|| {
                scope.spawn(move || {
                    cpus::pin(cpu)?;
                    Ok::<_, Failure>(stream.run(mode, window, stop))
                })
            });
            let passes = watch(hot_set, hardware, lines, window, stop);
            let streamed = match streamer.map(thread::ScopedJoinHandle::join) {
                Some(Ok(streamed)) => Some(streamed),
                Some(Err(panic)) => std::panic::resume_unwind(panic),
                None => None,
            };
            (streamed, passes)
        });
        let streamed = streamed.transpose()?;
        let passes = passes?;
        let elapsed_ns = ns(window.to - window.from).max(1);
        let (bytes, offered, copy_ns) = match streamed {
            Some(streamed) => (streamed.bytes, streamed.offered_bytes, Some(streamed.copy_ns)),
            None => (0, 0, None),
        };
        Ok(passes.felt(bytes, offered, elapsed_ns, copy_ns))
    }
}

/// The victim: passes until the window closes; those that lie in it count.
fn watch(
    hot_set: &mut HotSet,
    hardware: &mut Hardware,
    lines: u64,
    window: &Window,
    stop: &Stop,
) -> Result<Passes, Failure> {
    let mut passes = Passes::new()?;
    let mut counts = false;
    // Asleep, so that the streamer's thread, which starts on this CPU, can leave it.
    thread::sleep(window.start.saturating_duration_since(Instant::now()));
    loop {
        stop.check()?;
        if !counts && window.now() >= window.from {
            hardware.start();
            counts = true;
        }
        let before = window.now();
        hot_set.walk(lines);
        let after = window.now();
        if before >= window.from && after <= window.to {
            passes.add(after - before);
        }
        if after >= window.to {
            if counts {
                passes.counters = hardware.stop();
            }
            return Ok(passes);
        }
    }
}

struct Passes {
    histogram: Histogram<u64>,
    walk_ns: u64,
    counters: BTreeMap<String, u64>,
}

impl Passes {
    fn new() -> Result<Passes, Failure> {
        Ok(Passes { histogram: histogram()?, walk_ns: 0, counters: BTreeMap::new() })
    }

    fn add(&mut self, pass: Duration) {
        self.walk_ns += ns(pass);
        record(&mut self.histogram, ns(pass));
    }

    fn felt(self, bytes: u64, offered: u64, elapsed_ns: u64, copy_ns: Option<u64>) -> Felt {
        let mut phases_ns = BTreeMap::from([("walk".to_owned(), self.walk_ns)]);
        phases_ns.extend(copy_ns.map(|ns| ("copy".to_owned(), ns)));
        let passes = take_answers(&self.histogram, 0).latencies;
        let counters = self.counters;
        Felt { bytes, offered_bytes: offered, elapsed_ns, phases_ns, counters, passes }
    }
}

#[cfg(test)]
mod tests;
