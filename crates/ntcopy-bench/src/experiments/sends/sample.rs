//! Measuring a plan of sends.

use std::collections::BTreeMap;
use std::time::Duration;

use memmap2::MmapMut;
use ntcopy_judge::modes;
use ntcopy_judge::stats::{THROUGHPUT, rate};
use ntcopy_record::units::Bytes;
use ntcopy_record::{ExperimentKind, Sample};

use super::run::{Clocked, Rig, RigOptions, preflight};
use super::{CellPlan, Form, SendsPlan};
use crate::experiment::Mode;
use crate::run::{self, Failure, Stop};
use crate::sample::driver::{
    At, Context, Experiment, Groups, Halt, Lanes, Recording, available, index,
};
use crate::sample::{Bootable, MeasureError, Needs, Outcome, named};

impl Experiment for SendsPlan {
    fn identity(&self) -> (ExperimentKind, Vec<ntcopy_record::Mode>) {
        (self.experiment.clone(), named(&self.modes))
    }

    fn caveats(&self) -> Vec<String> {
        let caveat = |mode: &Mode| Some(format!("{mode} {}", modes::caveat(mode.as_str())?));
        self.modes.iter().filter_map(caveat).collect()
    }

    fn measure(&self, context: Context<'_>) -> Result<Outcome, MeasureError> {
        preflight(self)?;
        let (modes, missing) = available(&self.modes, run::unavailable)?;
        let mut recording = Recording::begin(self, context)?;
        recording.missing(missing)?;
        let plan = SendsPlan { modes, ..self.clone() };
        recording.expect(plan.samples());
        let options = recording.options;
        let rig_options = RigOptions {
            reader_args: options.worker_args.clone(),
            patience: options.patience,
            spoil: options.spoil,
        };
        let mut memory = None;
        recording.cells(0..plan.cells.len(), |recording, number| {
            let cell = &plan.cells[number];
            match run::family_unavailable(cell.family).map_err(Halt::Start)? {
                Some(why) => {
                    let params = cell.params(None);
                    Ok(recording.leave_out(index(number), params, &plan.modes, &why)?)
                }
                None => measure_cell(&plan, index(number), &rig_options, &mut memory, recording),
            }
        })?;
        recording.end()
    }
}

impl Bootable for SendsPlan {
    fn needs(&self) -> Needs {
        let length = |cell| self.sample_time(cell).unwrap_or_default();
        let needs = Needs::new(self.samples(), self.memory_bytes(), self.cells.iter().map(length));
        let is_known = self.cells.iter().all(|cell| self.sample_time(cell).is_some());
        let longest = needs.longest.filter(|_| is_known);
        Needs { sysctls: self.sysctls(), longest, ..needs }
    }
}

/// Failures of a mode in a cell after which it is not tried there again.
const STRIKES: u32 = 2;
/// Sends to begin with when looking for how many fill a free-running sample:
/// fewer would fit into the buffers and measure only a start.
const LEAST_SENDS: u64 = 32;
/// Part of a sample's runs that goes before it unclocked.
const WARM_UP_PART: u64 = 10;
/// Bytes of the data set that pass, at most, before a sample in rounds: what the
/// mode before it left in the caches must be gone.
const WARM_UP_DATASET_BYTES: u64 = 64 << 20;
/// Rounds before a sample, unless they pass more than
/// [`WARM_UP_BYTES`]: caches that adapt what they insert keep a working set only
/// when it has come round several times.
const WARM_UP_ROUNDS: u64 = 8;
/// Payload of these rounds at most, and one round at least.
const WARM_UP_BYTES: u64 = 192 << 20;

/// Verifies, warms up, and takes the cell's samples. `memory` goes from cell to cell.
fn measure_cell(
    plan: &SendsPlan,
    number: u32,
    options: &RigOptions,
    memory: &mut Option<MmapMut>,
    recording: &mut Recording<'_>,
) -> Result<(), Halt> {
    let mut lanes = ModeLanes {
        plan,
        cell: &plan.cells[number as usize],
        number,
        options,
        stop: recording.stop,
        rig: None,
        memory,
        alive: plan.modes.clone(),
        strikes: BTreeMap::new(),
        counts: BTreeMap::new(),
    };
    let all = lanes.all(recording);
    if let Some(rig) = lanes.rig.take() {
        *lanes.memory = Some(rig.into_memory());
    }
    all
}

/// The modes of one cell, which share a rig.
struct ModeLanes<'a> {
    plan: &'a SendsPlan,
    cell: &'a CellPlan,
    number: u32,
    options: &'a RigOptions,
    stop: &'a Stop,
    /// Opened when first needed, and anew after a failure.
    rig: Option<Rig>,
    /// Memory of the rig before, until this cell's rig takes it.
    memory: &'a mut Option<MmapMut>,
    alive: Vec<Mode>,
    strikes: BTreeMap<Mode, u32>,
    /// How many rounds, walks or sends a sample of each mode makes.
    counts: BTreeMap<Mode, u64>,
}

impl ModeLanes<'_> {
    fn all(&mut self, recording: &mut Recording<'_>) -> Result<(), Halt> {
        let plan = self.plan;
        let what = self.what();
        recording.at(&format!("{what}: checking every byte"));
        let sockets = plan.verified_sockets;
        for mode in self.alive.clone() {
            let checked = self.attempt(mode, recording, |rig| rig.verify(mode, sockets))?;
            self.keep_if(mode, checked.is_some());
        }
        recording.at(&format!("{what}: warming up"));
        self.counts = self.find_counts(recording)?;
        let iterations = self.counts.values().next().copied();
        let params = match &self.rig {
            Some(rig) => rig.params(iterations),
            None => self.cell.params(iterations),
        };
        recording.cell(self.number, params)?;
        let alive = std::mem::take(&mut self.alive);
        let cells = &[(self.number, &*what)];
        recording.groups(self, Groups { modes: &plan.modes, alive, cells, pairs: plan.pairs })
    }

    fn what(&self) -> String {
        match (&self.cell.published, self.cell.in_flight_bytes()) {
            (Some(label), _) => label.clone(),
            (None, Some(bytes)) => format!("{} in flight", Bytes(bytes)),
            (None, None) => "free-running".to_owned(),
        }
    }

    /// Runs that go before a sample of `count` runs.
    fn warm_up(&self, count: u64) -> u64 {
        let part = (count / WARM_UP_PART).max(1);
        match self.cell.form {
            Form::Rounds { sockets } | Form::TwoSenders { sockets, .. } => {
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

    /// Rounds that last as long as a warm-up has to, if `count` rounds fill a sample.
    fn warm_up_rounds(&self, count: u64) -> u64 {
        let sample_ns = self.plan.round_sample.as_nanos().max(1);
        let rounds = (u128::from(count) * self.plan.warm_up.as_nanos()).div_ceil(sample_ns);
        u64::try_from(rounds).unwrap_or(u64::MAX)
    }

    fn find_counts(&mut self, recording: &mut Recording<'_>) -> Result<BTreeMap<Mode, u64>, Halt> {
        match self.cell.form {
            Form::Rounds { .. } | Form::TwoSenders { .. } => self.own_counts(recording),
            Form::Victim { .. } => self.common_count(1, u64::MAX, recording),
            Form::FreeRunning { iterations: Some(iterations), .. } => {
                Ok(self.alive.iter().map(|mode| (*mode, iterations)).collect())
            }
            Form::FreeRunning { iterations: None, most_iterations } => {
                self.common_count(LEAST_SENDS.min(most_iterations), most_iterations, recording)
            }
        }
    }

    /// Each mode's own number, so that all its samples last as long.
    fn own_counts(&mut self, recording: &mut Recording<'_>) -> Result<BTreeMap<Mode, u64>, Halt> {
        let mut counts = BTreeMap::new();
        let target = self.plan.round_sample;
        for mode in self.alive.clone() {
            let count = self.attempt(mode, recording, |rig| calibrate(rig, mode, 1, target))?;
            self.keep_if(mode, count.is_some());
            counts.extend(count.map(|count| (mode, count)));
        }
        Ok(counts)
    }

    /// One number for every mode, by the first mode's time: the traffic is the same.
    fn common_count(
        &mut self,
        first: u64,
        most: u64,
        recording: &mut Recording<'_>,
    ) -> Result<BTreeMap<Mode, u64>, Halt> {
        let target = self.plan.sample_time(self.cell).unwrap_or_default();
        for mode in self.alive.clone() {
            let count = self.attempt(mode, recording, |rig| calibrate(rig, mode, first, target))?;
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

    /// Tries something with the rig. After a failure the next attempt gets a new rig: what lies in
    /// the old one's sockets is not known.
    fn with_rig<T>(
        &mut self,
        act: impl FnOnce(&mut Rig) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        self.stop.check()?;
        let mut rig = match self.rig.take() {
            Some(rig) => rig,
            None => Rig::open(self.cell, self.options, self.memory.take(), self.stop)?,
        };
        let value = act(&mut rig)?;
        self.rig = Some(rig);
        Ok(value)
    }

    /// The same before the cell's samples; nothing where it failed.
    fn attempt<T>(
        &mut self,
        mode: Mode,
        recording: &mut Recording<'_>,
        act: impl FnOnce(&mut Rig) -> Result<T, Failure>,
    ) -> Result<Option<T>, Halt> {
        match self.with_rig(act) {
            Ok(value) => Ok(Some(value)),
            Err(failure) => {
                self.failed(mode, At::default(), failure, recording)?;
                Ok(None)
            }
        }
    }
}

impl Lanes for ModeLanes<'_> {
    type Mode = Mode;

    fn figure(&self, sample: &Sample) -> Option<f64> {
        rate(&self.plan.experiment, sample, THROUGHPUT)
    }

    fn sample(&mut self, mode: Mode, at: At) -> Result<Sample, Failure> {
        let count = self.counts[&mode];
        let warm_up = self.warm_up(count);
        let clocked = self.with_rig(|rig| {
            rig.run(mode, warm_up)?;
            let clocked = rig.run(mode, count)?;
            rig.spot_check(mode)?;
            Ok(clocked)
        })?;
        let Clocked { bytes, elapsed_ns, phases_ns, counters, series } = clocked;
        Ok(Sample { phases_ns, counters, series, ..at.sample(mode, bytes, elapsed_ns) })
    }

    /// A socket may fail by chance, so a mode has [`STRIKES`]; a wrong byte is no chance.
    fn failed(
        &mut self,
        mode: Mode,
        _at: At,
        failure: Failure,
        recording: &mut Recording<'_>,
    ) -> Result<bool, Halt> {
        // A signal may show as a failed call before its flag is looked at.
        self.stop.check()?;
        let strikes = self.strikes.entry(mode).or_default();
        *strikes += 1;
        let is_out = failure.is_wrong_byte() || *strikes >= STRIKES;
        recording.error(self.number, mode, &failure)?;
        Ok(!is_out)
    }
}

/// Runs of the mode that last at least `target`; warms caches and pages up on the way.
///
/// Bounded both ways: at least three runs, and no more than two of them last a
/// quarter of the target, which is enough to tell. The faster of those two
/// counts: a disturbance only ever makes a run longer.
fn calibrate(rig: &mut Rig, mode: Mode, first: u64, target: Duration) -> Result<u64, Failure> {
    let target_ns = run::ns(target);
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
