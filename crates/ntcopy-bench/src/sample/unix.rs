//! Measuring a plan of sends: experiments `unix`, and `retention` of sends.

mod cell;

use ntcopy_record::Machine;

use super::driver::{Available, Experiment, Halt, Options, Recording, index};
use super::{MeasureError, Outcome, Progress};
use crate::experiment::Mode;
use crate::plan::Plan;
use crate::run::{self, Failure, Fault, RigOptions, Stop};

impl Experiment for Plan {
    fn name(&self) -> &'static str {
        self.experiment
    }

    fn baseline(&self) -> String {
        Plan::baseline(self).to_string()
    }

    fn caveats(&self) -> Vec<String> {
        self.modes.iter().filter_map(|mode| mode.caveat()).map(str::to_owned).collect()
    }

    fn measure(
        &self,
        machine: Machine,
        options: &Options,
        stop: &Stop,
        progress: &mut Progress,
    ) -> Result<Outcome, MeasureError> {
        run::preflight(self).map_err(MeasureError::Start)?;
        let (modes, missing) = available(&self.modes).map_err(MeasureError::Start)?;
        let mut recording = Recording::begin(self, machine, options, stop, progress)?;
        for (mode, why) in missing {
            recording.unavailable(mode, why, None)?;
        }
        let plan = Plan { modes, ..self.clone() };
        recording.expect(plan.samples());
        let rig_options = RigOptions {
            reader_args: options.worker_args.clone(),
            patience: options.patience,
            fault: options.spoil.then_some(Fault::WrongByte),
        };
        let mut memory = None;
        let halted = recording.cells(0..plan.cells.len(), |recording, number| {
            let family = plan.cells[number].family;
            match run::family_unavailable(family).map_err(Halt::Start)? {
                Some(why) => unavailable(&plan, number, &why, recording),
                None => cell::measure(&plan, index(number), &rig_options, &mut memory, recording),
            }
        })?;
        recording.end(stop.signal().filter(|_| halted))
    }
}

/// The modes that this kernel has, and those that it has not, with the reason.
fn available(modes: &[Mode]) -> Result<Available<Mode>, Failure> {
    let (mut here, mut missing) = (Vec::new(), Vec::new());
    for mode in modes {
        match run::unavailable(*mode)? {
            None => here.push(*mode),
            Some(why) => missing.push((*mode, why)),
        }
    }
    Ok((here, missing))
}

/// Writes that no mode of the cell is to be had.
fn unavailable(
    plan: &Plan,
    number: usize,
    why: &str,
    recording: &mut Recording<'_>,
) -> Result<(), Halt> {
    let cell = index(number);
    recording.cell(cell, plan.cells[number].params(None))?;
    for mode in &plan.modes {
        recording.unavailable(mode, why, Some(cell))?;
    }
    Ok(())
}
