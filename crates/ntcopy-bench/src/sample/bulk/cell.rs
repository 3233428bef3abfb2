//! Measuring one cell of copies or fills.

use ntcopy_record::stats::{THROUGHPUT, rate};
use ntcopy_record::units::Bytes;
use ntcopy_record::{Params, Sample};

use super::super::driver::{At, Halt, Lanes, Recording};
use super::Workers;
use crate::experiment::bulk::{Task, Way};
use crate::plan::bulk::{BulkCell, BulkPlan};
use crate::run::bulk::{Timing, Traffic, Worker};
use crate::run::{Failure, Stop};

struct WayLanes<'a> {
    plan: &'a BulkPlan,
    cell: &'a BulkCell,
    number: u32,
    workers: &'a mut Workers,
    stop: &'a Stop,
    /// Ways that have something to say here and have not failed.
    alive: Vec<Way>,
}

/// Verifies, warms up, and takes the cell's samples; `before` samples are done with.
pub fn measure(
    plan: &BulkPlan,
    number: u32,
    workers: &mut Workers,
    before: u64,
    recording: &mut Recording<'_>,
) -> Result<(), Halt> {
    let cell = &plan.cells[number as usize];
    let alive = plan.ways.iter().copied().filter(|way| cell.not_for(*way).is_none()).collect();
    let stop = recording.stop;
    let mut lanes = WayLanes { plan, cell, number, workers, stop, alive };
    let what = what(cell);
    recording.at(&format!("{what}: checking every byte"), before);
    let params = lanes.verify(recording)?;
    recording.cell(number, params)?;
    for way in &plan.ways {
        if let Some(why) = cell.not_for(*way) {
            recording.unavailable(way, why, Some(number))?;
        }
    }
    recording.groups(&mut lanes, &plan.ways, (number, plan.pairs), (&what, before))?;
    Ok(stop.check()?)
}

impl Lanes for WayLanes<'_> {
    type Mode = Way;

    fn alive(&mut self) -> &mut Vec<Way> {
        &mut self.alive
    }

    fn figure(&self, sample: &Sample) -> Option<f64> {
        rate(&self.plan.experiment, sample, THROUGHPUT)
    }

    fn sample(&mut self, way: Way, at: At) -> Result<Sample, Failure> {
        self.stop.check()?;
        let (plan, is_cold) = (self.plan, self.cell.is_cold());
        let timing = Timing {
            warm_up: plan.warm_up,
            warm_up_bytes: if is_cold { plan.cold_warm_up_bytes } else { 0 },
            sample: plan.sample,
        };
        let Traffic { bytes, elapsed_ns, counters } = self.worker(way).sample(way, timing)?;
        Ok(Sample { counters, ..at.sample(way, bytes, elapsed_ns) })
    }
}

impl WayLanes<'_> {
    /// Has every way compare every byte; gives the cell's parameters.
    fn verify(&mut self, recording: &mut Recording<'_>) -> Result<Params, Halt> {
        let mut params = self.cell.params(self.plan);
        let ways = self.alive.clone();
        for worker in [Some(&mut self.workers.plain), self.workers.tuned.as_mut().ok()] {
            if let Some(Err(failure)) = worker.map(|worker| worker.cell(self.cell)) {
                self.stop.check()?;
                for way in ways {
                    recording.error(self.number, way, &failure)?;
                }
                self.alive.clear();
                return Ok(params);
            }
        }
        for way in ways {
            self.stop.check()?;
            match self.worker(way).verify(way, recording.options.spoil) {
                Ok(Some(path)) => {
                    params.insert(format!("{way}_path"), path.into());
                }
                Ok(None) => {}
                Err(failure) => {
                    let at = At { cell: self.number, ..At::default() };
                    self.failed(way, at, failure, recording)?;
                }
            }
        }
        if matches!(self.cell.task, Task::Fill { .. }) {
            params.insert("hardware_counters".to_owned(), self.counters().into());
        }
        Ok(params)
    }

    fn worker(&mut self, way: Way) -> &mut Worker {
        match (way, &mut self.workers.tuned) {
            (Way::LibcTuned, Ok(worker)) => worker,
            _ => &mut self.workers.plain,
        }
    }

    /// What stands in the record about hardware counters.
    fn counters(&self) -> String {
        let mut groups: Vec<(Option<&String>, Vec<&str>)> = Vec::new();
        for (name, why) in self.workers.plain.counters() {
            match groups.iter_mut().find(|(other, _)| *other == why.as_ref()) {
                Some((_, names)) => names.push(name),
                None => groups.push((why.as_ref(), vec![name])),
            }
        }
        let words = groups.iter().map(|(why, names)| match why {
            None => format!("{} counted", names.join(", ")),
            Some(why) => format!("{} not available here: {why}", names.join(", ")),
        });
        words.collect::<Vec<String>>().join("; ")
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
