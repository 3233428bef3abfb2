//! Measuring a plan of loops of forks.

use ntcopy_record::units::Bytes;
use ntcopy_record::{Cell, End, Line, Machine, RunError, Sample, Unavailable};

use super::bulk::{Options, header};
use super::{MeasureError, Outcome, Progress, WriteError, Writer, default_place};
use crate::experiment::pages::ForkMode;
use crate::plan::bulk::{ForkCell, ForkPlan};
use crate::plan::group_order;
use crate::run::fork::{Counts, ForkLoop, Knob, check};
use crate::run::{Failure, Stop, unix_now_ns};

struct Bench<'a> {
    plan: &'a ForkPlan,
    knob: Option<&'a Knob>,
    options: &'a Options,
    stop: &'a Stop,
}

/// Measures the plan and writes the record.
///
/// What goes wrong in a cell becomes an error row and the rest is measured. A
/// signal ends the measurement early; what was measured stays.
///
/// # Errors
///
/// When nothing could be begun, or the record could not be written.
pub fn measure(
    plan: &ForkPlan,
    machine: Machine,
    options: &Options,
    stop: &Stop,
    progress: &mut Progress,
) -> Result<Outcome, MeasureError> {
    let header = header(plan.experiment(), plan.baseline().to_string(), options);
    let place = match &options.out {
        Some(out) => out.clone(),
        None => default_place(&header.id).ok_or(WriteError::NoHome)?,
    };
    let knob = Knob::of(&machine.kernel_kind);
    let mut writer = Writer::create(&place)?;
    writer.line(&Line::Header(header))?;
    writer.line(&Line::Machine(machine))?;
    let mut modes = plan.modes.clone();
    if let Err(why) = &knob {
        // Whatever this kernel does is the baseline.
        modes.truncate(1);
        for mode in &plan.modes[1..] {
            let line = Unavailable { mode: mode.to_string(), why: why.clone(), cell: None };
            writer.line(&Line::Unavailable(line))?;
        }
    }
    let plan = ForkPlan { modes, ..plan.clone() };
    let bench = Bench { plan: &plan, knob: knob.as_ref().ok(), options, stop };
    progress.begin(plan.samples());
    for (number, cell) in (0..).zip(&plan.cells) {
        bench.cell(number, *cell, &mut writer, progress)?;
    }
    progress.end();
    let stopped = stop.signal();
    if stopped.is_none() {
        let end = End { samples: writer.samples(), ended_unix_ns: unix_now_ns() };
        writer.line(&Line::End(end))?;
    }
    Ok(Outcome { place, stopped })
}

impl Bench<'_> {
    fn cell(
        &self,
        number: u32,
        cell: ForkCell,
        writer: &mut Writer,
        progress: &mut Progress,
    ) -> Result<(), WriteError> {
        if self.stop.signal().is_some() {
            return Ok(());
        }
        writer.line(&Line::Cell(Cell { cell: number, params: cell.params(self.plan) }))?;
        let mut alive = self.plan.modes.clone();
        let mut forks = match ForkLoop::new(cell, self.plan.cpu, self.stop) {
            Ok(forks) => forks,
            Err(failure) => {
                return alive.iter().try_for_each(|mode| failed(number, *mode, &failure, writer));
            }
        };
        let what = format!("{}, {} writes", Bytes(cell.buffer_bytes), cell.user);
        let samples_of_a_cell = u64::from(self.plan.pairs) * self.plan.modes.len() as u64;
        let mut done = u64::from(number) * samples_of_a_cell;
        for pair in 0..self.plan.pairs {
            for (position, mode) in (0..).zip(group_order(&self.plan.modes, pair)) {
                progress.at(&what, done);
                done += 1;
                if !alive.contains(&mode) {
                    continue;
                }
                match self.sample(&mut forks, cell, (number, pair, position), mode) {
                    Ok(sample) => writer.line(&Line::Sample(sample))?,
                    Err(Failure::Stopped(_)) => return Ok(()),
                    Err(failure) => {
                        failed(number, mode, &failure, writer)?;
                        alive.retain(|other| *other != mode);
                    }
                }
            }
        }
        Ok(())
    }

    /// Switches, warms up, clocks, holds the kernel's counters against the mode, and compares
    /// every byte.
    fn sample(
        &self,
        forks: &mut ForkLoop,
        cell: ForkCell,
        (number, pair, position): (u32, u32, u32),
        mode: ForkMode,
    ) -> Result<Sample, Failure> {
        self.knob.map_or(Ok(()), |knob| knob.set(mode))?;
        let count = forks.warm_up(self.plan.warm_up, self.plan.sample)?;
        let before = Counts::read()?;
        let (elapsed, events) = forks.run(count)?;
        let after = Counts::read()?;
        let mut counters = match self.knob {
            Some(_) => check(mode, count * cell.pages(), before, after)?,
            None => [].into(),
        };
        counters.extend(events);
        forks.check(self.options.spoil)?;
        Ok(Sample {
            cell: number,
            pair,
            position,
            mode: mode.to_string(),
            bytes: count * cell.buffer_bytes,
            elapsed_ns: u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX).max(1),
            phases_ns: [].into(),
            counters,
            series: [].into(),
        })
    }
}

/// One error row, and the mode is not tried again in this cell: nothing here fails by chance.
fn failed(
    cell: u32,
    mode: ForkMode,
    failure: &Failure,
    writer: &mut Writer,
) -> Result<(), WriteError> {
    writer.line(&Line::Error(RunError {
        cell,
        mode: mode.to_string(),
        what: failure.to_string(),
        wrong_byte: matches!(failure, Failure::WrongCopy { .. }),
    }))
}
