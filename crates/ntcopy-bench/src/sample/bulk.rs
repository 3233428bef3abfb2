//! Measuring a plan of copies and fills in user space.

mod cell;

use std::path::PathBuf;
use std::time::Duration;

use ntcopy_record::{Cell, End, FORMAT, Header, Line, Machine, Unavailable};

use super::WriteError;
use super::{MeasureError, Outcome, Progress, Writer, default_place, id};
use crate::experiment::bulk::{Task, Way};
use crate::plan::bulk::BulkPlan;
use crate::run::bulk::{Setup, Worker, page_way_unavailable};
use crate::run::{Failure, Stop, unix_now_ns};

/// How a plan is measured.
#[derive(Debug, Clone)]
pub struct Options {
    /// The record's directory; none: [`default_place`].
    pub out: Option<PathBuf>,
    /// The command line to put into the record.
    pub command: Vec<String>,
    /// Why the results will not be timings, if so.
    pub not_a_timing: Option<String>,
    /// The arguments of this program that lead to the worker.
    pub worker_args: Vec<String>,
    /// How long the worker may take for an answer.
    pub patience: Duration,
    /// Make a byte wrong, to see that it is noticed: for tests.
    pub spoil: bool,
}

/// The processes that do the work.
struct Workers {
    plain: Worker,
    /// With the corrected threshold, or why there is none.
    tuned: Result<Worker, String>,
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
    plan: &BulkPlan,
    machine: Machine,
    options: &Options,
    stop: &Stop,
    progress: &mut Progress,
) -> Result<Outcome, MeasureError> {
    let header = header(plan.experiment, plan.baseline().to_string(), options);
    let place = match &options.out {
        Some(out) => out.clone(),
        None => default_place(&header.id).ok_or(WriteError::NoHome)?,
    };
    let mut writer = Writer::create(&place)?;
    writer.line(&Line::Header(header))?;
    writer.line(&Line::Machine(machine))?;
    progress.begin(plan.samples());
    progress.at("filling the memory", 0);
    let mut workers = start(plan, options, stop).map_err(MeasureError::Start)?;
    let missing: Vec<(Way, String)> =
        plan.ways.iter().filter_map(|way| Some((*way, missing(*way, plan, &workers)?))).collect();
    for (way, why) in &missing {
        let (mode, why) = (way.to_string(), why.clone());
        writer.line(&Line::Unavailable(Unavailable { mode, why, cell: None }))?;
    }
    let here = |way: &Way| missing.iter().all(|(other, _)| other != way);
    let ways = plan.ways.iter().copied().filter(here).collect();
    let plan = BulkPlan { ways, ..plan.clone() };
    let mut done = 0;
    let mut stopped = None;
    for number in 0..plan.cells.len() {
        if plan.cells[number].left_out.is_some() {
            leave_out(&plan, number, &mut writer)?;
            continue;
        }
        let ended =
            cell::measure(&plan, number, options, &mut workers, stop, &mut writer, progress, done)?;
        done += u64::from(plan.pairs) * plan.ways.len() as u64;
        if let cell::Ended::Stopped(signal) = ended {
            stopped = Some(signal);
            break;
        }
    }
    progress.end();
    if stopped.is_none() {
        let end = End { samples: writer.samples(), ended_unix_ns: unix_now_ns() };
        writer.line(&Line::End(end))?;
    }
    Ok(Outcome { place, stopped })
}

fn start(plan: &BulkPlan, options: &Options, stop: &Stop) -> Result<Workers, Failure> {
    let setup = |tuned_threshold_bytes| Setup {
        args: options.worker_args.clone(),
        patience: options.patience,
        tuned_threshold_bytes,
        stop: stop.clone(),
    };
    let plain = Worker::start(&setup(None), plan)?;
    let tuned = match (plan.ways.contains(&Way::LibcTuned), plan.tuned_threshold_bytes) {
        (false, _) => Err("nobody asked for it".to_owned()),
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

/// Why a way is not to be had on this machine, if so.
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
        Way::Walk(walk) if walk.nontemporal => no_cpu(cfg!(target_arch = "x86_64")),
        Way::Page(way) => page_way_unavailable(way),
        Way::Libc | Way::Ours | Way::Stream | Way::Walk(_) => None,
    }
}

/// Writes that a cell was not measured.
fn leave_out(plan: &BulkPlan, number: usize, writer: &mut Writer) -> Result<(), WriteError> {
    let cell = &plan.cells[number];
    let number = u32::try_from(number).unwrap_or(u32::MAX);
    writer.line(&Line::Cell(Cell { cell: number, params: cell.params(plan) }))?;
    let why = cell.left_out.clone().unwrap_or_default();
    plan.ways.iter().try_for_each(|way| {
        let line = Unavailable { mode: way.to_string(), why: why.clone(), cell: Some(number) };
        writer.line(&Line::Unavailable(line))
    })
}

/// The first line of a record that begins now.
pub(super) fn header(experiment: &str, baseline: String, options: &Options) -> Header {
    let started_unix_ns = unix_now_ns();
    Header {
        format: FORMAT,
        id: id(experiment, started_unix_ns, &options.command),
        experiment: experiment.to_owned(),
        command: options.command.clone(),
        ntcopy: env!("CARGO_PKG_VERSION").to_owned(),
        started_unix_ns,
        baseline,
        not_a_timing: options.not_a_timing.clone(),
    }
}
