//! Measuring one cell of copies or fills.

use ntcopy_record::stats::{THROUGHPUT, rate};
use ntcopy_record::units::Bytes;
use ntcopy_record::{Params, Sample};

use super::super::driver::{At, Halt, Lanes, Recording};
use super::Workers;
use crate::experiment::bulk::{Task, Way};
use crate::plan::bulk::{BulkCell, BulkPlan};
use crate::run::bulk::{Traffic, Worker};
use crate::run::{Failure, Stop};

struct WayLanes<'a> {
    plan: &'a BulkPlan,
    cell: &'a BulkCell,
    number: u32,
    workers: &'a mut Workers,
    stop: &'a Stop,
}

pub fn measure(
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
    recording.groups(&mut lanes, (&plan.ways, alive), (&[(number, &what)], plan.pairs))?;
    Ok(stop.check()?)
}

impl Lanes for WayLanes<'_> {
    type Mode = Way;

    fn figure(&self, sample: &Sample) -> Option<f64> {
        rate(&self.plan.experiment, sample, THROUGHPUT)
    }

    fn sample(&mut self, way: Way, at: At) -> Result<Sample, Failure> {
        self.stop.check()?;
        let about = (self.plan, self.cell);
        let Traffic { bytes, elapsed_ns, counters } = self.worker(way).sample(way, about)?;
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
        Task::Copy { source, destination } => {
            format!("{size}{threads}, {} to {}", source.as_str(), destination.as_str())
        }
        Task::Fill { .. } => format!("{size}{threads}"),
        Task::Matrix(task) => format!("{} {size}", task.as_str()),
        Task::Pages { action, read_back } => format!("{action} {size}, read back {read_back}"),
    }
}
