//! Measuring a plan of copies and fills in user space.

mod cell;

use ntcopy_record::ExperimentKind;

use super::driver::{Context, Experiment, Recording, available, index};
use super::{MeasureError, Outcome};
use crate::experiment::bulk::{Task, Way};
use crate::plan::bulk::BulkPlan;
use crate::run::Failure;
use crate::run::bulk::{Setup, Worker, page_way_unavailable};

struct Workers {
    plain: Worker,
    /// With the corrected threshold, or why there is none.
    tuned: Result<Worker, String>,
}

impl Experiment for BulkPlan {
    fn identity(&self) -> (ExperimentKind, String) {
        (self.experiment.clone(), self.ways[0].to_string())
    }

    fn caveats(&self) -> Vec<String> {
        let left_out: Vec<&str> =
            self.cells.iter().filter_map(|cell| cell.left_out.as_deref()).collect();
        let (count, all) = (left_out.len(), self.cells.len());
        let caveat =
            |why: &&str| format!("{count} of {all} cells are left out; the first one {why}");
        left_out.first().map(caveat).into_iter().collect()
    }

    fn measure(&self, context: Context<'_>) -> Result<Outcome, MeasureError> {
        let mut recording = Recording::begin(self, context)?;
        recording.expect(self.samples());
        recording.at("filling the memory");
        let mut workers = start(self, &recording)?;
        let (ways, missing) = available(&self.ways, |way| Ok(missing(way, self, &workers)))?;
        recording.missing(missing)?;
        let plan = BulkPlan { ways, ..self.clone() };
        recording.cells(0..plan.cells.len(), |recording, number| {
            let cell = &plan.cells[number];
            match &cell.left_out {
                Some(why) => {
                    let cell = (index(number), cell.params(&plan));
                    Ok(recording.leave_out(cell, &plan.ways, why)?)
                }
                None => cell::measure(&plan, index(number), &mut workers, recording),
            }
        })?;
        recording.end()
    }
}

fn start(plan: &BulkPlan, recording: &Recording<'_>) -> Result<Workers, Failure> {
    let options = recording.options;
    let setup = |tuned_threshold_bytes| Setup {
        args: options.worker_args.clone(),
        patience: options.patience,
        tuned_threshold_bytes,
        stop: recording.stop.clone(),
    };
    let plain = Worker::start(&setup(None), plan)?;
    let tuned = match (plan.ways.contains(&Way::LibcTuned), plan.tuned_threshold_bytes) {
        (false, _) => Err("it was not asked for".to_owned()),
        (true, None) => Err("this C library has no such threshold that can be set (memset's came \
                             with glibc 2.40), or CPUID names no level-3 cache to correct it by"
            .to_owned()),
        (true, Some(bytes)) => match Worker::start(&setup(Some(bytes)), plan) {
            Ok(worker) => Ok(worker),
            Err(failure @ Failure::Stopped(_)) => return Err(failure),
            Err(failure) => Err(failure.to_string()),
        },
    };
    Ok(Workers { plain, tuned })
}

fn missing(way: Way, plan: &BulkPlan, workers: &Workers) -> Option<String> {
    let no_cpu = |available: bool| (!available).then(|| "this CPU does not have it".to_owned());
    match way {
        Way::LibcTuned => workers.tuned.as_ref().err().cloned(),
        Way::Peer(peer) => workers.plain.missing_peer(peer).map(str::to_owned),
        Way::Copy(path) => {
            no_cpu(ntcopy::arch::copy_backend(path.method).is_some_and(|row| row.is_available()))
        }
        Way::Fill(method) => {
            let row = ntcopy::arch::fill_backend(method);
            let value = plan.cells.iter().find_map(|cell| match cell.task {
                Task::Fill { value, .. } => Some(value),
                _ => None,
            });
            if row.is_some_and(|row| !row.can_fill_with(value.unwrap_or(0))) {
                return Some("it stores zeros only".to_owned());
            }
            no_cpu(row.is_some_and(|row| row.is_available()))
        }
        Way::Page(way) => page_way_unavailable(way),
        Way::Libc | Way::Ours | Way::Stream | Way::Walk(_) => None,
    }
}
