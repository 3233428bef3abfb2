//! One cell: check, interleave.

use std::collections::BTreeMap;

use ntcopy_record::stats::{P99, THROUGHPUT, rate};
use ntcopy_record::units::Bytes;
use ntcopy_record::{ExperimentKind, Sample};

use super::{Bench, Lane, Served};
use crate::experiments::http::plan::{HttpCell, HttpForm};
use crate::experiments::http::run::{BodyReader, Client, Meter, Running, Window};
use crate::run::Failure;
use crate::run::proof::Proof;
use crate::run::schedule::Schedule;
use crate::sample::driver::{At, Halt, Lanes, Recording};
use crate::sample::window_sample;

const PROCESSES: [&str; 3] = ["client_cpu", "proxy_cpu", "backend_cpu"];

pub struct WayLanes<'a> {
    bench: &'a Bench<'a>,
    served: &'a Served<'a>,
    cell: &'a HttpCell,
    number: u32,
    /// Requests per 1000 s, of an open cell.
    offered: Option<u64>,
    /// Whether its data set is new: then nothing was started yet.
    is_first: bool,
    lanes: Vec<Lane>,
    /// Requests per 1000 s in each of the baseline's samples.
    rates: Vec<u64>,
}

impl<'a> WayLanes<'a> {
    /// Those of a cell whose line is in the record.
    pub fn new(
        bench: &'a Bench<'a>,
        served: &'a Served<'a>,
        (cell, number): (&'a HttpCell, u32),
        offered: Option<u64>,
        is_first: bool,
    ) -> WayLanes<'a> {
        let (lanes, rates) = (Vec::new(), Vec::new());
        WayLanes { bench, served, cell, number, offered, is_first, lanes, rates }
    }

    /// Starts the daemons, and takes the samples, as often as the plan says; gives the median of
    /// what the baseline was answered, requests per 1000 s.
    pub fn measure(mut self, recording: &mut Recording<'_>) -> Result<Option<u64>, Halt> {
        let plan = self.bench.plan;
        let what = self.what();
        let order: Vec<usize> = (0..self.served.ways.len()).collect();
        let cell = (self.number, plan.pairs);
        recording.share_among(plan.cells.len().saturating_sub(self.number as usize));
        recording.groups(&mut self, (&order, order.clone()), cell, &what)?;
        self.rates.sort_unstable();
        Ok(self.rates.get(self.rates.len() / 2).copied())
    }

    fn lane(&self, index: usize) -> Option<usize> {
        self.lanes.iter().position(|lane| lane.number == index)
    }

    /// Ends the daemons that there are and starts those of each of these ways: which pages and
    /// addresses a process got makes it some hundredths faster or slower for as long as it lives.
    /// Then every way is checked. One that fails is taken out.
    fn start(
        &mut self,
        (pair, order): (u32, &mut Vec<usize>),
        recording: &mut Recording<'_>,
    ) -> Result<(), Halt> {
        self.lanes.clear();
        let served = self.served;
        let folder = |number: usize| served.scratch.path().join(format!("way{number}"));
        for number in 0..served.ways.len() {
            // What is not there need not go.
            let _ = std::fs::remove_dir_all(folder(number));
        }
        for number in std::mem::take(order) {
            match self.bench.start(self.cell, served, number, &folder(number)) {
                Ok(lane) => {
                    self.lanes.push(lane);
                    order.push(number);
                }
                // Nothing was measured yet, and nothing is going to be.
                Err(failure) if self.is_first && pair == 0 => return Err(failure.into()),
                Err(_) if self.bench.stop.signal().is_some() => return Err(Halt::Stopped),
                Err(failure) => {
                    let way = self.bench.plan.name(served.ways[number]);
                    recording.error(self.number, way, &failure)?;
                }
            }
        }
        for lane in 0..self.lanes.len() {
            let (bench, cell) = (self.bench, self.cell);
            if let Err(failure) = prepare(bench, cell, &mut self.lanes[lane]) {
                self.give_up(lane, failure, recording)?;
                order.retain(|number| *number != self.lanes[lane].number);
            }
        }
        Ok(())
    }

    fn what(&self) -> String {
        let HttpCell { object_bytes, connections, form, .. } = self.cell;
        let asks = match form {
            HttpForm::Closed => "without a pause",
            HttpForm::Open => "on a schedule",
        };
        format!("{}, {connections} connections {asks}", Bytes(*object_bytes))
    }

    /// A failure becomes an error row, and nothing is left of the way in this cell.
    fn give_up(
        &mut self,
        lane: usize,
        failure: Failure,
        recording: &mut Recording<'_>,
    ) -> Result<(), Halt> {
        // Calls that wait are interrupted by a signal, and then fail.
        self.bench.stop.check()?;
        let lane = &mut self.lanes[lane];
        let failure = lane.running.blame(failure);
        lane.client = None;
        Ok(recording.error(self.number, self.bench.plan.name(lane.way), &failure)?)
    }

    /// What the clients ask in one sample, and what comes of it.
    fn load(&self, client: &mut Client, running: &Running, pair: u32) -> Result<Window, Failure> {
        let times = self.bench.plan.lengths.of(self.cell.form);
        let cpu = || running.cpu();
        let meter = Meter::new(&cpu).counting(&self.bench.events);
        let Some(offered) = self.offered else {
            return client.closed(times.warm_up, times.sample, meter);
        };
        // Another one in each group, and the same in all of its modes.
        let seed = (u64::from(self.number) << 32) | u64::from(pair);
        let schedule = Schedule::new(seed, offered, times.warm_up, times.sample);
        client.open(&schedule, meter)
    }

    /// One sample of a way: the load, the kernel's counters held against the mode, one object
    /// compared.
    fn requests(&mut self, lane: &mut Lane, at: At) -> Result<Sample, Failure> {
        let bench = self.bench;
        let Lane { way, client, running, .. } = lane;
        let gone = || Failure::Answer("the client is gone".to_owned());
        let client = client.as_mut().ok_or_else(gone)?;
        let proof = Proof::begin(None)?;
        let window = self.load(client, running, at.pair)?;
        let is_whole = window.answers.as_ref().is_none_or(|answers| answers.unanswered == 0);
        // What was given up cannot be held against the counters.
        let counters = if is_whole {
            running.check_proof(&proof, bench.plan.scheme, window.all_bytes)?
        } else {
            BTreeMap::new()
        };
        client.check(1, BodyReader::comparing(false))?;
        if bench.plan.ways.first() == Some(way) {
            let bodies = window.bytes as f64 / self.cell.object_bytes as f64;
            self.rates.push((bodies * 1e12 / window.elapsed_ns as f64) as u64);
        }
        let at = (at, bench.plan.name(*way));
        Ok(window_sample(at, PROCESSES, window, ("latency_ns", counters)))
    }
}

impl Lanes for WayLanes<'_> {
    type Mode = usize;

    fn figure(&self, sample: &Sample) -> Option<f64> {
        let metric = if matches!(self.cell.form, HttpForm::Closed) { THROUGHPUT } else { P99 };
        rate(&ExperimentKind::Http, sample, metric)
    }

    fn begin_group(
        &mut self,
        (_, pair): (u32, u32),
        order: &mut Vec<usize>,
        recording: &mut Recording<'_>,
    ) -> Result<(), Halt> {
        let plan = self.bench.plan;
        if !plan.starts_at(pair) {
            return Ok(());
        }
        recording.at(&format!("{}: starting, checking every byte", self.what()));
        self.start((pair, order), recording)
    }

    fn sample(&mut self, index: usize, at: At) -> Result<Sample, Failure> {
        let gone = || Failure::Answer("its daemons are gone".to_owned());
        let lane = self.lane(index).ok_or_else(gone)?;
        // Apart for a moment: the sample adds to the baseline's rates.
        let mut lanes = std::mem::take(&mut self.lanes);
        let sample = self.requests(&mut lanes[lane], at);
        self.lanes = lanes;
        sample
    }

    fn failed(
        &mut self,
        index: usize,
        _at: At,
        failure: Failure,
        recording: &mut Recording<'_>,
    ) -> Result<bool, Halt> {
        let Some(lane) = self.lane(index) else { return Err(failure.into()) };
        self.give_up(lane, failure, recording)?;
        Ok(false)
    }
}

/// Connects, compares bytes, warms what a new cell has to find warm.
fn prepare(bench: &Bench<'_>, cell: &HttpCell, lane: &mut Lane) -> Result<(), Failure> {
    lane.running.find_clocks()?;
    let mut client = Client::connect(&lane.running, cell, bench.stop)?;
    // storaged verifies an object when it reads it first: no sample is to hold that.
    let objects = cell.objects().max(u64::from(cell.connections));
    client.check(objects, BodyReader::comparing(bench.options.spoil))?;
    lane.client = Some(client);
    Ok(())
}
