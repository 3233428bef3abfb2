//! Measuring a plan of copies and fills.

use ntcopy_judge::stats::{THROUGHPUT, rate};
use ntcopy_record::units::Bytes;
use ntcopy_record::{ExperimentKind, Mode, Params, Sample};

use crate::experiments::bulk::plan::{BulkCell, BulkPlan};
use crate::experiments::bulk::run::{Setup, Traffic, Worker, page_way_unavailable};
use crate::experiments::bulk::task::{ReadBack, Task, Way};
use crate::run::{Failure, Stop};
use crate::sample::driver::{
    At, Context, Experiment, Groups, Halt, Lanes, Recording, available, index,
};
use crate::sample::{MeasureError, Outcome, named};

struct Workers {
    plain: Worker,
    /// With the corrected threshold, or why there is none.
    tuned: Result<Worker, String>,
}

impl Experiment for BulkPlan {
    fn identity(&self) -> (ExperimentKind, Vec<Mode>) {
        (self.experiment.clone(), named(&self.ways))
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
                    let params = cell.params(&plan);
                    Ok(recording.leave_out(index(number), params, &plan.ways, why)?)
                }
                None => measure_cell(&plan, index(number), &mut workers, recording),
            }
        })?;
        recording.end()
    }
}

fn start(plan: &BulkPlan, recording: &Recording<'_>) -> Result<Workers, Failure> {
    let (args, patience) = (&recording.options.worker_args, recording.patience());
    let setup = |tuned_threshold_bytes| Setup { args, patience, tuned_threshold_bytes };
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

/// The ways of one cell.
struct WayLanes<'a> {
    plan: &'a BulkPlan,
    cell: &'a BulkCell,
    number: u32,
    workers: &'a mut Workers,
    stop: &'a Stop,
}

fn measure_cell(
    plan: &BulkPlan,
    number: u32,
    workers: &mut Workers,
    recording: &mut Recording<'_>,
) -> Result<(), Halt> {
    let cell = &plan.cells[number as usize];
    let stop = recording.stop;
    let mut lanes = WayLanes { plan, cell, number, workers, stop };
    let what = what(cell);
    recording.at(&format!("{what}: checking every byte"));
    let (params, alive) = lanes.verify(recording)?;
    recording.cell(number, params)?;
    for way in &plan.ways {
        if let Some(why) = cell.not_for(*way) {
            recording.unavailable(way, why, Some(number))?;
        }
    }
    let BulkPlan { ways: modes, pairs, .. } = plan;
    let groups = Groups { modes, alive, cells: &[(number, &what)], pairs: *pairs };
    recording.groups(&mut lanes, groups)?;
    Ok(stop.check()?)
}

impl Lanes for WayLanes<'_> {
    type Mode = Way;

    fn figure(&self, sample: &Sample) -> Option<f64> {
        rate(&self.plan.experiment, sample, THROUGHPUT)
    }

    fn sample(&mut self, way: Way, at: At) -> Result<Sample, Failure> {
        self.stop.check()?;
        let (plan, cell) = (self.plan, self.cell);
        let Traffic { bytes, elapsed_ns, counters } = self.worker(way).sample(way, plan, cell)?;
        Ok(Sample { counters, ..at.sample(way, bytes, elapsed_ns) })
    }
}

impl WayLanes<'_> {
    /// Has every way that has something to say here compare every byte; gives the cell's parameters,
    /// and the ways that did not fail.
    fn verify(&mut self, recording: &mut Recording<'_>) -> Result<(Params, Vec<Way>), Halt> {
        let mut params = self.cell.params(self.plan);
        let ways = self.plan.ways.iter().copied().filter(|way| self.cell.not_for(*way).is_none());
        let ways: Vec<Way> = ways.collect();
        for worker in [Some(&mut self.workers.plain), self.workers.tuned.as_mut().ok()] {
            if let Some(Err(failure)) = worker.map(|worker| worker.cell(self.cell)) {
                self.stop.check()?;
                for way in ways {
                    recording.error(self.number, way, &failure)?;
                }
                return Ok((params, Vec::new()));
            }
        }
        let mut alive = Vec::new();
        for way in ways {
            self.stop.check()?;
            match self.worker(way).verify(way, recording.options.spoil) {
                Ok(path) => {
                    params.extend(path.map(|path| (format!("{way}_path"), path.into())));
                    alive.push(way);
                }
                Err(failure) => {
                    let at = At { cell: self.number, ..At::default() };
                    self.failed(way, at, failure, recording)?;
                }
            }
        }
        Ok((params, alive))
    }

    fn worker(&mut self, way: Way) -> &mut Worker {
        match (way, &mut self.workers.tuned) {
            (Way::LibcTuned, Ok(worker)) => worker,
            _ => &mut self.workers.plain,
        }
    }
}

fn what(cell: &BulkCell) -> String {
    let size = Bytes(cell.size_bytes);
    let threads = if cell.threads == 1 { String::new() } else { format!(" x {}", cell.threads) };
    match cell.task {
        Task::Copy { source, destination, offset_bytes, read_back } => {
            let off =
                if offset_bytes > 0 { format!(", {offset_bytes} off") } else { String::new() };
            let read = if read_back == ReadBack::None { "" } else { ", read back" };
            format!("{size}{threads}, {source} to {destination}{off}{read}")
        }
        Task::Fill { .. } => format!("{size}{threads}"),
        Task::Matrix(task) => format!("{} {size}", task.as_str()),
        Task::Pages { action, read_back } => format!("{action} {size}, read back {read_back}"),
    }
}
