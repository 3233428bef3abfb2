//! Measuring one cell.

use std::collections::BTreeMap;
use std::time::Duration;

use ntcopy_record::units::Bytes;
use ntcopy_record::{Cell, Line, RunError, Sample, Unavailable};

use super::{Options, Progress, WriteError, Writer};
use crate::experiment::Mode;
use crate::plan::{CellPlan, Form, Plan, group_order};
use crate::run::{Buffer, Clocked, Failure, Rig, Stop};

/// Failures of a mode in a cell after which it is not tried there again.
const STRIKES: u32 = 2;
/// Sends to begin with when looking for how many fill a free-running sample:
/// fewer would fit into the buffers and measure only a start.
const LEAST_SENDS: u64 = 32;
/// Part of a sample's runs that goes before it unclocked.
const WARM_UP_PART: u64 = 10;
/// Of the data set, so much at most passes before a sample of rounds: what the
/// mode before it left in the caches must be gone.
const WARM_UP_DATASET_BYTES: u64 = 64 << 20;
/// So many rounds go before a sample, unless that is more than
/// [`WARM_UP_BYTES`]: caches that adapt what they insert keep a working set only
/// when it has come round several times.
const WARM_UP_ROUNDS: u64 = 8;
/// Payload of these rounds at most, and one round at least.
const WARM_UP_BYTES: u64 = 192 << 20;
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

/// Writes that no mode of the cell is to be had.
pub fn unavailable(
    plan: &Plan,
    number: usize,
    why: &str,
    writer: &mut Writer,
) -> Result<(), WriteError> {
    let cell = u32::try_from(number).unwrap_or(u32::MAX);
    writer.line(&Line::Cell(Cell { cell, params: plan.cells[number].params(None) }))?;
    plan.modes.iter().try_for_each(|mode| {
        let (mode, why) = (mode.to_string(), why.to_owned());
        writer.line(&Line::Unavailable(Unavailable { mode, why, cell: Some(cell) }))
    })
}

/// Verifies, warms up, and takes the cell's samples. `memory` goes from cell to cell.
pub fn measure(
    plan: &Plan,
    number: usize,
    options: &Options,
    memory: &mut Option<Buffer>,
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
        memory,
        alive: plan.modes.clone(),
        strikes: BTreeMap::new(),
        errors: Vec::new(),
    };
    let all = bench.all(writer, progress);
    let rig = bench.rig.take();
    if let Some(rig) = rig {
        *memory = Some(rig.into_memory());
    }
    match all {
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
    /// Of the rig of the cell before, until this one's takes it.
    memory: &'a mut Option<Buffer>,
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
        let sockets = self.plan.verified_sockets;
        for mode in self.alive.clone() {
            let checked = self.attempt(mode, |rig| rig.verify(mode, sockets))?;
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
        let warm_up = self.warm_up(count);
        let clocked = self.attempt(mode, |rig| {
            rig.run(mode, warm_up)?;
            let clocked = rig.run(mode, count)?;
            rig.spot_check(mode)?;
            Ok(clocked)
        })?;
        self.write_errors(writer)?;
        if let Some(Clocked { bytes, elapsed_ns, phases_ns, counters, series }) = clocked {
            writer.line(&Line::Sample(Sample {
                cell: self.number,
                pair,
                position,
                mode: mode.to_string(),
                bytes,
                elapsed_ns,
                phases_ns,
                counters,
                series,
            }))?;
        }
        Ok(())
    }

    /// Runs that go before a sample of so many.
    fn warm_up(&self, count: u64) -> u64 {
        let part = (count / WARM_UP_PART).max(1);
        match self.cell.form {
            Form::Rounds { sockets } => {
                let round_bytes = u64::from(sockets) * self.cell.object_bytes;
                let dataset_bytes = self.cell.dataset_bytes.min(WARM_UP_DATASET_BYTES);
                let settled = (WARM_UP_BYTES / round_bytes).clamp(1, WARM_UP_ROUNDS);
                part.max(self.warm_up_rounds(count))
                    .max(settled)
                    .max(dataset_bytes.div_ceil(round_bytes))
            }
            Form::FreeRunning { .. } | Form::Victim { .. } => part,
        }
    }

    /// Rounds that last as long as a warm-up has to, if so many fill a sample.
    fn warm_up_rounds(&self, count: u64) -> u64 {
        let sample_ns = self.plan.round_sample.as_nanos().max(1);
        let rounds = (u128::from(count) * self.plan.warm_up.as_nanos()).div_ceil(sample_ns);
        u64::try_from(rounds).unwrap_or(u64::MAX)
    }

    /// How many rounds, walks or sends a sample of each mode makes.
    fn counts(&mut self) -> Result<BTreeMap<Mode, u64>, Halt> {
        match self.cell.form {
            Form::Rounds { .. } => self.own_counts(),
            Form::Victim { .. } => self.common_count(1, u64::MAX),
            Form::FreeRunning { iterations: Some(iterations), .. } => {
                Ok(self.alive.iter().map(|mode| (*mode, iterations)).collect())
            }
            Form::FreeRunning { iterations: None, most_iterations } => {
                self.common_count(LEAST_SENDS.min(most_iterations), most_iterations)
            }
        }
    }

    /// Each mode's own number, so that all its samples last as long.
    fn own_counts(&mut self) -> Result<BTreeMap<Mode, u64>, Halt> {
        let mut counts = BTreeMap::new();
        let target = self.plan.round_sample;
        for mode in self.alive.clone() {
            let count = self.attempt(mode, |rig| calibrate(rig, mode, 1, target))?;
            self.keep_if(mode, count.is_some());
            counts.extend(count.map(|count| (mode, count)));
        }
        Ok(counts)
    }

    /// As many in every mode, those of the first mode's time: the same traffic.
    fn common_count(&mut self, first: u64, most: u64) -> Result<BTreeMap<Mode, u64>, Halt> {
        let target = self.plan.sample_time(self.cell).unwrap_or_default();
        for mode in self.alive.clone() {
            let count = self.attempt(mode, |rig| calibrate(rig, mode, first, target))?;
            if let Some(count) = count {
                return Ok(self.alive.iter().map(|mode| (*mode, count.min(most))).collect());
            }
            self.keep_if(mode, false);
        }
        Ok(BTreeMap::new())
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
            None => Rig::open(self.cell, &self.options.rig, self.memory.take(), self.stop),
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
