//! Measuring one cell.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Options, Progress, WriteError, Writer};
use crate::experiment::Mode;
use crate::plan::{CellPlan, Form, Plan, group_order};
use crate::record::{Cell, Line, RunError, Sample};
use crate::run::{Clocked, Failure, Rig, Stop};
use crate::units::Bytes;

/// Failures of a mode in a cell after which it is not tried there again.
const STRIKES: u32 = 2;
/// Sends to begin with when looking for how many fill a free-running sample:
/// fewer would fit into the buffers and measure only a start.
const LEAST_SENDS: u64 = 32;
/// Part of a sample's runs that goes before it unclocked.
const WARM_UP_PART: u64 = 10;

/// How a cell ended.
pub enum Ended {
    /// Measured, or given up with error rows.
    Done,
    /// Cut short by a signal.
    Stopped(i32),
}

/// Why the cell cannot go on at all.
enum Halt {
    Stopped(i32),
    Write(WriteError),
}

impl From<WriteError> for Halt {
    fn from(error: WriteError) -> Self {
        Halt::Write(error)
    }
}

/// Verifies, warms up, and takes the cell's samples.
pub fn measure(
    plan: &Plan,
    number: usize,
    options: &Options,
    stop: &Stop,
    writer: &mut Writer,
    progress: &mut Progress,
) -> Result<Ended, WriteError> {
    let cell = &plan.cells[number];
    let mut bench = Bench {
        plan,
        cell,
        number: u32::try_from(number).unwrap_or(u32::MAX),
        options,
        stop,
        rig: None,
        alive: plan.modes.clone(),
        strikes: BTreeMap::new(),
        errors: Vec::new(),
    };
    match bench.all(writer, progress) {
        Ok(()) => Ok(Ended::Done),
        Err(Halt::Stopped(signal)) => Ok(Ended::Stopped(signal)),
        Err(Halt::Write(error)) => Err(error),
    }
}

struct Bench<'a> {
    plan: &'a Plan,
    cell: &'a CellPlan,
    number: u32,
    options: &'a Options,
    stop: &'a Stop,
    /// Opened when first needed, and anew after a failure.
    rig: Option<Rig>,
    /// Modes that have not failed too often.
    alive: Vec<Mode>,
    strikes: BTreeMap<Mode, u32>,
    /// Error rows that are not written yet.
    errors: Vec<RunError>,
}

impl Bench<'_> {
    fn all(&mut self, writer: &mut Writer, progress: &mut Progress) -> Result<(), Halt> {
        let before = u64::from(self.number) * u64::from(self.plan.pairs) * self.width();
        let what = self.what();
        progress.at(&format!("{what}: checking every byte"), before);
        for mode in self.alive.clone() {
            let checked = self.attempt(mode, |rig| rig.verify(mode))?;
            self.keep_if(mode, checked.is_some());
        }
        progress.at(&format!("{what}: warming up"), before);
        let counts = self.counts()?;
        let iterations = counts.values().next().copied();
        let params = match &self.rig {
            Some(rig) => rig.params(iterations),
            None => self.cell.params(iterations),
        };
        writer.line(&Line::Cell(Cell { cell: self.number, params }))?;
        self.write_errors(writer)?;
        for pair in 0..self.plan.pairs {
            for (position, mode) in (0..).zip(group_order(&self.plan.modes, pair)) {
                progress.at(&what, before + u64::from(pair) * self.width() + u64::from(position));
                if self.alive.contains(&mode) {
                    self.sample(pair, position, mode, counts[&mode], writer)?;
                }
            }
        }
        Ok(())
    }

    /// Samples in a group.
    fn width(&self) -> u64 {
        self.plan.modes.len() as u64
    }

    /// The cell in a few words, for the bar.
    fn what(&self) -> String {
        match (&self.cell.published, self.cell.in_flight_bytes()) {
            (Some(label), _) => label.clone(),
            (None, Some(bytes)) => format!("{} in flight", Bytes(bytes)),
            (None, None) => "free-running".to_owned(),
        }
    }

    /// Takes one sample, its warm-up before and its spot check after it.
    fn sample(
        &mut self,
        pair: u32,
        position: u32,
        mode: Mode,
        count: u64,
        writer: &mut Writer,
    ) -> Result<(), Halt> {
        let clocked = self.attempt(mode, |rig| {
            rig.run(mode, (count / WARM_UP_PART).max(1))?;
            let clocked = rig.run(mode, count)?;
            rig.spot_check(mode)?;
            Ok(clocked)
        })?;
        self.write_errors(writer)?;
        if let Some(Clocked { bytes, elapsed_ns, phases_ns, counters }) = clocked {
            writer.line(&Line::Sample(Sample {
                cell: self.number,
                pair,
                position,
                mode: mode.to_string(),
                bytes,
                elapsed_ns,
                phases_ns,
                counters,
            }))?;
        }
        Ok(())
    }

    /// How many rounds or sends a sample of each mode makes.
    fn counts(&mut self) -> Result<BTreeMap<Mode, u64>, Halt> {
        let mut counts = BTreeMap::new();
        match self.cell.form {
            Form::Rounds { .. } => {
                for mode in self.alive.clone() {
                    let target = self.plan.round_sample;
                    let count = self.attempt(mode, |rig| calibrate(rig, mode, 1, target))?;
                    self.keep_if(mode, count.is_some());
                    counts.extend(count.map(|count| (mode, count)));
                }
            }
            Form::FreeRunning { iterations: Some(iterations), .. } => {
                counts.extend(self.alive.iter().map(|mode| (*mode, iterations)));
            }
            // As many sends in every mode, those of the baseline's time.
            Form::FreeRunning { iterations: None, most_iterations } => {
                let target = self.plan.free_sample;
                for mode in self.alive.clone() {
                    let first = LEAST_SENDS.min(most_iterations);
                    let count = self.attempt(mode, |rig| calibrate(rig, mode, first, target))?;
                    if let Some(count) = count {
                        let count = count.min(most_iterations);
                        counts.extend(self.alive.iter().map(|mode| (*mode, count)));
                        break;
                    }
                    self.keep_if(mode, false);
                }
            }
        }
        Ok(counts)
    }

    fn keep_if(&mut self, mode: Mode, keep: bool) {
        self.alive.retain(|alive| *alive != mode || keep);
    }

    /// Tries something with the rig. A failure becomes an error row and none,
    /// and the next attempt gets a new rig: nobody knows what lies in the old
    /// one's sockets.
    fn attempt<T>(
        &mut self,
        mode: Mode,
        act: impl FnOnce(&mut Rig) -> Result<T, Failure>,
    ) -> Result<Option<T>, Halt> {
        if let Some(signal) = self.stop.signal() {
            return Err(Halt::Stopped(signal));
        }
        let result = match self.rig.take() {
            Some(rig) => Ok(rig),
            None => Rig::open(self.cell, &self.options.rig, self.stop),
        }
        .and_then(|mut rig| {
            let value = act(&mut rig)?;
            self.rig = Some(rig);
            Ok(value)
        });
        let failure = match result {
            Ok(value) => return Ok(Some(value)),
            Err(Failure::Stopped(signal)) => return Err(Halt::Stopped(signal)),
            Err(failure) => failure,
        };
        // A signal may show as a failed call before its flag is looked at.
        if let Some(signal) = self.stop.signal() {
            return Err(Halt::Stopped(signal));
        }
        let wrong_byte = matches!(failure, Failure::WrongByte { .. });
        let strikes = self.strikes.entry(mode).or_default();
        *strikes += 1;
        if wrong_byte || *strikes >= STRIKES {
            self.alive.retain(|alive| *alive != mode);
        }
        self.errors.push(RunError {
            cell: self.number,
            mode: mode.to_string(),
            what: failure.to_string(),
            wrong_byte,
        });
        Ok(None)
    }

    fn write_errors(&mut self, writer: &mut Writer) -> Result<(), WriteError> {
        self.errors.drain(..).try_for_each(|error| writer.line(&Line::Error(error)))
    }
}

/// Runs of the mode that last at least `target`; warms caches and pages up on the way.
///
/// Bounded both ways: at least three runs, and no more than two of them last a
/// quarter of the target, which is enough to tell. The faster of those two
/// counts: a disturbance only ever makes a run longer.
fn calibrate(rig: &mut Rig, mode: Mode, first: u64, target: Duration) -> Result<u64, Failure> {
    let target_ns = u64::try_from(target.as_nanos()).unwrap_or(u64::MAX);
    // The first run pays for what is used for the first time.
    rig.run(mode, 1)?;
    let mut count = first;
    loop {
        let elapsed = rig.run(mode, count)?.elapsed_ns.max(1);
        if elapsed >= target_ns / 4 {
            let again = rig.run(mode, count)?.elapsed_ns.max(1);
            return Ok(needed(count, elapsed.min(again), target_ns));
        }
        count *= 2;
    }
}

/// Runs that fill the target, from the time that `count` of them took; a
/// twentieth more, so that a sample is seldom shorter than asked for.
fn needed(count: u64, elapsed_ns: u64, target_ns: u64) -> u64 {
    let exact = u128::from(count) * u128::from(target_ns) / u128::from(elapsed_ns.max(1));
    u64::try_from(exact * 21 / 20 + 1).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_runs_needed_fill_the_target(
            count in 1u64..1 << 30, elapsed in 1u64..1 << 40, target in 1u64..1 << 40,
        ) {
            let needed = u128::from(needed(count, elapsed, target));
            prop_assert!(needed * u128::from(elapsed) >= u128::from(target) * u128::from(count));
        }
    }
}
