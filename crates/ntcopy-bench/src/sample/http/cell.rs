//! One cell: check, interleave.

use std::collections::BTreeMap;

use ntcopy_record::units::Bytes;
use ntcopy_record::{Line, Sample};

use super::{Bench, Halt, Lane, Served};
use crate::experiment::Mode;
use crate::experiment::http::Way;
use crate::plan::group_order;
use crate::plan::http::{HttpCell, HttpForm};
use crate::run::Failure;
use crate::run::http::{Client, Look, Meter, Proof, Running, Schedule, Walking, Window};
use crate::sample::{Progress, Writer};

/// A cell being measured.
pub struct CellRun<'a> {
    bench: &'a Bench<'a>,
    number: u32,
    cell: &'a HttpCell,
    /// Requests per 1000 s, of an open cell.
    offered: Option<u64>,
    /// Whether its data set is new: then nothing was started yet.
    is_first: bool,
    /// Ways that have not failed.
    alive: Vec<Way>,
    /// Requests per 1000 s in each of the baseline's samples.
    rates: Vec<u64>,
}

impl<'a> CellRun<'a> {
    /// Of a cell whose line is in the record.
    pub fn new(
        bench: &'a Bench<'a>,
        number: u32,
        cell: &'a HttpCell,
        offered: Option<u64>,
        is_first: bool,
    ) -> CellRun<'a> {
        CellRun { bench, number, cell, offered, is_first, alive: Vec::new(), rates: Vec::new() }
    }

    /// The median of what the baseline was answered, requests per 1000 s.
    pub fn baseline_rate(&self) -> Option<u64> {
        let mut rates = self.rates.clone();
        rates.sort_unstable();
        rates.get(rates.len() / 2).copied()
    }

    /// Starts the daemons, and takes the samples, as often as the plan says.
    pub fn all(
        &mut self,
        served: &Served<'_>,
        writer: &mut Writer,
        progress: &mut Progress,
    ) -> Result<(), Halt> {
        let plan = self.bench.plan;
        let width = plan.width(served.ways.len());
        let before = u64::from(self.number) * u64::from(plan.pairs) * width;
        let what = self.what();
        // Behind the last way: a victim with nobody at work beside it.
        let order: Vec<usize> = (0..width as usize).collect();
        self.alive = served.ways.to_vec();
        let mut lanes: Vec<Lane> = Vec::new();
        for pair in 0..plan.pairs {
            let order = group_order(&order, pair);
            let done = before + u64::from(pair) * width;
            if plan.starts_at(pair) {
                progress.at(&format!("{what}: starting, checking every byte"), done);
                self.start(&mut lanes, served, (pair, &order), writer)?;
            }
            for (position, index) in (0..).zip(order) {
                progress.at(&what, done + u64::from(position));
                if index == served.ways.len() {
                    self.idle((pair, position), writer)?;
                    continue;
                }
                let lane = lanes.iter_mut().find(|lane| usize::from(lane.number) == index);
                let Some(lane) = lane.filter(|lane| self.alive.contains(&lane.way)) else {
                    continue;
                };
                let sample = self.sample(lane, pair, position);
                match self.keep(lane, sample, writer)? {
                    Some(sample) => writer.line(&Line::Sample(sample))?,
                    None => self.alive.retain(|way| *way != lane.way),
                }
            }
        }
        Ok(())
    }

    /// Ends the daemons that there are and starts those of every way that has not failed: which
    /// pages and addresses a process got makes it some hundredths faster or slower for as long as
    /// it lives. Then every way is checked.
    fn start(
        &mut self,
        lanes: &mut Vec<Lane>,
        served: &Served<'_>,
        (pair, order): (u32, &[usize]),
        writer: &mut Writer,
    ) -> Result<(), Halt> {
        lanes.clear();
        let folder = |number: usize| served.scratch.path().join(format!("way{number}"));
        for number in 0..served.ways.len() {
            // What is not there need not go.
            let _ = std::fs::remove_dir_all(folder(number));
        }
        let numbers = order.iter().copied().filter(|number| *number < served.ways.len());
        for number in numbers {
            let way = served.ways[number];
            if !self.alive.contains(&way) {
                continue;
            }
            match self.bench.start(self.cell, served, number, &folder(number)) {
                Ok(lane) => lanes.push(lane),
                // Nothing was measured yet, and nothing is going to be.
                Err(failure) if self.is_first && pair == 0 => return Err(self.bench.halt(failure)),
                Err(_) if self.bench.stop.signal().is_some() => return Err(Halt::Stopped),
                Err(failure) => {
                    writer.line(&self.bench.failed(self.number, way, &failure))?;
                    self.alive.retain(|alive| *alive != way);
                }
            }
        }
        for lane in lanes {
            let ready = self.prepare(lane);
            if self.keep(lane, ready, writer)?.is_none() {
                self.alive.retain(|way| *way != lane.way);
            }
        }
        Ok(())
    }

    /// The cell in a few words, for the bar.
    fn what(&self) -> String {
        let HttpCell { object_bytes, connections, form, .. } = self.cell;
        let asks = match form {
            HttpForm::Closed => "without a pause",
            HttpForm::Open => "on a schedule",
        };
        format!("{}, {connections} connections {asks}", Bytes(*object_bytes))
    }

    /// A failure becomes an error row, and nothing is left of the way in this cell.
    fn keep<T>(
        &self,
        lane: &mut Lane,
        result: Result<T, Failure>,
        writer: &mut Writer,
    ) -> Result<Option<T>, Halt> {
        match result {
            Ok(value) => Ok(Some(value)),
            // Calls that wait are interrupted by a signal, and then fail.
            Err(_) if self.bench.stop.signal().is_some() => Err(Halt::Stopped),
            Err(failure) => {
                let failure = lane.running.blame(failure);
                lane.client = None;
                writer.line(&self.bench.failed(self.number, lane.way, &failure))?;
                Ok(None)
            }
        }
    }

    /// Connects, compares bytes, warms what a new cell has to find warm.
    fn prepare(&self, lane: &mut Lane) -> Result<(), Failure> {
        let bench = self.bench;
        lane.running.find_clocks()?;
        if let Some(links) = &bench.links {
            links.of(lane.number).is_as(lane.way.mode)?;
        }
        let mut client = Client::connect(&lane.running, self.cell, bench.stop)?;
        let connections = u64::from(self.cell.connections);
        // storaged verifies an object when it reads it first: no sample is to hold that.
        let objects = self.cell.objects().max(connections);
        client.check(objects, Look::comparing(bench.options.spoil))?;
        lane.client = Some(client);
        Ok(())
    }

    /// One sample: the load, the kernel's counters held against the mode, one object compared.
    fn sample(&mut self, lane: &mut Lane, pair: u32, position: u32) -> Result<Sample, Failure> {
        let bench = self.bench;
        let running = &lane.running;
        let gone = || Failure::Answer("the client is gone".to_owned());
        let client = lane.client.as_mut().ok_or_else(gone)?;
        let proof = Proof::begin(running, bench.plan.scheme)?;
        let (window, walks) = match &bench.victim {
            None => (self.load(client, running, pair, None)?, Vec::new()),
            Some(victim) => {
                victim.beside(|walking| self.load(client, running, pair, Some(walking)))?
            }
        };
        let is_whole = window.answers.as_ref().is_none_or(|answers| answers.unanswered == 0);
        // What was given up is nobody's to count.
        let mut counters =
            if is_whole { proof.check(running, window.all_bytes)? } else { BTreeMap::new() };
        let series = series(&window, !counters.is_empty(), walks);
        // Of what was clocked, given up or not.
        counters.extend(window.events.clone());
        client.check(1, Look::comparing(false))?;
        if self.bench.plan.ways.first() == Some(&lane.way) {
            let bodies = window.bytes as f64 / self.cell.object_bytes as f64;
            self.rates.push((bodies * 1e12 / window.elapsed_ns as f64) as u64);
        }
        Ok(Sample {
            cell: self.number,
            pair,
            position,
            mode: bench.plan.name(lane.way),
            bytes: window.bytes,
            elapsed_ns: window.elapsed_ns,
            phases_ns: phases(&window),
            series,
            counters,
        })
    }

    /// What the clients ask in one sample, and what comes of it.
    fn load(
        &self,
        client: &mut Client,
        running: &Running,
        pair: u32,
        walking: Option<&Walking<'_>>,
    ) -> Result<Window, Failure> {
        let times = self.bench.plan.times(self.cell.form);
        let cpu = || {
            let cpu = running.cpu();
            cpu.map(|cpu| walking.map_or(cpu, |walking| walking.read(cpu)))
        };
        let meter = Meter::new(&cpu).counting(&self.bench.events);
        let Some(offered) = self.offered else {
            return client.closed(times.warm_up, times.sample, meter);
        };
        // Another one in each group, and the same in all of its modes.
        let seed = (u64::from(self.number) << 32) | u64::from(pair);
        let schedule = Schedule::new(seed, offered, times.warm_up, times.sample);
        client.open(&schedule, meter)
    }

    /// One sample of a victim that is left alone, if there is one.
    fn idle(&self, (pair, position): (u32, u32), writer: &mut Writer) -> Result<(), Halt> {
        let Some(victim) = &self.bench.victim else { return Ok(()) };
        let times = self.bench.plan.times(self.cell.form);
        let alone = victim.alone(times.warm_up, times.sample, self.bench.stop);
        let (elapsed_ns, walks) = alone.map_err(|failure| self.bench.halt(failure))?;
        Ok(writer.line(&Line::Sample(Sample {
            cell: self.number,
            pair,
            position,
            mode: Mode::Idle.to_string(),
            bytes: 0,
            elapsed_ns,
            phases_ns: BTreeMap::new(),
            counters: BTreeMap::new(),
            series: walked(walks).into_iter().collect(),
        }))?)
    }
}

/// The victim's walks, if any lay in the window.
fn walked(walks: Vec<u64>) -> Option<(String, Vec<u64>)> {
    (!walks.is_empty()).then(|| ("walk_ns".to_owned(), walks))
}

/// CPU time of each process while the clock ran.
fn phases(window: &Window) -> BTreeMap<String, u64> {
    let cpu = window.cpu;
    [("client_cpu", cpu.client), ("proxy_cpu", cpu.proxy), ("backend_cpu", cpu.backend)]
        .map(|(name, ns)| (name.to_owned(), ns))
        .into()
}

fn series(window: &Window, is_counted: bool, walks: Vec<u64>) -> BTreeMap<String, Vec<u64>> {
    let mut series = BTreeMap::from([("answered".to_owned(), vec![window.answered])]);
    series.extend(walked(walks));
    if is_counted {
        series.insert("counted_bytes".to_owned(), vec![window.all_bytes]);
    }
    if let Some(answers) = &window.answers {
        let (ns, counts) = answers.latencies.iter().copied().unzip();
        series.insert("latency_ns".to_owned(), ns);
        series.insert("answers".to_owned(), counts);
        if answers.unanswered > 0 {
            series.insert("unanswered".to_owned(), vec![answers.unanswered]);
        }
    }
    series
}
