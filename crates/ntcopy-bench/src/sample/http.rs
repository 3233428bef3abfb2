//! Measuring a plan of clients, proxies and backends.

mod cell;

use std::path::Path;

use ntcopy_record::{Cell, Line, Machine, RunError, Unavailable};

use super::bulk::Options;
use super::net::{begin, end};
use super::{MeasureError, Outcome, Progress, WriteError, Writer};
use crate::experiment::http::{Scheme, Stack, Way};
use crate::plan::http::{HttpCell, HttpForm, HttpPlan};
use crate::run::http::{
    self, Certificate, Client, Data, Events, Links, Running, Scratch, Setup, Victim,
};
use crate::run::{Failure, Stop};

/// One way while it is measured: its daemons, and the client's connections to them.
struct Lane {
    way: Way,
    /// Its place among the ways.
    number: u8,
    /// Goes first: a proxy that ends does not wait for it.
    client: Option<Client>,
    running: Running,
}

/// What daemons are started with, for as long as cells ask for the same data.
struct Served<'a> {
    /// The ways that can be had here.
    ways: &'a [Way],
    scratch: &'a Scratch,
    data: &'a Data,
    certificate: Option<Certificate>,
}

struct Bench<'a> {
    plan: &'a HttpPlan,
    options: &'a Options,
    stop: &'a Stop,
    open_files: u64,
    /// Devices between proxies and backends, where they are that.
    links: Option<Links>,
    /// Walks through its hot set on the backends' CPU, if that is asked.
    victim: Option<Victim>,
    /// Hardware counters: opened before any daemon, they are of all of them.
    events: Events,
    /// Requests per 1000 s that the baseline was answered in the last closed cell.
    baseline_rate: Option<u64>,
}

/// Measures the plan and writes the record.
///
/// What goes wrong in a cell becomes an error row and the rest is measured. A
/// signal ends the measurement early; what was measured stays. The daemons end
/// in either case, and their folder goes.
///
/// # Errors
///
/// When nothing could be begun, or the record could not be written.
pub fn measure(
    plan: &HttpPlan,
    machine: Machine,
    options: &Options,
    stop: &Stop,
    progress: &mut Progress,
) -> Result<Outcome, MeasureError> {
    let open_files = http::allow_files(plan).map_err(MeasureError::Start)?;
    let (ways, missing) = available(plan).map_err(MeasureError::Start)?;
    http::place_client(plan).map_err(MeasureError::Start)?;
    let links = Links::make(plan, &ways).map_err(MeasureError::Start)?;
    let victim = plan.hot_set.as_ref().map(Victim::new).transpose().map_err(MeasureError::Start)?;
    let names = (plan.experiment(), plan.baseline());
    let (place, mut writer) = begin(names, machine, missing, options)?;
    progress.begin(plan.cells.len() as u64 * u64::from(plan.pairs) * plan.width(ways.len()));
    let events = Events::open();
    let baseline_rate = None;
    let mut bench = Bench { plan, options, stop, open_files, links, victim, events, baseline_rate };
    let mut number = 0;
    while let Some(first) = plan.cells.get(number) {
        let alike = plan.cells[number..].iter().take_while(|cell| cell.has_data_of(first)).count();
        match bench.group(number..number + alike, &ways, &mut writer, progress) {
            Ok(()) => {}
            Err(Halt::Stopped) => break,
            Err(Halt::Write(error)) => return Err(error.into()),
            Err(Halt::Start(failure)) => return Err(MeasureError::Start(failure)),
        }
        number += alike;
    }
    progress.end();
    end(place, writer, stop)
}

/// Why a group of cells cannot go on at all.
enum Halt {
    /// A signal came; it is in [`Stop`].
    Stopped,
    Write(WriteError),
    /// Not even the data set could be made.
    Start(Failure),
}

impl From<WriteError> for Halt {
    fn from(error: WriteError) -> Self {
        Halt::Write(error)
    }
}

/// The ways that can be had here, and lines for those that can't.
fn available(plan: &HttpPlan) -> Result<(Vec<Way>, Vec<Unavailable>), Failure> {
    let (mut here, mut missing) = (Vec::new(), Vec::new());
    for way in &plan.ways {
        match http::unavailable(*way, plan.scheme)? {
            None => here.push(*way),
            // Without what all are compared with there is nothing to measure.
            Some(why) if plan.ways.first() == Some(way) => return Err(Failure::Limit(why)),
            Some(why) => {
                missing.push(Unavailable { mode: plan.name(*way), why, cell: None });
            }
        }
    }
    Ok((here, missing))
}

impl Bench<'_> {
    /// Cells that share a data set.
    fn group(
        &mut self,
        cells: std::ops::Range<usize>,
        ways: &[Way],
        writer: &mut Writer,
        progress: &mut Progress,
    ) -> Result<(), Halt> {
        let first = &self.plan.cells[cells.start];
        progress.at("making the data set", self.done(cells.start, ways));
        let scratch =
            Scratch::new(self.plan.data_bytes(first)).map_err(|failure| self.halt(failure))?;
        let stacks: Vec<Stack> = ways.iter().map(|way| way.stack).collect();
        let patience = (self.options.patience, self.stop);
        let data =
            Data::make(first, &scratch, &stacks, patience).map_err(|failure| self.halt(failure))?;
        let certificate = match self.plan.scheme {
            Scheme::Plain => None,
            _ => Some(Certificate::make(scratch.path()).map_err(|failure| self.halt(failure))?),
        };
        let served = Served { ways, scratch: &scratch, data: &data, certificate };
        for number in cells.clone() {
            let is_first = number == cells.start;
            self.cell(number, is_first, &served, writer, progress)?;
        }
        Ok(())
    }

    /// Samples of the cells before this one.
    fn done(&self, number: usize, ways: &[Way]) -> u64 {
        number as u64 * u64::from(self.plan.pairs) * self.plan.width(ways.len())
    }

    /// Starts a way's daemons, in a folder of their own.
    fn start(
        &self,
        cell: &HttpCell,
        served: &Served<'_>,
        number: usize,
        folder: &Path,
    ) -> Result<Lane, Failure> {
        let way = served.ways[number];
        let number = u8::try_from(number).unwrap_or(u8::MAX);
        std::fs::create_dir(folder)
            .map_err(Failure::io(format!("cannot make {}", folder.display())))?;
        let setup = Setup {
            plan: self.plan,
            cell,
            way,
            folder,
            certificate: served.certificate.as_ref(),
            open_files: self.open_files,
            patience: self.options.patience,
            link: self.links.as_ref().map(|links| links.of(number)),
        };
        let running = Running::start(&setup, served.data, self.stop)?;
        Ok(Lane { way, number, client: None, running })
    }

    /// One error row.
    fn failed(&self, cell: u32, way: Way, failure: &Failure) -> Line {
        Line::Error(RunError {
            cell,
            mode: self.plan.name(way),
            what: failure.to_string(),
            wrong_byte: matches!(failure, Failure::WrongByte { .. }),
        })
    }

    fn cell(
        &mut self,
        number: usize,
        is_first: bool,
        served: &Served<'_>,
        writer: &mut Writer,
        progress: &mut Progress,
    ) -> Result<(), Halt> {
        let plan = self.plan;
        let cell = &plan.cells[number];
        let index = u32::try_from(number).unwrap_or(u32::MAX);
        let offered = cell.form.offered(self.plan.rate, self.baseline_rate);
        let params = plan.params(cell, offered.clone().unwrap_or(None));
        writer.line(&Line::Cell(Cell { cell: index, params }))?;
        let offered = match offered {
            Ok(offered) => offered,
            Err(why) => {
                return served.ways.iter().try_for_each(|way| {
                    let (mode, why) = (plan.name(*way), why.clone());
                    let line = Unavailable { mode, why, cell: Some(index) };
                    Ok(writer.line(&Line::Unavailable(line))?)
                });
            }
        };
        let mut run = cell::CellRun::new(self, index, cell, offered, is_first);
        run.all(served, writer, progress)?;
        let rate = run.baseline_rate();
        if cell.form == HttpForm::Closed {
            self.baseline_rate = rate;
        }
        Ok(())
    }
}

impl Bench<'_> {
    /// After a signal whatever failed did so because of it: calls that wait are interrupted.
    fn halt(&self, failure: Failure) -> Halt {
        match (failure, self.stop.signal()) {
            (Failure::Stopped(_), _) | (_, Some(_)) => Halt::Stopped,
            (failure, None) => Halt::Start(failure),
        }
    }
}
