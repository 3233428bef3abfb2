//! Measuring a plan of clients, proxies and backends.

mod cell;

use std::ops::Range;

use ntcopy_record::ExperimentKind;

use super::run::{self, Data, Scratch};
use super::{HttpForm, HttpPlan, Stack, Way};
use crate::run::meter::{Events, open_events};
use crate::run::{Failure, Stop, stay_on};
use crate::sample::driver::{Context, Experiment, Halt, Options, Recording, available, index};
use crate::sample::{MeasureError, Outcome};

/// What daemons are started with, for as long as cells ask for the same data.
struct Served<'a> {
    ways: &'a [Way],
    scratch: &'a Scratch,
    data: &'a Data,
}

struct Bench<'a> {
    plan: &'a HttpPlan,
    options: &'a Options,
    stop: &'a Stop,
    open_files: u64,
    /// Hardware counters: opened before any daemon, they are of all of them.
    events: Events,
    /// Requests per 1000 s that the baseline was answered in the last closed cell.
    baseline_rate: Option<u64>,
}

impl Experiment for HttpPlan {
    fn identity(&self) -> (ExperimentKind, String) {
        (ExperimentKind::Http, HttpPlan::baseline(self))
    }

    /// The daemons end in any case, and their folder goes.
    fn measure(&self, context: Context<'_>) -> Result<Outcome, MeasureError> {
        let open_files = run::allow_files(self)?;
        let (ways, missing) = available(&self.ways, run::unavailable)?;
        // Without what all are compared with there is nothing to measure.
        let is_baseline = |(way, _): &&(Way, String)| self.ways.first() == Some(way);
        if let Some((_, why)) = missing.iter().find(is_baseline) {
            return Err(Failure::Limit(why.clone()).into());
        }
        stay_on(self.places.map(|[client, ..]| client))?;
        let mut recording = Recording::begin(self, context)?;
        recording.missing(missing.into_iter().map(|(way, why)| (self.name(way), why)))?;
        recording.expect(self.samples() / self.ways.len() as u64 * ways.len() as u64);
        let mut bench = Bench {
            plan: self,
            options: recording.options,
            stop: recording.stop,
            open_files,
            events: open_events(),
            baseline_rate: None,
        };
        // Cells that follow each other and have the same data share it.
        let is_first = |number: &usize| {
            *number == 0 || !self.cells[*number].has_data_of(&self.cells[*number - 1])
        };
        let firsts: Vec<usize> = (0..self.cells.len()).filter(is_first).collect();
        recording.cells(firsts.iter().copied(), |recording, first| {
            let next = firsts.iter().copied().find(|other| *other > first);
            bench.group(first..next.unwrap_or(self.cells.len()), &ways, recording)
        })?;
        recording.end()
    }
}

impl Bench<'_> {
    fn group(
        &mut self,
        cells: Range<usize>,
        ways: &[Way],
        recording: &mut Recording<'_>,
    ) -> Result<(), Halt> {
        let first = &self.plan.cells[cells.start];
        recording.at("making the data set");
        let scratch = Scratch::new(self.plan.data_bytes(first))?;
        let stacks: Vec<Stack> = ways.iter().map(|way| way.stack).collect();
        let patience = (self.options.patience, self.stop);
        let data = Data::make(first, &scratch, &stacks, patience)?;
        let served = Served { ways, scratch: &scratch, data: &data };
        for number in cells.clone() {
            self.cell(number, number == cells.start, &served, recording)?;
        }
        Ok(())
    }

    fn cell(
        &mut self,
        number: usize,
        is_first: bool,
        served: &Served<'_>,
        recording: &mut Recording<'_>,
    ) -> Result<(), Halt> {
        let plan = self.plan;
        let cell = &plan.cells[number];
        let index = index(number);
        let offered = cell.form.offered(plan.rate, self.baseline_rate);
        let offered = match offered {
            Ok(offered) => offered,
            Err(why) => {
                let names = served.ways.iter().map(|way| plan.name(*way));
                return Ok(recording.leave_out((index, plan.params(cell, None)), names, &why)?);
            }
        };
        recording.cell(index, plan.params(cell, offered))?;
        let rate = cell::measure(self, served, number, (offered, is_first), recording)?;
        if cell.form == HttpForm::Closed {
            self.baseline_rate = rate;
        }
        Ok(())
    }
}
