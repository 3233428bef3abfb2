//! Measuring one cell of copies or fills.

use ntcopy_record::units::Bytes;
use ntcopy_record::{Cell, Line, Params, RunError, Sample, Unavailable};

use super::super::{Progress, WriteError, Writer};
use super::{Options, Workers};
use crate::experiment::bulk::{Task, Way};
use crate::plan::bulk::{BulkCell, BulkPlan};
use crate::plan::group_order;
use crate::run::bulk::{Timing, Worker};
use crate::run::{Failure, Stop};

/// How a cell ended.
pub enum Ended {
    /// Measured, or given up with error rows.
    Done,
    /// Cut short by a signal.
    Stopped(i32),
}

struct Bench<'a> {
    plan: &'a BulkPlan,
    cell: &'a BulkCell,
    number: u32,
    workers: &'a mut Workers,
    stop: &'a Stop,
    /// Ways that have something to say here and have not failed.
    alive: Vec<Way>,
    /// Error rows that are not written yet.
    errors: Vec<RunError>,
}

/// Verifies, warms up, and takes the cell's samples; `before` samples are done with.
#[allow(clippy::too_many_arguments)]
pub fn measure(
    plan: &BulkPlan,
    number: usize,
    options: &Options,
    workers: &mut Workers,
    stop: &Stop,
    writer: &mut Writer,
    progress: &mut Progress,
    before: u64,
) -> Result<Ended, WriteError> {
    let cell = &plan.cells[number];
    let alive = plan.ways.iter().copied().filter(|way| cell.not_for(*way).is_none()).collect();
    let number = u32::try_from(number).unwrap_or(u32::MAX);
    let mut bench = Bench { plan, cell, number, workers, stop, alive, errors: Vec::new() };
    let what = what(cell);
    progress.at(&format!("{what}: checking every byte"), before);
    let params = match bench.verify(options.spoil) {
        Ok(params) => params,
        Err(signal) => return Ok(Ended::Stopped(signal)),
    };
    writer.line(&Line::Cell(Cell { cell: number, params }))?;
    for way in &plan.ways {
        if let Some(why) = cell.not_for(*way) {
            let line = Unavailable { mode: way.to_string(), why, cell: Some(number) };
            writer.line(&Line::Unavailable(line))?;
        }
    }
    bench.write_errors(writer)?;
    for pair in 0..plan.pairs {
        for (position, way) in (0..).zip(group_order(&plan.ways, pair)) {
            if let Some(signal) = stop.signal() {
                return Ok(Ended::Stopped(signal));
            }
            let done = u64::from(pair) * plan.ways.len() as u64 + u64::from(position);
            progress.at(&what, before + done);
            if bench.alive.contains(&way) {
                let sample = bench.sample(pair, position, way);
                if let Some(sample) = sample {
                    writer.line(&Line::Sample(sample))?;
                }
                bench.write_errors(writer)?;
            }
        }
    }
    Ok(stop.signal().map_or(Ended::Done, Ended::Stopped))
}

impl Bench<'_> {
    /// Has every way compare every byte; gives the cell's parameters, or the signal that came.
    fn verify(&mut self, spoil: bool) -> Result<Params, i32> {
        let mut params = self.cell.params(self.plan);
        let ways = self.alive.clone();
        for worker in [Some(&mut self.workers.plain), self.workers.tuned.as_mut().ok()] {
            if let Some(Err(failure)) = worker.map(|worker| worker.cell(self.cell)) {
                ways.iter().for_each(|way| self.errors.push(error(self.number, *way, &failure)));
                self.alive.clear();
                return self.stop.signal().map_or(Ok(params), Err);
            }
        }
        for way in ways {
            self.stop.signal().map_or(Ok(()), Err)?;
            match self.worker(way).verify(way, spoil) {
                Ok(Some(path)) => {
                    params.insert(format!("{way}_path"), path.into());
                }
                Ok(None) => {}
                Err(failure) => self.failed(way, &failure),
            }
        }
        if matches!(self.cell.task, Task::Fill { .. }) {
            params.insert("hardware_counters".to_owned(), self.counters().into());
        }
        Ok(params)
    }

    fn sample(&mut self, pair: u32, position: u32, way: Way) -> Option<Sample> {
        let (plan, cell) = (self.plan, self.cell.is_cold());
        let timing = Timing {
            warm_up: plan.warm_up,
            warm_up_bytes: if cell { plan.cold_warm_up_bytes } else { 0 },
            sample: plan.sample,
        };
        match self.worker(way).sample(way, timing) {
            Ok(traffic) => Some(Sample {
                cell: self.number,
                pair,
                position,
                mode: way.to_string(),
                bytes: traffic.bytes,
                elapsed_ns: traffic.elapsed_ns,
                phases_ns: [].into(),
                counters: traffic.counters,
                series: [].into(),
            }),
            Err(failure) => {
                self.failed(way, &failure);
                None
            }
        }
    }

    fn worker(&mut self, way: Way) -> &mut Worker {
        match (way, &mut self.workers.tuned) {
            (Way::LibcTuned, Ok(worker)) => worker,
            _ => &mut self.workers.plain,
        }
    }

    /// One error row, and the way is not tried again in this cell: nothing here fails by chance.
    fn failed(&mut self, way: Way, failure: &Failure) {
        if !matches!(failure, Failure::Stopped(_)) {
            self.errors.push(error(self.number, way, failure));
        }
        self.alive.retain(|other| *other != way);
    }

    fn write_errors(&mut self, writer: &mut Writer) -> Result<(), WriteError> {
        self.errors.drain(..).try_for_each(|error| writer.line(&Line::Error(error)))
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

fn error(cell: u32, way: Way, failure: &Failure) -> RunError {
    RunError {
        cell,
        mode: way.to_string(),
        what: failure.to_string(),
        wrong_byte: matches!(failure, Failure::WrongCopy { .. }),
    }
}

/// The cell in a few words.
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
