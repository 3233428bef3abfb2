//! Measuring a plan of loops of forks.

use ntcopy_record::stats::{THROUGHPUT, rate};
use ntcopy_record::units::Bytes;
use ntcopy_record::{ExperimentKind, Machine, Sample};

use super::run::{Counts, ForkLoop, Knob, check};
use super::{ForkCell, ForkMode, ForkPlan};
use crate::run::{Failure, Stop};
use crate::sample::driver::{At, Experiment, Halt, Lanes, Options, Recording, index};
use crate::sample::{MeasureError, Outcome, Progress};

impl Experiment for ForkPlan {
    fn experiment(&self) -> ExperimentKind {
        ExperimentKind::Pages
    }

    fn baseline(&self) -> String {
        ForkPlan::baseline(self).to_string()
    }

    fn measure(
        &self,
        machine: Machine,
        options: &Options,
        stop: &Stop,
        progress: &mut Progress,
    ) -> Result<Outcome, MeasureError> {
        let knob = Knob::of(&machine.kernel_kind);
        let mut recording = Recording::begin(self, machine, options, stop, progress)?;
        let mut modes = self.modes.clone();
        if let Err(why) = &knob {
            // Whatever this kernel does is the baseline.
            modes.truncate(1);
            for mode in &self.modes[1..] {
                recording.unavailable(mode, why.as_str(), None)?;
            }
        }
        let plan = ForkPlan { modes, ..self.clone() };
        recording.expect(plan.samples());
        let knob = knob.as_ref().ok();
        recording.cells(0..plan.cells.len(), |recording, number| {
            measure_cell(&plan, index(number), (knob, options.spoil), recording)
        })?;
        recording.end(stop.signal())
    }
}

fn measure_cell(
    plan: &ForkPlan,
    number: u32,
    (knob, spoil): (Option<&Knob>, bool),
    recording: &mut Recording<'_>,
) -> Result<(), Halt> {
    let stop = recording.stop();
    stop.check()?;
    let cell = plan.cells[number as usize];
    recording.cell(number, cell.params(plan))?;
    let forks = match ForkLoop::new(cell, plan.cpu, stop) {
        Ok(forks) => forks,
        Err(failure) => {
            for mode in &plan.modes {
                recording.error(number, mode, &failure)?;
            }
            return Ok(());
        }
    };
    let mut lanes = ForkLanes { plan, cell, forks, knob, spoil, alive: plan.modes.clone() };
    let what = format!("{}, {} writes", Bytes(cell.buffer_bytes), cell.user);
    let before = u64::from(number) * u64::from(plan.pairs) * plan.modes.len() as u64;
    recording.groups(&mut lanes, &plan.modes, (number, plan.pairs), (&what, before))
}

/// The modes of one cell, which share a buffer.
struct ForkLanes<'a> {
    plan: &'a ForkPlan,
    cell: ForkCell,
    forks: ForkLoop,
    knob: Option<&'a Knob>,
    spoil: bool,
    alive: Vec<ForkMode>,
}

impl Lanes for ForkLanes<'_> {
    type Mode = ForkMode;
    type Trouble = Failure;

    fn figure(&self, sample: &Sample) -> Option<f64> {
        rate(&ExperimentKind::Pages, sample, THROUGHPUT)
    }

    fn is_alive(&self, mode: ForkMode) -> bool {
        self.alive.contains(&mode)
    }

    /// Switches, warms up, clocks, holds the kernel's counters against the mode, and compares
    /// every byte.
    fn sample(
        &mut self,
        mode: ForkMode,
        At { cell, pair, position }: At,
    ) -> Result<Sample, Failure> {
        self.knob.map_or(Ok(()), |knob| knob.set(mode))?;
        let count = self.forks.warm_up(self.plan.warm_up, self.plan.sample)?;
        let before = Counts::read()?;
        let (elapsed, events) = self.forks.run(count)?;
        let after = Counts::read()?;
        let mut counters = match self.knob {
            Some(_) => check(mode, count * self.cell.pages(), before, after)?,
            None => [].into(),
        };
        counters.extend(events);
        self.forks.check(self.spoil)?;
        Ok(Sample {
            cell,
            pair,
            position,
            mode: mode.to_string(),
            bytes: count * self.cell.buffer_bytes,
            elapsed_ns: u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX).max(1),
            phases_ns: [].into(),
            counters,
            series: [].into(),
        })
    }

    /// One error row, and the mode is not tried again in this cell: nothing here fails by chance.
    fn failed(
        &mut self,
        mode: ForkMode,
        at: At,
        failure: Failure,
        recording: &mut Recording<'_>,
    ) -> Result<(), Halt> {
        recording.give_up(&mut self.alive, (at.cell, mode), &failure)
    }
}
